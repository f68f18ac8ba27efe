package lsp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/edit/names"
	"github.com/kalypso-io/kalypso/internal/scratch"
)

// cursor is a place in a document of a platform, with the current names of the platform. The
// zero value is nowhere.
type cursor struct {
	*names.Index
	path    string
	offset  int
	files   sources
	text    text
	results *results // of the last compilation; nil before the first one
}

// cursorAt returns the place of a request. It returns false outside of platforms.
func (s *server) cursorAt(p inDocument) (n cursor, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.documents.at(p.TextDocument.URI)
	if d == nil {
		return n, false
	}
	of := s.platformOfLocked(filepath.Dir(fileOf(d.uri)))
	if of == nil {
		return n, false
	}
	name, within := of.name(d.uri)
	if !within {
		return n, false
	}
	return cursor{s.indexLocked(of), name, d.text.offset(p.Position), s.sourcesLocked(of), d.text,
		of.results}, true
}

func (s *server) sourcesLocked(p *platform) sources {
	return sources{p.root, s.documents, map[string]text{}}
}

// overlayLocked returns the texts of the platform's open documents.
func (s *server) overlayLocked(p *platform) source.Overlay {
	over := source.Overlay{}
	for _, d := range s.documents {
		if name, within := p.name(d.uri); within {
			over[name] = []byte(d.text.string)
		}
	}
	return over
}

// indexLocked returns the names of a platform in its current state. After the editor reports a
// change on disk, indexLocked reads the files again.
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

// place returns a place as a location.
func (n cursor) place(p names.Place) location {
	uri := n.files.uri(p.Path)
	return location{uri, n.files.text(uri).span(p.Start, p.End)}
}

func (n cursor) places(ps []names.Place) []location {
	out := []location{}
	for _, p := range ps {
		out = append(out, n.place(p))
	}
	return out
}

// edit returns edits in the form of the protocol.
func (n cursor) edit(edits []names.Edit) map[string]any {
	changes := map[string][]textEdit{}
	for _, e := range edits {
		at := n.place(e.Place)
		changes[at.URI] = append(changes[at.URI], textEdit{at.Range, e.Text})
	}
	return map[string]any{"changes": changes}
}

// kinds maps kinds of completions to the protocol's numbers: a field, an enum's member, a
// reference, a property, a value.
var kinds = map[names.Kind]int{names.OfField: 5, names.OfEnum: 20, names.OfName: 18,
	names.OfLabel: 10, names.OfValue: 12, names.OfKey: 10}

