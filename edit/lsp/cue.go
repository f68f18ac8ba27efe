package lsp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"sync"

	"github.com/sourcegraph/jsonrpc2"
)

// maxStarts is the maximal number of starts of CUE's server. If it ends again and again, cue
// gives up.
const maxStarts = 5

// cue is CUE's server, in whichever process. When a process ends, cue starts another one, and
// sends it the open documents. Answers that the server does not know, or that take it too long,
// are left out.
type cue struct {
	options Options
	editor  *jsonrpc2.Conn
	publish func(publishDiagnostics) // calls are sequential

	mu         sync.Mutex
	initialize json.RawMessage // the editor's parameters
	folders    []workspaceFolder
	documents  documents
	now        *child // nil if no process runs
	starts     int
	ids        uint64
	closed     bool
}

// start starts the first process. params are the editor's parameters of initialize.
func (c *cue) start(params json.RawMessage, folders []workspaceFolder) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.initialize, c.folders = params, folders
	c.startLocked()
}

func (c *cue) startLocked() {
	if c.closed || c.starts == maxStarts {
		return
	}
	c.starts++
	first := []message{
		{context.Background(), c.idLocked(), "initialize", c.initializeParams(), make(chan answer, 1)},
		{ctx: context.Background(), method: "initialized", params: json.RawMessage("{}")},
	}
	for _, uri := range slices.Sorted(maps.Keys(c.documents)) {
		first = append(first, openMessage(c.documents[uri]))
	}
	cmd, err := c.options.CUE()
	if err == nil {
		c.now, err = startChild(cmd, first, jsonrpc2.HandlerWithError(c.handle))
	}
	if err != nil {
		c.now = nil
		c.say("CUE's language server cannot be started: " + err.Error())
		return
	}
	go c.restart(c.now)
}

// restart waits for the end of a process, and starts another one.
func (c *cue) restart(one *child) {
	<-one.done
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.now = nil
	if c.starts == maxStarts {
		c.say("CUE's language server has ended too often, and is not started again: only what kalypso " +
			"itself knows is answered until the editor starts it again")
		return
	}
	c.startLocked()
}

// say shows a message in the editor.
func (c *cue) say(text string) {
	_ = c.editor.Notify(context.Background(), "window/showMessage",
		map[string]any{"type": 2, "message": text})
}

func (c *cue) idLocked() uint64 {
	c.ids++
	return c.ids
}

// initializeParams returns the editor's parameters for CUE's server. They lack the capabilities
// for progress, settings and watched files, which this process handles for the server.
func (c *cue) initializeParams() json.RawMessage {
	var params map[string]any
	_ = json.Unmarshal(c.initialize, &params) // it was decoded before
	capabilities, _ := params["capabilities"].(map[string]any)
	if capabilities == nil {
		capabilities = map[string]any{}
	}
	delete(capabilities, "window")
	if w, ok := capabilities["workspace"].(map[string]any); ok {
		delete(w, "configuration")
		delete(w, "didChangeConfiguration")
		delete(w, "didChangeWatchedFiles")
	}
	if t, ok := capabilities["textDocument"].(map[string]any); ok {
		if a, ok := t["codeAction"].(map[string]any); ok {
			delete(a, "resolveSupport") // edits are in the answer
		}
	}
	params["capabilities"] = capabilities
	params["processId"] = os.Getpid()
	params["workspaceFolders"] = c.folders
	params["initializationOptions"] = map[string]any{"diagnosticsDelay": "50ms"} // this server waits
	out, _ := json.Marshal(params)
	return out
}

// handle processes a message from CUE's server.
func (c *cue) handle(_ context.Context, _ *jsonrpc2.Conn, r *jsonrpc2.Request) (any, error) {
	switch r.Method {
	case "textDocument/publishDiagnostics":
		var p publishDiagnostics
		if r.Params == nil || json.Unmarshal(*r.Params, &p) != nil {
			return nil, nil
		}
		c.publish(p)
	case "window/showMessage":
		if r.Params != nil {
			_ = c.editor.Notify(context.Background(), r.Method, r.Params)
		}
	}
	return nil, nil // also the result of its requests
}

// notify sends a notification without places in a document.
func (c *cue) notify(method string, params json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notifyLocked(method, params)
}

func (c *cue) notifyLocked(method string, params json.RawMessage) {
	if c.now != nil {
		c.now.send(message{ctx: context.Background(), method: method, params: params})
	}
}

// open sends a new or changed document to the server.
func (c *cue) open(d *document) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := openMessage(d)
	if c.documents.at(d.uri) != nil {
		m.method = "textDocument/didChange"
		m.params, _ = json.Marshal(
			didChange{textDocument{URI: d.uri, Version: d.version}, []change{{Text: d.there.string}}})
	}
	c.documents = c.documents.with(d)
	c.notifyLocked(m.method, m.params)
}

func openMessage(d *document) message {
	params, _ := json.Marshal(map[string]any{"textDocument": map[string]any{
		"uri": d.uri, "languageId": "cue", "version": d.version, "text": d.there.string}})
	return message{ctx: context.Background(), method: "textDocument/didOpen", params: params}
}

// shut closes a document in the server.
func (c *cue) shut(uri string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.documents = c.documents.without(uri)
	params, _ := json.Marshal(map[string]any{"textDocument": map[string]any{"uri": uri}})
	c.notifyLocked("textDocument/didClose", params)
}

