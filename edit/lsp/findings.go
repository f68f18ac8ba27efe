package lsp

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/parser"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/regular"
)

// fileFindings are the findings about a file, by their source.
type fileFindings struct {
	syntax  []diagnostic // syntax errors of the text
	cue     []diagnostic // findings of CUE's server
	kalypso []diagnostic // findings of the platform's last compilation
}

// findings are the findings about files, by their canonical URIs.
type findings map[string]*fileFindings

func (fs findings) of(uri string) *fileFindings {
	uri = canonical(uri)
	if fs[uri] == nil {
		fs[uri] = &fileFindings{}
	}
	return fs[uri]
}

// all returns the diagnostics to show. If a text does not parse, the errors of CUE's server
// have wrong places, because the server sees a different text. If kalypso has an error in the
// same line, it is the same error with more details.
func (f *fileFindings) all() []diagnostic {
	out := slices.Clone(f.kalypso)
	others := f.cue
	if len(f.syntax) > 0 {
		others = f.syntax
	}
	for _, d := range others {
		if !slices.ContainsFunc(f.kalypso, func(k diagnostic) bool {
			return k.Severity == severityError && k.Range.Start.Line == d.Range.Start.Line
		}) {
			out = append(out, d)
		}
	}
	slices.SortStableFunc(out, func(a, b diagnostic) int {
		if a.Range.Start.Line != b.Range.Start.Line {
			return a.Range.Start.Line - b.Range.Start.Line
		}
		return a.Range.Start.Character - b.Range.Start.Character
	})
	return out
}

// publishLocked sends the findings about a file to the editor.
func (s *server) publishLocked(uri string) {
	p := publishDiagnostics{URI: uri, Diagnostics: append([]diagnostic{}, s.findings.of(uri).all()...)}
	if d := s.documents.at(uri); d != nil {
		p.URI, p.Version = d.uri, &d.version
	}
	// or the editor is gone
	_ = s.editor.Notify(context.Background(), "textDocument/publishDiagnostics", p)
}

func syntaxErrors(t text) (out []diagnostic) {
	_, err := parser.ParseFile("", t.string, parser.ParseComments)
	for _, e := range errors.Errors(err) {
		offset := e.Position().Offset()
		out = append(out, diagnostic{
			Range: t.span(offset, t.wordEnd(offset)), Severity: severityError, Source: "cue",
			Message: e.Error(),
		})
	}
	return out
}

// foundByCUE stores and publishes the diagnostics of CUE's server for a document.
func (s *server) foundByCUE(p publishDiagnostics) {
	s.mu.Lock()
	defer s.mu.Unlock()
	raw, _ := json.Marshal(p.Diagnostics)
	translated, err := toEditor(s.documents, raw, p.URI)
	var ds []diagnostic
	if err != nil || json.Unmarshal(translated, &ds) != nil || s.documents.at(p.URI) == nil {
		return
	}
	f := s.findings.of(p.URI)
	if len(ds)+len(f.cue) == 0 {
		return
	}
	f.cue = ds
	s.publishLocked(p.URI)
}

// foundLocked stores and publishes the diagnostics of a platform's compilation. It removes the
// diagnostics of the previous compilation.
func (s *server) foundLocked(p *platform, ds []diag.Diagnostic) {
	files := s.sourcesLocked(p)
	by := map[string][]diagnostic{}
	for _, d := range ds {
		file := firstFile(d)
		by[files.uri(file)] = append(by[files.uri(file)], files.diagnostic(d))
	}
	for uri := range by {
		p.found[uri] = true
	}
	for uri, d := range s.documents {
		if _, within := p.name(d.uri); within {
			p.found[uri] = true // an empty list is published, too
		}
	}
	for uri := range p.found {
		s.findings.of(uri).kalypso = by[uri]
		if by[uri] == nil {
			delete(p.found, uri)
		}
		s.publishLocked(uri)
	}
}

// nowhere is the file for diagnostics without a position.
const nowhere = "cue.mod/module.cue"

// firstFile returns the file in which a diagnostic is shown.
func firstFile(d diag.Diagnostic) string {
	for _, s := range d.Sites {
		if !s.Position.IsZero() {
			return s.Position.File
		}
	}
	return nowhere
}

// sources are the texts of a platform's files: open documents, and otherwise the files on disk.
type sources struct {
	root      string
	documents documents
	read      map[string]text
}

func (s sources) uri(file string) string {
	if filepath.IsAbs(file) {
		return uriOf(file)
	}
	return uriOf(filepath.Join(s.root, filepath.FromSlash(file)))
}

func (s sources) text(uri string) text {
	if d := s.documents.at(uri); d != nil {
		return d.text
	}
	if _, ok := s.read[uri]; !ok {
		data, _ := regular.ReadFile(fileOf(uri)) // without it, positions are computed for an empty file
		s.read[uri] = newText(string(data))
	}
	return s.read[uri]
}

// location returns the location of a position: the word that begins there.
func (s sources) location(p model.Position) location {
	uri := s.uri(p.File)
	t := s.text(uri)
	line := min(max(p.Line-1, 0), len(t.lines)-1)
	offset := min(t.lines[line]+max(p.Column-1, 0), len(t.string))
	return location{uri, t.span(offset, t.wordEnd(offset))}
}

// manual is the page with a heading for each code.
const manual = "https://github.com/kalypso-io/kalypso/blob/main/docs/diagnostics.md#"

// diagnostic returns a diagnostic in the form of the protocol.
func (s sources) diagnostic(d diag.Diagnostic) diagnostic {
	out := diagnostic{Severity: severityError, Code: string(d.Code), Source: "kalypso",
		Message: messageOf(d)}
	if d.Severity == diag.Warning {
		out.Severity = severityWarning
	}
	if e, ok := diag.Explain(d.Code); ok {
		out.Description = &codeDescription{manual + anchor(string(e.Code)+": "+e.Title)}
	}
	placed := false
	for _, site := range d.Sites {
		if site.Position.IsZero() {
			continue
		}
		at := s.location(site.Position)
		if !placed {
			out.Range, placed = at.Range, true
			if site.Note == "" {
				continue
			}
		}
		note := site.Note
		if note == "" {
			note = "see here"
		}
		out.Related = append(out.Related, relatedLocation{at, note})
	}
	return out
}

// messageOf returns the message of a diagnostic without its places.
func messageOf(d diag.Diagnostic) string {
	text := d.Message
	const most = 3
	switch n := len(d.Assignments); {
	case n > most:
		text += fmt.Sprintf(" on %s and %d more", strings.Join(d.Assignments[:most], ", "), n-most)
	case n > 0:
		text += " on " + strings.Join(d.Assignments, ", ")
	case d.Environment != "" && len(d.Sites) == 0:
		text += " in " + d.Environment
	}
	if d.Hint != "" {
		text += "\nhint: " + d.Hint
	}
	return text
}

// anchor returns the fragment that forges use for a heading.
func anchor(heading string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(heading) {
		switch {
		case r == ' ':
			b.WriteByte('-')
		case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			b.WriteRune(r)
		}
	}
	return b.String()
}
