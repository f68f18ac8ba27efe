package lsp

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/edit/names"
)

// named is a place in a document of a platform, with the names of the platform as they are
// now. The zero value is nowhere.
type named struct {
	*names.Index
	path    string
	offset  int
	files   sources
	text    text
	results *results // of the last compilation; nil for none
}

// at returns the place that parameters are about; false outside of platforms.
func (s *server) at(params json.RawMessage) (n named, ok bool, err error) {
	var p inDocument
	if err := json.Unmarshal(params, &p); err != nil {
		return n, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.documents.at(p.TextDocument.URI)
	if d == nil {
		return n, false, nil
	}
	of := s.platformOfLocked(filepath.Dir(fileOf(d.uri)))
	if of == nil {
		return n, false, nil
	}
	name, within := of.name(d.uri)
	if !within {
		return n, false, nil
	}
	return named{s.indexLocked(of), name, d.text.offset(p.Position), s.sourcesLocked(of), d.text, of.results}, true, nil
}

func (s *server) sourcesLocked(p *platform) sources {
	return sources{p.root, s.documents, map[string]text{}}
}

// overlayLocked is the text of the platform's documents that are open.
func (s *server) overlayLocked(p *platform) source.Overlay {
	over := source.Overlay{}
	for _, d := range s.documents {
		if name, within := p.name(d.uri); within {
			over[name] = []byte(d.text.string)
		}
	}
	return over
}

// indexLocked returns the names of a platform as it is now. What is on disk is read again
// when the editor has told of a change.
func (s *server) indexLocked(p *platform) *names.Index {
	if p.disk == nil {
		p.disk = filesOf(p.root, nil)
		p.indexed = 0
	}
	if p.indexed == p.version && p.index != nil {
		return p.index
	}
	over := s.overlayLocked(p)
	var files []names.File
	for _, f := range p.disk {
		if over[f.Path] == nil {
			files = append(files, f)
		}
	}
	for name, data := range over {
		if strings.HasSuffix(name, ".cue") && !strings.HasPrefix(name, "cue.mod/") {
			files = append(files, names.File{Path: name, Text: data})
		}
	}
	p.index, p.indexed = names.New(files, p.index), p.version
	return p.index
}

// place returns where something is.
func (n named) place(p names.Place) location {
	uri := n.files.uri(p.Path)
	return location{uri, n.files.text(uri).span(p.Start, p.End)}
}

func (n named) places(ps []names.Place) []location {
	out := []location{}
	for _, p := range ps {
		out = append(out, n.place(p))
	}
	return out
}

// edit returns edits as an editor makes them.
func (n named) edit(edits []names.Edit) map[string]any {
	changes := map[string][]textEdit{}
	for _, e := range edits {
		at := n.place(e.Place)
		changes[at.URI] = append(changes[at.URI], textEdit{at.Range, e.Text})
	}
	return map[string]any{"changes": changes}
}

// kinds are the protocol's numbers of kinds of completions: a field, an enum's member, a
// reference, a property, a value.
var kinds = map[names.Kind]int{names.OfField: 5, names.OfEnum: 20, names.OfName: 18,
	names.OfLabel: 10, names.OfValue: 12, names.OfKey: 10}

// complete returns what kalypso knows can be written, and whether that is all: a name or a
// value, and no field, beside which CUE knows more.
func (n named) complete() (items []any, all bool) {
	for _, c := range n.Complete(n.path, n.offset) {
		all = all || c.Kind != names.OfField
		item := map[string]any{
			"label": c.Label, "kind": kinds[c.Kind], "sortText": "!" + c.Label, "filterText": c.Text,
			"textEdit": textEdit{n.place(c.Place).Range, c.Text},
		}
		if c.Detail != "" {
			item["detail"] = c.Detail
		}
		if c.Documentation != "" {
			item["documentation"] = c.Documentation
		}
		items = append(items, item)
	}
	return items, all
}

// hover returns what kalypso knows of the word at the place. Values are those of the last
// compilation, where the file is still as it was then.
func (n named) hover(ctx context.Context) (any, bool) {
	var h names.Hover
	ok := false
	if n.results != nil && n.results.texts[n.path] == n.text.string {
		h, ok = n.results.hover(ctx, question{n.path, n.offset})
	}
	if !ok {
		h, ok = n.Hover(ctx, n.path, n.offset, nil)
	}
	if !ok {
		return nil, false
	}
	return map[string]any{
		"contents": map[string]any{"kind": "plaintext", "value": strings.Join(h.Lines, "\n\n")},
		"range":    n.place(h.Place).Range,
	}, true
}

// lenses returns the lines above the entities of the file, as they were when the platform was
// compiled.
func (n named) lenses() []any {
	out := []any{}
	if n.results == nil {
		return out
	}
	then := newText(n.results.texts[n.path])
	for _, l := range n.results.Lenses[n.path] {
		out = append(out, map[string]any{
			"range":   then.span(l.Place.Start, l.Place.End),
			"command": map[string]any{"title": l.Title, "command": ""},
		})
	}
	return out
}

// fixes returns the changes that may mend what was found in the range of a request.
func (n named) fixes(within span) (out []any) {
	if n.results == nil {
		return nil
	}
	for _, d := range n.results.Diagnostics {
		if firstFile(d) != n.path {
			continue
		}
		shown := n.files.diagnostic(d)
		if shown.Range.End.Line < within.Start.Line || within.End.Line < shown.Range.Start.Line {
			continue // the cursor is on other lines
		}
		for i, f := range n.Fixes(d) {
			out = append(out, map[string]any{
				"title": f.Title, "kind": "quickfix", "diagnostics": []diagnostic{shown}, "isPreferred": i == 0,
				"edit": n.edit(f.Edits),
			})
		}
	}
	return out
}
