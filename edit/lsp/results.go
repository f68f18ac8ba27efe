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

// A platform is compiled in a process of its own: CUE cannot be cancelled, and what is typed
// may have no end. The process stays, and answers what needs the build, until there is a
// newer one.

// compiled is the first line that such a process prints.
type compiled struct {
	Diagnostics []diag.Diagnostic
	Lenses      map[string][]names.Lens // by the paths of files
}

// question asks for the hover at an offset of a file. The answer is a line with a hover, or
// null.
type question struct {
	Path   string
	Offset int
}

// Answer is what such a process does once it has compiled the platform at root: it prints
// what the editor is to know, and answers questions until there are no more.
func Answer(ctx context.Context, in io.Reader, out io.Writer, b *compiler.Build, over source.Overlay) error {
	x := names.New(filesOf(b.Platform.Root, over), nil)
	r := &names.Results{Build: b}
	first := compiled{b.Diagnostics, map[string][]names.Lens{}}
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
		var q question
		if err := dec.Decode(&q); err != nil {
			return nil // the server has gone, or has a newer build
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

// filesOf returns the CUE files of the platform at root: those beside cue.mod, and those of
// environments.
func filesOf(root string, over source.Overlay) []names.File {
	files := source.NewFiles(root, over)
	var out []names.File
	var read func(dir string)
	read = func(dir string) {
		entries, _ := files.ReadDir(dir) // one that cannot be read has no names
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

// results are those of a compilation, with its process.
type results struct {
	compiled
	texts map[string]string // of all files, as they were compiled

	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	close func() error
	mu    sync.Mutex // one question after the other
}

// compileApart compiles a platform, with text over its files, in the process that a command
// is: its last argument is a file with the overlay. It is killed when ctx ends before it has
// printed its first line.
func compileApart(ctx context.Context, start func(root, overlay string) (*exec.Cmd, error),
	root string, over source.Overlay) (_ *results, err error) {
	dir, remove, err := scratch.Dir("lsp")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }() // it was read
	// Not on standard input: a process that begins again reads it again.
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
		err = json.Unmarshal(line, &r.compiled)
	}
	if err != nil {
		_ = r.close()
		return nil, errors.Join(err, errors.New(strings.TrimSpace(failed.String())))
	}
	return r, nil
}

// hover asks the process. It has ended where a question is given up.
func (r *results) hover(ctx context.Context, q question) (h names.Hover, ok bool) {
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
