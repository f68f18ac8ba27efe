package lsp

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/sourcegraph/jsonrpc2"
)

// mostStarts is how often CUE's server is started: one that ends again and again is left alone.
const mostStarts = 5

// cue is CUE's server, whichever process it is: when one ends there is another, which gets the
// documents that are open. What it does not know, or is too slow to say, is left out.
type cue struct {
	options Options
	editor  *jsonrpc2.Conn
	publish func(publishDiagnostics) // called for one after the other

	mu         sync.Mutex
	initialize json.RawMessage // parameters
	folders    []workspaceFolder
	documents  documents
	now        *child // nil for none
	starts     int
	ids        uint64
	closed     bool
}

// start starts the first process, for an editor that has sent the parameters of initialize.
func (c *cue) start(params json.RawMessage, folders []workspaceFolder) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.initialize, c.folders = params, folders
	c.startLocked()
}

func (c *cue) startLocked() {
	if c.closed || c.starts == mostStarts {
		return
	}
	c.starts++
	first := []message{
		{context.Background(), c.idLocked(), "initialize", c.initializeParams(), make(chan answer, 1)},
		{ctx: context.Background(), method: "initialized", params: json.RawMessage("{}")},
	}
	for _, uri := range slices.Sorted(maps.Keys(c.documents)) {
		first = append(first, opened(c.documents[uri]))
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
	if c.starts == mostStarts {
		c.say("CUE's language server has ended too often, and is not started again: only what kalypso " +
			"itself knows is answered until the editor starts it again")
		return
	}
	c.startLocked()
}

// say shows a message in the editor.
func (c *cue) say(text string) {
	_ = c.editor.Notify(context.Background(), "window/showMessage", map[string]any{"type": 2, "message": text})
}

func (c *cue) idLocked() uint64 {
	c.ids++
	return c.ids
}

// initializeParams are those of the editor, without what the editor need not hear of CUE's
// server: progress, settings and watched files, which this process sends it.
func (c *cue) initializeParams() json.RawMessage {
	var params map[string]any
	_ = json.Unmarshal(c.initialize, &params) // it was read before
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
			delete(a, "resolveSupport") // edits come at once
		}
	}
	params["capabilities"] = capabilities
	params["processId"] = os.Getpid()
	params["workspaceFolders"] = c.folders
	params["initializationOptions"] = map[string]any{"diagnosticsDelay": "50ms"} // it is waited here for all together
	out, _ := json.Marshal(params)
	return out
}

// handle takes what CUE's server sends.
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
	return nil, nil // as the result of what it asks for, too
}

// Notify sends a notification, of which nothing is about a place in a document.
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

// open makes the server see a document, new or changed.
func (c *cue) open(d *document) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := opened(d)
	if c.documents.at(d.uri) != nil {
		m.method = "textDocument/didChange"
		m.params, _ = json.Marshal(didChange{textDocument{URI: d.uri, Version: d.version}, []change{{Text: d.there.string}}})
	}
	c.documents = c.documents.with(d)
	c.notifyLocked(m.method, m.params)
}

func opened(d *document) message {
	params, _ := json.Marshal(map[string]any{"textDocument": map[string]any{
		"uri": d.uri, "languageId": "cue", "version": d.version, "text": d.there.string}})
	return message{ctx: context.Background(), method: "textDocument/didOpen", params: params}
}

// shut makes the server forget a document.
func (c *cue) shut(uri string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.documents = c.documents.without(uri)
	params, _ := json.Marshal(map[string]any{"textDocument": map[string]any{"uri": uri}})
	c.notifyLocked("textDocument/didClose", params)
}

// changeFolders makes the server see other folders of the workspace.
func (c *cue) changeFolders(folders []workspaceFolder, params json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.folders = folders
	c.notifyLocked("workspace/didChangeWorkspaceFolders", params)
}

// ask sends a request about a document, as it is now, and returns what waits for the answer:
// null where there is none.
func (c *cue) ask(method string, params json.RawMessage, uri string) func(context.Context) (json.RawMessage, error) {
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
	return func(asked context.Context) (json.RawMessage, error) {
		defer cancel()
		select {
		case <-asked.Done():
			return nil, asked.Err()
		case a := <-done:
			if a.err != nil {
				return null, nil // it has ended, or has no answer
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
