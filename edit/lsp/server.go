// Package lsp is the language server of platforms: `kalypso lsp`. It uses the Language Server
// Protocol to talk to an editor and to CUE's own server. It starts CUE's server as a separate
// process, and shows it the documents in the form of package shown. It adds kalypso's own
// information to the answers of CUE's server: it compiles the platform after each change,
// including text that is not saved yet.
package lsp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/sourcegraph/jsonrpc2"
)

// Options are the commands and settings of a server.
type Options struct {
	// CUE returns the command of a process that runs CUE's language server on its standard
	// input and output. The command has not been started.
	CUE func() (*exec.Cmd, error)
	// Compile returns the command of a process that compiles the platform at a root, and calls
	// Answer. overlay is a file with the overlay as JSON. The command has not been started.
	Compile func(root, overlay string) (*exec.Cmd, error)
	// Delay is the time without changes after which a platform is compiled.
	Delay time.Duration
	// Version is the version of kalypso.
	Version string
}

// ErrNoShutdown reports that the editor has ended the connection without the request shutdown.
var ErrNoShutdown = errors.New("the editor has ended the connection without the request shutdown")

// Serve serves an editor on two streams. It returns after the editor sends exit, or when the
// streams or ctx end. It first ends everything that it has started.
func Serve(ctx context.Context, in io.ReadCloser, out io.WriteCloser, o Options) error {
	s := &server{options: o, findings: findings{}, platforms: map[string]*platform{},
		running: map[jsonrpc2.ID]context.CancelFunc{}}
	s.cue = &cue{options: o, publish: s.foundByCUE}
	ready := make(chan struct{})
	s.editor = jsonrpc2.NewConn(ctx, streamOf(in, out), &opening{ready, s},
		jsonrpc2.SetLogger(silent{}))
	s.cue.editor = s.editor
	close(ready)
	<-s.editor.DisconnectNotify()
	s.cue.close()
	s.stopCompiling()
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.stage != ended {
		return ErrNoShutdown
	}
	return nil
}

// opening is a handler of messages that waits until the server is ready.
type opening struct {
	ready <-chan struct{}
	then  jsonrpc2.Handler
}

// Handle handles a message.
func (o *opening) Handle(ctx context.Context, conn *jsonrpc2.Conn, r *jsonrpc2.Request) {
	<-o.ready
	o.then.Handle(ctx, conn, r)
}

// stage is the stage of the conversation with the editor.
type stage int

const (
	created stage = iota
	initialized
	shutDown
	ended
)

// server serves one editor. It takes messages one after the other, and answers requests
// concurrently. It determines the subject of a request when it takes the request.
type server struct {
	options Options
	editor  *jsonrpc2.Conn
	cue     *cue
	stage   stage // of the conversation

	mu        sync.Mutex
	folders   []workspaceFolder
	watches   bool // the editor can be asked to watch files
	refreshes bool // the editor can be asked to refresh lenses
	documents documents
	findings  findings
	platforms map[string]*platform // by their roots
	compiling sync.WaitGroup
	running   map[jsonrpc2.ID]context.CancelFunc
}

// reply computes the answer to a request, in a goroutine of its own.
type reply func(context.Context) (any, error)

// now returns a reply with a known result.
func now(result any) reply { return func(context.Context) (any, error) { return result, nil } }

// The errors of the protocol.
var (
	errNotInitialized = &jsonrpc2.Error{Code: -32002, Message: "the first request is initialize"}
	errShutDown       = &jsonrpc2.Error{Code: jsonrpc2.CodeInvalidRequest,
		Message: "the server is shut down"}
	errCancelled = &jsonrpc2.Error{Code: -32800, Message: "cancelled"}
)

// requests make the replies to an editor's requests about documents.
var requests = map[string]func(*server, *question) reply{
	"textDocument/completion":     (*server).completion,
	"textDocument/hover":          (*server).hover,
	"textDocument/definition":     (*server).definition,
	"textDocument/references":     (*server).references,
	"textDocument/documentSymbol": (*server).fromCUE,
	"textDocument/prepareRename":  (*server).prepareRename,
	"textDocument/codeLens":       (*server).codeLens,
	"textDocument/rename":         (*server).rename,
	"textDocument/codeAction":     (*server).codeAction,
	"textDocument/formatting":     (*server).formatting,
}