// changeFolders tells the server about changed folders of the workspace.
func (c *cue) changeFolders(folders []workspaceFolder, params json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.folders = folders
	c.notifyLocked("workspace/didChangeWorkspaceFolders", params)
}

// ask sends a request about a document in its current state, and returns a function that waits
// for the answer. The answer is null if the server has none.
func (c *cue) ask(method string, params json.RawMessage,
	uri string) func(context.Context) (json.RawMessage, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	null := json.RawMessage("null")
	ds := c.documents
	translated, err := toServer(ds, params)
	if err != nil || c.now == nil {
		return func(context.Context) (json.RawMessage, error) { return null, err }
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan answer, 1)
	c.now.send(message{ctx, c.idLocked(), method, translated, done})
	return func(request context.Context) (json.RawMessage, error) {
		defer cancel()
		select {
		case <-request.Done():
			return nil, request.Err()
		case a := <-done:
			if a.err != nil {
				return null, nil // the process has ended, or has no answer
			}
			return toEditor(ds, a.result, uri)
		}
	}
}

// close ends the server.
func (c *cue) close() {
	c.mu.Lock()
	c.closed = true
	now := c.now
	c.mu.Unlock()
	if now != nil {
		now.stop()
		<-now.done
	}
}

// child is a process of CUE's language server. It gets its messages in the order in which they
// were queued, so that no caller has to wait for it.
type child struct {
	cmd   *exec.Cmd
	conn  *jsonrpc2.Conn
	queue chan message
	done  chan struct{} // closed once the process has ended
}

// message is a request, or a notification if answer is nil.
type message struct {
	ctx    context.Context
	id     uint64
	method string
	params json.RawMessage
	answer chan<- answer
}

type answer struct {
	result json.RawMessage
	err    error
}

// waiting is the maximal number of messages that may wait for the server. If the queue is full,
// the server has stopped answering.
const waiting = 4096

var errEnded = errors.New("CUE's language server has ended")

// startChild starts a server, and first sends it the given messages. handle gets its messages.
func startChild(cmd *exec.Cmd, first []message, handle jsonrpc2.Handler) (*child, error) {
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
	c := &child{cmd: cmd, queue: make(chan message, waiting), done: make(chan struct{})}
	c.conn = jsonrpc2.NewConn(context.Background(), streamOf(out, in), handle,
		jsonrpc2.SetLogger(silent{}))
	for _, m := range first {
		c.send(m)
	}
	go c.deliver()
	go func() {
		<-c.conn.DisconnectNotify()
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait() // it was killed
		close(c.done)
	}()
	return c, nil
}

// send queues a message.
func (c *child) send(m message) {
	select {
	case c.queue <- m:
	default:
		c.stop() // it no longer accepts messages
		m.reply(answer{err: errEnded})
	}
	select {
	case <-c.done:
		c.refuse() // deliver may have refused earlier messages
	default:
	}
}

func (m message) reply(a answer) {
	if m.answer != nil {
		m.answer <- a
	}
}

// stop ends the process, and thereby all requests.
func (c *child) stop() { _ = c.conn.Close() }

// deliver sends the queued messages until the process ends.
func (c *child) deliver() {
	for {
		select {
		case <-c.done:
			c.refuse()
			return
		case m := <-c.queue:
			c.give(m)
		}
	}
}

// refuse answers the messages that are still in the queue.
func (c *child) refuse() {
	for {
		select {
		case m := <-c.queue:
			m.reply(answer{err: errEnded})
		default:
			return
		}
	}
}

func (c *child) give(m message) {
	if m.answer == nil {
		_ = c.conn.Notify(m.ctx, m.method, m.params) // an error means that the process has ended
		return
	}
	if m.ctx.Err() != nil {
		m.reply(answer{err: m.ctx.Err()})
		return
	}
	id := jsonrpc2.ID{Num: m.id}
	call, err := c.conn.DispatchCall(m.ctx, m.method, m.params, jsonrpc2.PickID(id))
	if err != nil {
		m.reply(answer{err: errEnded})
		return
	}
	wait := func() {
		var result json.RawMessage
		err := call.Wait(m.ctx, &result)
		if m.ctx.Err() != nil {
			_ = c.conn.Notify(context.Background(), "$/cancelRequest", map[string]any{"id": id})
		}
		m.reply(answer{result, err})
	}
	if m.method == "initialize" {
		wait() // no other message may come before its answer
		return
	}
	go wait()
}

// streamOf returns the stream of messages in two pipes.
func streamOf(in io.ReadCloser, out io.WriteCloser) jsonrpc2.ObjectStream {
	return jsonrpc2.NewBufferedStream(pipes{in, out}, jsonrpc2.VSCodeObjectCodec{})
}

// pipes are two pipes as one connection.
type pipes struct {
	io.ReadCloser
	out io.WriteCloser
}

func (p pipes) Write(b []byte) (int, error) { return p.out.Write(b) }

func (p pipes) Close() error { return errors.Join(p.out.Close(), p.ReadCloser.Close()) }

// silent logs nothing, because the end of a connection shows its errors.
type silent struct{}

func (silent) Printf(string, ...any) {}
