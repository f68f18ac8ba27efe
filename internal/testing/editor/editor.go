// Package editor is an editor without a screen, for tests of language servers. It opens files,
// types, sends requests, and prints the answers as a person would see them.
package editor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/sourcegraph/jsonrpc2"
)

// Editor is an editor with a server.
type Editor struct {
	root string
	cmd  *exec.Cmd
	conn *jsonrpc2.Conn
	text map[string]string // of open files, by their names
	last map[string]int    // their versions

	mu      sync.Mutex
	changed *sync.Cond
	found   map[string][]diagnostic
	ended   bool
}

type position struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

type span struct {
	Start position `json:"start"`
	End   position `json:"end"`
}

type diagnostic struct {
	Range    span   `json:"range"`
	Severity int    `json:"severity"`
	Code     string `json:"code"`
	Source   string `json:"source"`
	Message  string `json:"message"`
	Related  []struct {
		Location location `json:"location"`
		Message  string   `json:"message"`
	} `json:"relatedInformation"`
}

type location struct {
	URI   string `json:"uri"`
	Range span   `json:"range"`
}

// Start starts a server that a command is, with folders of a workspace: paths from root.
func Start(cmd *exec.Cmd, root string, folders ...string) (*Editor, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	e := &Editor{root: root, cmd: cmd, text: map[string]string{}, last: map[string]int{}, found: map[string][]diagnostic{}}
	e.changed = sync.NewCond(&e.mu)
	e.conn = jsonrpc2.NewConn(context.Background(),
		jsonrpc2.NewBufferedStream(pipes{out, in}, jsonrpc2.VSCodeObjectCodec{}),
		jsonrpc2.HandlerWithError(e.handle))
	go func() {
		<-e.conn.DisconnectNotify()
		e.mu.Lock()
		defer e.mu.Unlock()
		e.ended = true
		e.changed.Broadcast()
	}()
	var workspace []any
	for _, f := range folders {
		workspace = append(workspace, map[string]any{"uri": e.uri(f), "name": f})
	}
	err = e.call("initialize", map[string]any{
		"processId": os.Getpid(), "rootUri": nil, "workspaceFolders": workspace,
		"capabilities": map[string]any{"textDocument": map[string]any{
			"codeAction": map[string]any{"codeActionLiteralSupport": map[string]any{"codeActionKind": map[string]any{"valueSet": []string{"quickfix", "refactor"}}}},
		}},
	}, nil)
	if err != nil {
		return nil, err
	}
	return e, e.notify("initialized", struct{}{})
}

type pipes struct {
	io.ReadCloser
	out io.WriteCloser
}

func (p pipes) Write(b []byte) (int, error) { return p.out.Write(b) }

func (p pipes) Close() error { return errors.Join(p.out.Close(), p.ReadCloser.Close()) }

// Close shuts the server down, and waits for its end.
func (e *Editor) Close() error {
	if err := e.call("shutdown", nil, nil); err != nil {
		return err
	}
	if err := e.notify("exit", nil); err != nil {
		return err
	}
	return e.cmd.Wait()
}

func (e *Editor) uri(name string) string {
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(filepath.Join(e.root, name))}).String()
}

// name returns the path of a URI: from the root, or without the parts that depend on the machine.
func (e *Editor) name(uri string) string {
	u, err := url.Parse(uri)
	if err != nil {
		return uri
	}
	if rel, err := filepath.Rel(e.root, filepath.FromSlash(u.Path)); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	if _, cached, found := strings.Cut(u.Path, "/mod/extract/"); found {
		return cached
	}
	return u.Path
}

func (e *Editor) call(method string, params, result any) error {
	return e.conn.Call(context.Background(), method, params, result)
}

func (e *Editor) notify(method string, params any) error {
	return e.conn.Notify(context.Background(), method, params)
}

// handle handles the messages of the server.
func (e *Editor) handle(_ context.Context, _ *jsonrpc2.Conn, r *jsonrpc2.Request) (any, error) {
	if r.Method != "textDocument/publishDiagnostics" {
		return nil, nil
	}
	var p struct {
		URI         string       `json:"uri"`
		Diagnostics []diagnostic `json:"diagnostics"`
	}
	if err := json.Unmarshal(*r.Params, &p); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.found[e.name(p.URI)] = p.Diagnostics
	e.changed.Broadcast()
	return nil, nil
}

// Open opens a file.
func (e *Editor) Open(name string) error {
	data, err := os.ReadFile(filepath.Join(e.root, name))
	if err != nil {
		return err
	}
	e.text[name], e.last[name] = string(data), 1
	return e.notify("textDocument/didOpen", map[string]any{"textDocument": map[string]any{
		"uri": e.uri(name), "languageId": "cue", "version": 1, "text": string(data)}})
}

// Type replaces a text of an open file, which is there once, by another.
func (e *Editor) Type(name, old, new string) error {
	at := strings.Index(e.text[name], old)
	if at < 0 {
		return fmt.Errorf("%s does not have %q", name, old)
	}
	s := span{e.position(name, at), e.position(name, at+len(old))}
	e.text[name] = e.text[name][:at] + new + e.text[name][at+len(old):]
	e.last[name]++
	return e.notify("textDocument/didChange", map[string]any{
		"textDocument":   map[string]any{"uri": e.uri(name), "version": e.last[name]},
		"contentChanges": []any{map[string]any{"range": s, "text": new}},
	})
}

// position returns the position of an offset, as the protocol counts.
func (e *Editor) position(name string, offset int) position {
	before := e.text[name][:offset]
	line := before[strings.LastIndexByte(before, '\n')+1:]
	units := 0
	for _, r := range line {
		units++
		if r > 0xFFFF {
			units++
		}
	}
	return position{strings.Count(before, "\n"), units}
}

// Wait waits until the server has reported the diagnostics of a file, and one of them has a text
// in its message or as its code. If gone is true, it waits until none of them has the text. It
// returns all diagnostics of the file.
func (e *Editor) Wait(name, text string, gone bool) ([]string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		ds, told := e.found[name]
		if told && gone != slices.ContainsFunc(ds, func(d diagnostic) bool {
			return d.Code == text || strings.Contains(d.Message, text)
		}) {
			return e.describe(ds), nil
		}
		if e.ended {
			return nil, errors.New("the server has ended")
		}
		e.changed.Wait()
	}
}

func (e *Editor) describe(ds []diagnostic) (lines []string) {
	for _, d := range ds {
		severity := map[int]string{1: "error", 2: "warning"}[d.Severity]
		lines = append(lines, fmt.Sprintf("%s %s %s %s: %s", place(d.Range), severity, d.Source, d.Code,
			strings.ReplaceAll(d.Message, "\n", "\n\t")))
		for _, r := range d.Related {
			lines = append(lines, fmt.Sprintf("\t%s:%s: %s", e.name(r.Location.URI), place(r.Location.Range), r.Message))
		}
	}
	return lines
}

// place is a range with numbers from 1.
func place(s span) string {
	if s.Start.Line == s.End.Line {
		return fmt.Sprintf("%d:%d-%d", s.Start.Line+1, s.Start.Character+1, s.End.Character+1)
	}
	return fmt.Sprintf("%d:%d-%d:%d", s.Start.Line+1, s.Start.Character+1, s.End.Line+1, s.End.Character+1)
}