// complete returns kalypso's completions, and whether they are complete. They are for a name or
// a value, and not for a field: CUE's server knows more fields.
func (n cursor) complete() (items []any, all bool) {
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

// hover returns kalypso's information about the word at the place. It includes values of the
// last compilation if the file has not changed since then.
func (n cursor) hover(ctx context.Context) (any, bool) {
	var h names.Hover
	ok := false
	if n.results != nil && n.results.texts[n.path] == n.text.string {
		h, ok = n.results.hover(ctx, hoverQuestion{n.path, n.offset})
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

// lenses returns the lenses above the entities of the file, as of the platform's last
// compilation.
func (n cursor) lenses() []any {
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

// fixes returns the changes that may fix findings in the range of a request.
func (n cursor) fixes(within span) (out []any) {
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

// A platform is compiled in a process of its own: CUE cannot be cancelled, and an expression in
// the editor may have no end. The process stays, and answers questions that need the build,
// until there is a newer process.

// compileOutput is the first line of such a process's output.
type compileOutput struct {
	Diagnostics []diag.Diagnostic
	Lenses      map[string][]names.Lens // by the paths of files
}

// hoverQuestion is the question for the hover at an offset of a file. The answer is a line with
// a hover, or null.
type hoverQuestion struct {
	Path   string
	Offset int
}

// Answer runs in such a process after it has compiled the platform at root. It prints the first
// results for the editor, and answers questions until the input ends.
func Answer(ctx context.Context, in io.Reader, out io.Writer, b *compiler.Build,
	over source.Overlay) error {
	x := names.New(filesOf(b.Platform.Root, over), nil)
	r := &names.Results{Build: b}
	first := compileOutput{b.Diagnostics, map[string][]names.Lens{}}
	for _, f := range filesOf(b.Platform.Root, over) {
		if lenses := x.Lenses(f.Path, r); len(lenses) > 0 {
			first.Lenses[f.Path] = lenses
		}
	}
	enc, dec := json.NewEncoder(out), json.NewDecoder(in)
	if err := enc.Encode(first); err != nil {
		return err
	}
	for {
		var q hoverQuestion
		if err := dec.Decode(&q); err != nil {
			return nil // the server has ended, or has a newer build
		}
		var answer *names.Hover
		if h, ok := x.Hover(ctx, q.Path, q.Offset, r); ok {
			answer = &h
		}
		if err := enc.Encode(answer); err != nil {
			return err
		}
	}
}

// filesOf returns the CUE files of the platform at root: files beside cue.mod, and files of
// environments.
func filesOf(root string, over source.Overlay) []names.File {
	files := source.NewFiles(root, over)
	var out []names.File
	var read func(dir string)
	read = func(dir string) {
		entries, _ := files.ReadDir(dir) // an unreadable folder has no names
		for _, e := range entries {
			name := path.Join(dir, e.Name())
			switch {
			case strings.HasPrefix(e.Name(), ".") || strings.HasPrefix(e.Name(), "_"):
			case path.Ext(name) == ".cue":
				if text, err := files.ReadFile(name); err == nil {
					out = append(out, names.File{Path: name, Text: text})
				}
			case e.IsDir() && (dir != "." || name == source.Environments):
				read(name)
			}
		}
	}
	read(".")
	return out
}

// results are the results of a compilation, with its process.
type results struct {
	compileOutput
	texts map[string]string // of all files at the time of the compilation

	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	close func() error
	mu    sync.Mutex // allows one question at a time
}

// compileApart compiles a platform, with text over its files, in the process of a command. The
// last argument of the command is a file with the overlay. compileApart kills the process if
// ctx ends before it has printed its first line.
func compileApart(ctx context.Context, start func(root, overlay string) (*exec.Cmd, error),
	root string, over source.Overlay) (_ *results, err error) {
	dir, remove, err := scratch.Dir("lsp")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }() // the process has read it
	// The overlay is not on standard input, because a restarted process must read it again.
	file := filepath.Join(dir, "overlay.json")
	text, err := json.Marshal(over)
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		return nil, err
	}
	r := &results{texts: map[string]string{}}
	for _, f := range filesOf(root, over) {
		r.texts[f.Path] = string(f.Text)
	}
	if r.cmd, err = start(root, file); err != nil {
		return nil, err
	}
	if r.in, err = r.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	var failed bytes.Buffer
	r.cmd.Stderr = &failed
	if err := r.cmd.Start(); err != nil {
		return nil, err
	}
	r.close = sync.OnceValue(func() error {
		_ = r.cmd.Process.Kill() // it may have ended
		return r.cmd.Wait()
	})
	stop := context.AfterFunc(ctx, func() { _ = r.cmd.Process.Kill() })
	defer stop()
	r.out = bufio.NewReader(out)
	line, err := r.out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &r.compileOutput)
	}
	if err != nil {
		_ = r.close()
		return nil, errors.Join(err, errors.New(strings.TrimSpace(failed.String())))
	}
	return r, nil
}

// hover sends a question to the process. If ctx ends before the answer, it ends the process.
func (r *results) hover(ctx context.Context, q hoverQuestion) (h names.Hover, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ctx.Err() != nil || json.NewEncoder(r.in).Encode(q) != nil {
		return h, false
	}
	stop := context.AfterFunc(ctx, func() { _ = r.cmd.Process.Kill() })
	defer stop()
	line, err := r.out.ReadBytes('\n')
	var answer *names.Hover
	if err != nil || json.Unmarshal(line, &answer) != nil || answer == nil {
		return h, false
	}
	return *answer, true
}