// notifications are the handlers of an editor's notifications.
var notifications = map[string]func(s *server, params json.RawMessage) error{
	"initialized":                         notification((*server).initialized),
	"$/cancelRequest":                     notification((*server).cancel),
	"textDocument/didOpen":                notification((*server).didOpen),
	"textDocument/didChange":              notification((*server).didChange),
	"textDocument/didSave":                (*server).didSave,
	"textDocument/didClose":               notification((*server).didClose),
	"workspace/didChangeWatchedFiles":     notification((*server).didChangeWatchedFiles),
	"workspace/didChangeWorkspaceFolders": notification((*server).didChangeWorkspaceFolders),
}

// notification returns a handler that decodes the parameters and calls handle with the server's
// lock.
func notification[P any](handle func(*server, P, json.RawMessage)) func(*server,
	json.RawMessage) error {
	return func(s *server, params json.RawMessage) error {
		var p P
		if err := json.Unmarshal(params, &p); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		handle(s, p, params)
		return nil
	}
}

// Handle handles a message of the editor.
func (s *server) Handle(ctx context.Context, conn *jsonrpc2.Conn, r *jsonrpc2.Request) {
	params := json.RawMessage("null")
	if r.Params != nil {
		params = *r.Params
	}
	if !r.Notif {
		s.answer(ctx, r.ID, s.take(r.Method, params))
		return
	}
	if r.Method == "exit" {
		if s.stage == shutDown {
			s.stage = ended
		}
		_ = conn.Close()
		return
	}
	if take := notifications[r.Method]; take != nil && s.stage == initialized {
		if err := take(s, params); err != nil {
			s.say(r.Method + ": " + err.Error())
		}
	}
}

// take returns the reply for a request.
func (s *server) take(method string, params json.RawMessage) reply {
	failing := func(err error) reply {
		return func(context.Context) (any, error) { return nil, err }
	}
	switch {
	case s.stage == created && method == "initialize":
		result, err := s.initialize(params)
		if err != nil {
			return failing(&jsonrpc2.Error{Code: jsonrpc2.CodeInvalidParams, Message: err.Error()})
		}
		s.stage = initialized
		return now(result)
	case s.stage == created:
		return failing(errNotInitialized)
	case s.stage > initialized, method == "initialize":
		return failing(errShutDown)
	}
	if method == "shutdown" {
		s.stage = shutDown
		return func(context.Context) (any, error) {
			s.cue.close()
			s.stopCompiling()
			return nil, nil
		}
	}
	request := requests[method]
	if request == nil {
		return failing(
			&jsonrpc2.Error{Code: jsonrpc2.CodeMethodNotFound, Message: "there is no request " + method})
	}
	q := &question{method: method, raw: params}
	if err := json.Unmarshal(params, &q.parameters); err != nil {
		return failing(&jsonrpc2.Error{Code: jsonrpc2.CodeInvalidParams, Message: err.Error()})
	}
	return request(s, q)
}

// answer sends the result of a reply when it is known.
func (s *server) answer(ctx context.Context, id jsonrpc2.ID, r reply) {
	ctx, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	s.running[id] = cancel
	s.mu.Unlock()
	go func() {
		result, err := r.safely(ctx)
		s.mu.Lock()
		delete(s.running, id)
		s.mu.Unlock()
		if ctx.Err() != nil {
			err = errCancelled
		}
		cancel()
		response := &jsonrpc2.Response{ID: id}
		if err == nil {
			err = response.SetResult(result)
		}
		if e := (*jsonrpc2.Error)(nil); errors.As(err, &e) {
			response.Error = e
		} else if err != nil {
			response.Error = &jsonrpc2.Error{Code: jsonrpc2.CodeInternalError, Message: err.Error()}
		}
		// an error means that the editor is gone
		_ = s.editor.SendResponse(context.Background(), response)
	}()
}

