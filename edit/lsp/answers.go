package lsp

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"cuelang.org/go/cue/format"

	"github.com/kalypso-io/kalypso/internal/cuemodule"
)

// fromCUE answers as CUE's server does.
func (s *server) fromCUE(method string, params json.RawMessage) (reply, error) {
	var p inDocument
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, err
	}
	wait := s.cue.ask(method, params, p.TextDocument.URI)
	return func(ctx context.Context) (any, error) { return wait(ctx) }, nil
}

// completion answers what may be written at a place.
func (s *server) completion(method string, params json.RawMessage) (reply, error) {
	wait, err := s.fromCUE(method, params)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (any, error) {
		result, err := wait(ctx)
		return result, err
	}, nil
}

// rename renames what CUE's server can rename. What the schema declares cannot be: the server
// would change it in CUE's cache.
func (s *server) rename(method string, params json.RawMessage) (reply, error) {
	wait, err := s.fromCUE(method, params)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (any, error) {
		result, err := wait(ctx)
		raw, _ := result.(json.RawMessage)
		if err == nil && changesModules(raw) {
			return nil, fmt.Errorf("it is declared by a module that is not in this workspace, and cannot be renamed")
		}
		return result, err
	}, nil
}

// changesModules says whether edits change files of CUE's module cache.
func changesModules(edit json.RawMessage) bool {
	var e struct {
		Changes         map[string]json.RawMessage `json:"changes"`
		DocumentChanges []inDocument               `json:"documentChanges"`
	}
	dir, err := cuemodule.CacheDir()
	if json.Unmarshal(edit, &e) != nil || err != nil {
		return false
	}
	within := func(uri string) bool {
		return strings.HasPrefix(fileOf(uri), filepath.Join(dir, "mod")+string(filepath.Separator))
	}
	for uri := range e.Changes {
		if within(uri) {
			return true
		}
	}
	for _, d := range e.DocumentChanges {
		if within(d.TextDocument.URI) {
			return true
		}
	}
	return false
}

// codeAction answers what can be done at a place.
func (s *server) codeAction(method string, params json.RawMessage) (reply, error) {
	return s.fromCUE(method, params)
}

// formatting formats the text of a document as `cue fmt` does. One that does not parse stays
// as it is: its errors are shown already.
func (s *server) formatting(_ string, params json.RawMessage) (reply, error) {
	var p inDocument
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, err
	}
	s.mu.Lock()
	d := s.documents.at(p.TextDocument.URI)
	s.mu.Unlock()
	return func(context.Context) (any, error) {
		edits := []textEdit{}
		if d == nil {
			return edits, nil
		}
		formatted, err := format.Source([]byte(d.text.string))
		if err != nil || string(formatted) == d.text.string {
			return edits, nil
		}
		return append(edits, textEdit{d.text.span(0, len(d.text.string)), string(formatted)}), nil
	}, nil
}
