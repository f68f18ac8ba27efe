package lsp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"

	"cuelang.org/go/cue/format"

	"github.com/kalypso-io/kalypso/internal/cuemodule"
)

// question is a request about a document, or a place in it.
type question struct {
	method string
	raw    json.RawMessage // the parameters, as CUE's server gets them
	parameters
}

// parameters are the parameters of all requests about a document.
type parameters struct {
	inDocument
	Range   span   `json:"range"`   // of codeAction
	NewName string `json:"newName"` // of rename
	Context struct {
		IncludeDeclaration bool `json:"includeDeclaration"` // of references
	} `json:"context"`
}

// fromCUE returns the answer of CUE's server.
func (s *server) fromCUE(q *question) reply {
	wait := s.cue.ask(q.method, q.raw, q.TextDocument.URI)
	return func(ctx context.Context) (any, error) { return wait(ctx) }
}

// completion answers a request for completions. For a name or a value, only kalypso answers;
// for fields, CUE's server knows more.
func (s *server) completion(q *question) reply {
	items, all := []any{}, false
	if n, ok := s.cursorAt(q.inDocument); ok {
		items, all = n.complete()
	}
	list := func(items []any) any { return map[string]any{"isIncomplete": false, "items": items} }
	if all {
		return now(list(items))
	}
	wait := s.fromCUE(q)
	return func(ctx context.Context) (any, error) {
		result, err := wait(ctx)
		return list(merge(items, result)), err
	}
}

// merge adds the completions of CUE's server that items lacks.
func merge(items []any, result any) []any {
	var theirs struct {
		Items []map[string]any `json:"items"`
	}
	raw, _ := result.(json.RawMessage)
	_ = json.Unmarshal(raw, &theirs) // nil if the server has no answer
	there := map[any]bool{}
	for _, i := range items {
		there[i.(map[string]any)["label"]] = true
	}
	for _, i := range theirs.Items {
		if !there[i["label"]] {
			items = append(items, i)
		}
	}
	return items
}

// hover answers a request for the meaning of a word.
func (s *server) hover(q *question) reply {
	n, ok := s.cursorAt(q.inDocument)
	wait := s.fromCUE(q)
	return func(ctx context.Context) (any, error) {
		if ok {
			if h, found := n.hover(ctx); found {
				return h, nil
			}
		}
		return wait(ctx)
	}
}

// definition answers a request for the declarations of a name.
func (s *server) definition(q *question) reply {
	if n, ok := s.cursorAt(q.inDocument); ok {
		if places := n.Definition(n.path, n.offset); len(places) > 0 {
			return now(n.places(places))
		}
	}
	return s.fromCUE(q)
}

// references answers a request for the uses of a name.
func (s *server) references(q *question) reply {
	if n, ok := s.cursorAt(q.inDocument); ok {
		if places := n.References(n.path, n.offset, q.Context.IncludeDeclaration); len(places) > 0 {
			return now(n.places(places))
		}
	}
	return s.fromCUE(q)
}

// prepareRename answers a request for the name that a renaming would change.
func (s *server) prepareRename(q *question) reply {
	if n, ok := s.cursorAt(q.inDocument); ok {
		if at, can := n.Renamable(n.path, n.offset); can {
			return now(n.place(at).Range)
		}
	}
	return s.fromCUE(q)
}

// rename renames an entity everywhere. CUE's server renames other names, except names that the
// schema declares: the server would change them in CUE's cache.
func (s *server) rename(q *question) reply {
	if n, ok := s.cursorAt(q.inDocument); ok {
		if _, can := n.Renamable(n.path, n.offset); can {
			return func(context.Context) (any, error) {
				edits, err := n.Rename(n.path, n.offset, q.NewName)
				return n.edit(edits), err
			}
		}
	}
	wait := s.fromCUE(q)
	return func(ctx context.Context) (any, error) {
		result, err := wait(ctx)
		raw, _ := result.(json.RawMessage)
		if err == nil && changesModules(raw) {
			return nil, errors.New(
				"it is declared by a module that is not in this workspace, and cannot be renamed")
		}
		return result, err
	}
}

// changesModules reports whether edits change files of CUE's module cache.
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

// codeAction answers a request for actions at a place: the fixes of kalypso's findings there,
// and the actions of CUE's server.
func (s *server) codeAction(q *question) reply {
	n, ok := s.cursorAt(q.inDocument)
	wait := s.fromCUE(q)
	return func(ctx context.Context) (any, error) {
		actions := []any{}
		if ok {
			actions = append(actions, n.fixes(q.Range)...)
		}
		result, err := wait(ctx)
		raw, _ := result.(json.RawMessage)
		var theirs []json.RawMessage
		_ = json.Unmarshal(raw, &theirs) // nil if the server has no answer
		for _, a := range theirs {
			if bytes.Contains(a, []byte(`"newText"`)) { // the action has an effect
				actions = append(actions, a)
			}
		}
		return actions, err
	}
}

// codeLens answers a request for the lenses above entities.
func (s *server) codeLens(q *question) reply {
	n, ok := s.cursorAt(q.inDocument)
	if !ok {
		return now([]any{})
	}
	return now(n.lenses())
}

// formatting formats the text of a document as `cue fmt` does. It does not change a document
// that does not parse, whose errors are already shown.
func (s *server) formatting(q *question) reply {
	s.mu.Lock()
	d := s.documents.at(q.TextDocument.URI)
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
	}
}