// safely turns a panic into an error: the documents are intact, and other requests get answers.
func (r reply) safely(ctx context.Context) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a mistake in kalypso: %v", p)
		}
	}()
	return r(ctx)
}

// cancel cancels a request.
func (s *server) cancel(p cancelParams, _ json.RawMessage) {
	if cancel := s.running[p.ID]; cancel != nil {
		cancel()
	}
}

// say shows a message in the editor.
func (s *server) say(text string) {
	_ = s.editor.Notify(context.Background(), "window/showMessage",
		map[string]any{"type": severityWarning, "message": text})
}

// The following types are parts of the Language Server Protocol 3.17 that the server uses
// (https://microsoft.github.io/language-server-protocol/specifications/lsp/3.17/specification/).

// position is a place in a text. Lines and characters count from 0; characters are UTF-16 code
// units.
type position struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

type span struct {
	Start position `json:"start"`
	End   position `json:"end"`
}

type location struct {
	URI   string `json:"uri"`
	Range span   `json:"range"`
}

type textEdit struct {
	Range   span   `json:"range"`
	NewText string `json:"newText"`
}

type textDocument struct {
	URI     string `json:"uri"`
	Version int    `json:"version"`
	Text    string `json:"text"`
}

type didOpen struct {
	TextDocument textDocument `json:"textDocument"`
}

type didChange struct {
	TextDocument   textDocument `json:"textDocument"`
	ContentChanges []change     `json:"contentChanges"`
}

// change is new text for a range, or for the whole document if Range is nil.
type change struct {
	Range *span  `json:"range,omitempty"`
	Text  string `json:"text"`
}

// inDocument are the parameters of a request about a document, or a place in it.
type inDocument struct {
	TextDocument struct {
		URI string `json:"uri"`
	} `json:"textDocument"`
	Position position `json:"position"`
}

// The severities of diagnostics.
const (
	severityError   = 1
	severityWarning = 2
)

type diagnostic struct {
	Range       span              `json:"range"`
	Severity    int               `json:"severity"`
	Code        string            `json:"code,omitempty"`
	Description *codeDescription  `json:"codeDescription,omitempty"`
	Source      string            `json:"source"`
	Message     string            `json:"message"`
	Related     []relatedLocation `json:"relatedInformation,omitempty"`
}

type codeDescription struct {
	Href string `json:"href"`
}

type relatedLocation struct {
	Location location `json:"location"`
	Message  string   `json:"message"`
}

type publishDiagnostics struct {
	URI         string       `json:"uri"`
	Version     *int         `json:"version,omitempty"`
	Diagnostics []diagnostic `json:"diagnostics"`
}

type cancelParams struct {
	ID jsonrpc2.ID `json:"id"`
}

type didChangeWatchedFiles struct {
	Changes []struct {
		URI string `json:"uri"`
	} `json:"changes"`
}

type didChangeWorkspaceFolders struct {
	Event struct {
		Added   []workspaceFolder `json:"added"`
		Removed []workspaceFolder `json:"removed"`
	} `json:"event"`
}

type workspaceFolder struct {
	URI  string `json:"uri"`
	Name string `json:"name"`
}

// uriOf returns the URI of a file by its absolute path.
func uriOf(file string) string {
	file = filepath.ToSlash(file)
	if !strings.HasPrefix(file, "/") { // on a drive of Windows
		file = "/" + file
	}
	return (&url.URL{Scheme: "file", Path: file}).String()
}

// canonical returns the same URI for all URIs of a file: programs differ in the characters that
// they escape.
func canonical(uri string) string {
	if file := fileOf(uri); file != "" {
		return uriOf(file)
	}
	return uri
}

// fileOf returns the path of a file by its URI. It returns "" if the URI is not a file's.
func fileOf(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" {
		return ""
	}
	file := u.Path
	if runtime.GOOS == "windows" {
		file = strings.TrimPrefix(file, "/")
	}
	return filepath.FromSlash(file)
}
