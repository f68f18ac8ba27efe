package lsp

import (
	"context"
	"path/filepath"
	"time"

	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/edit/names"
	"github.com/kalypso-io/kalypso/internal/cuemodule"
)

// platform is a module with the schema, in which a document is open, or which a folder of
// the workspace is in.
type platform struct {
	root  string          // as the editor names it
	found map[string]bool // the URIs of files in which the last compilation found something

	results *results // of the last compilation; nil for none
	version int      // of what would be compiled now
	timer   *time.Timer
	cancel  context.CancelFunc // of the compilation under way; nil for none

	disk    []names.File // nil if they have to be read
	index   *names.Index
	indexed int // the version that the index is of
}

// platformOfLocked returns the platform that a folder is in; nil for none.
func (s *server) platformOfLocked(dir string) *platform {
	root := rootOf(dir)
	if root == "" {
		return nil
	}
	if s.platforms[root] == nil {
		if cuemodule.Unpinned(root, nil) {
			return nil // some other module of CUE
		}
		s.platforms[root] = &platform{root: root, found: map[string]bool{}}
	}
	return s.platforms[root]
}

// name returns the path of a file from the root, with slashes, and whether it is below.
func (p *platform) name(uri string) (name string, within bool) {
	rel, err := filepath.Rel(p.root, fileOf(uri))
	return filepath.ToSlash(rel), err == nil && filepath.IsLocal(rel)
}

// rootOf returns the root of the module that a folder is in, by a path that begins as the
// folder's does: the editor knows files by the links that it followed. "" is for none.
func rootOf(dir string) string {
	if dir == "" {
		return ""
	}
	real, err := source.Root(dir)
	if err != nil {
		return ""
	}
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		if resolved, err := filepath.EvalSymlinks(at); err == nil && resolved == real {
			return at
		}
		if at == filepath.Dir(at) {
			return real
		}
	}
}

// scheduleLocked makes that a platform is compiled when nothing has changed for a while. What
// is compiled now is not of use any more.
func (s *server) scheduleLocked(p *platform) {
	p.version++
	if p.timer != nil && p.timer.Stop() {
		s.compiling.Done()
	}
	if p.cancel != nil {
		p.cancel()
	}
	if s.options.Compile == nil || s.stage > initialized {
		return
	}
	version := p.version
	s.compiling.Add(1)
	p.timer = time.AfterFunc(s.options.Delay, func() {
		defer s.compiling.Done()
		s.compile(p, version)
	})
}

// compile compiles a platform, unless it has changed since. While a document does not parse,
// the last result is kept: most of it would be missing.
func (s *server) compile(p *platform, version int) {
	s.mu.Lock()
	whole := true
	for uri, d := range s.documents {
		_, within := p.name(d.uri)
		whole = whole && (!within || len(s.findings.of(uri).syntax) == 0)
	}
	if version != p.version || p.results != nil && !whole {
		s.mu.Unlock()
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p.cancel = cancel
	over := s.overlayLocked(p)
	s.mu.Unlock()
	r, err := compileApart(ctx, s.options.Compile, p.root, over)
	s.mu.Lock()
	defer s.mu.Unlock()
	if version != p.version || err != nil {
		if r != nil {
			_ = r.close()
		}
		if err != nil && ctx.Err() == nil {
			s.say("kalypso cannot compile " + p.root + ": " + err.Error())
		}
		return
	}
	p.cancel = nil
	if p.results != nil {
		_ = p.results.close()
	}
	p.results = r
	s.foundLocked(p, r.Diagnostics)
	if s.refreshes {
		// its answer says nothing
		go func() { _ = s.editor.Call(context.Background(), "workspace/codeLens/refresh", nil, nil) }()
	}
}

// stopCompiling ends what is compiled, and waits for it.
func (s *server) stopCompiling() {
	s.mu.Lock()
	for _, p := range s.platforms {
		p.version++
		if p.timer != nil && p.timer.Stop() {
			s.compiling.Done()
		}
		if p.cancel != nil {
			p.cancel()
		}
	}
	s.mu.Unlock()
	s.compiling.Wait()
	for _, p := range s.platforms {
		if p.results != nil {
			_ = p.results.close()
		}
	}
}
