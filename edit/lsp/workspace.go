package lsp

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"time"

	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/edit/names"
	"github.com/kalypso-io/kalypso/internal/cuemodule"
)

// clientCapabilities are the editor's capabilities that the server uses.
type clientCapabilities struct {
	Workspace struct {
		DidChangeWatchedFiles struct {
			DynamicRegistration bool `json:"dynamicRegistration"`
		} `json:"didChangeWatchedFiles"`
		CodeLens struct {
			RefreshSupport bool `json:"refreshSupport"`
		} `json:"codeLens"`
	} `json:"workspace"`
	TextDocument struct {
		Rename struct {
			PrepareSupport bool `json:"prepareSupport"`
		} `json:"rename"`
		CodeAction struct {
			LiteralSupport *struct{} `json:"codeActionLiteralSupport"`
		} `json:"codeAction"`
	} `json:"textDocument"`
}

// initialize starts CUE's server, and returns the capabilities of this server.
func (s *server) initialize(params json.RawMessage) (any, error) {
	var p struct {
		RootURI          string             `json:"rootUri"`
		WorkspaceFolders []workspaceFolder  `json:"workspaceFolders"`
		Capabilities     clientCapabilities `json:"capabilities"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.folders = p.WorkspaceFolders
	if len(s.folders) == 0 && p.RootURI != "" {
		s.folders = []workspaceFolder{{p.RootURI, filepath.Base(fileOf(p.RootURI))}}
	}
	s.refreshes = p.Capabilities.Workspace.CodeLens.RefreshSupport
	s.watches = p.Capabilities.Workspace.DidChangeWatchedFiles.DynamicRegistration
	folders := s.folders
	s.mu.Unlock()
	s.cue.start(params, folders)

	var rename, actions any = true, true
	if p.Capabilities.TextDocument.Rename.PrepareSupport {
		rename = map[string]any{"prepareProvider": true}
	}
	if p.Capabilities.TextDocument.CodeAction.LiteralSupport != nil {
		actions = map[string]any{"codeActionKinds": []string{"quickfix", "refactor.rewrite",
			"source.organizeImports"}}
	}
	return map[string]any{
		"serverInfo": map[string]any{"name": "kalypso", "version": s.options.Version},
		"capabilities": map[string]any{
			"textDocumentSync": map[string]any{
				"openClose": true, "change": 2, "save": map[string]any{},
			},
			"completionProvider":         map[string]any{"triggerCharacters": []string{".", "\""}},
			"hoverProvider":              true,
			"definitionProvider":         true,
			"referencesProvider":         true,
			"documentSymbolProvider":     true,
			"codeLensProvider":           map[string]any{},
			"documentFormattingProvider": true,
			"codeActionProvider":         actions,
			"renameProvider":             rename,
			"workspace": map[string]any{"workspaceFolders": map[string]any{
				"supported": true, "changeNotifications": true,
			}},
		},
	}, nil
}

// watched are the patterns of files whose changes by other programs matter.
var watched = []string{"**/*.cue", "**/kalypso.lock", "**/*.{json,yaml,yml}"}

// initialized asks the editor to report files that other programs change. It starts the
// compilation of the platforms of the folders, to report their problems.
func (s *server) initialized(struct{}, json.RawMessage) {
	if s.watches {
		var watchers []any
		for _, pattern := range watched {
			watchers = append(watchers, map[string]any{"globPattern": pattern})
		}
		go func() { // the answer has no content
			_ = s.editor.Call(context.Background(), "client/registerCapability",
				map[string]any{"registrations": []any{map[string]any{
					"id": "files", "method": "workspace/didChangeWatchedFiles",
					"registerOptions": map[string]any{"watchers": watchers},
				}}}, nil)
		}()
	}
	for _, f := range s.folders {
		if p := s.platformOfLocked(fileOf(f.URI)); p != nil {
			s.scheduleLocked(p)
		}
	}
}

func (s *server) didChangeWorkspaceFolders(p didChangeWorkspaceFolders, params json.RawMessage) {
	s.folders = slices.DeleteFunc(slices.Clone(s.folders), func(f workspaceFolder) bool {
		return slices.ContainsFunc(p.Event.Removed,
			func(r workspaceFolder) bool { return r.URI == f.URI })
	})
	s.folders = append(s.folders, p.Event.Added...)
	s.cue.changeFolders(s.folders, params)
	for _, f := range p.Event.Added {
		if p := s.platformOfLocked(fileOf(f.URI)); p != nil {
			s.scheduleLocked(p)
		}
	}
}

func (s *server) didChangeWatchedFiles(p didChangeWatchedFiles, params json.RawMessage) {
	s.cue.notify("workspace/didChangeWatchedFiles", params)
	for _, c := range p.Changes {
		if p := s.platformOfLocked(filepath.Dir(fileOf(c.URI))); p != nil {
			p.disk = nil
			s.scheduleLocked(p)
		}
	}
}

func (s *server) didOpen(p didOpen, _ json.RawMessage) {
	s.setLocked(p.TextDocument.URI, p.TextDocument.Version, newText(p.TextDocument.Text))
}

func (s *server) didChange(p didChange, _ json.RawMessage) {
	d := s.documents.at(p.TextDocument.URI)
	if d == nil {
		return // it was never opened
	}
	t := d.text
	for _, c := range p.ContentChanges {
		t = t.change(c)
	}
	s.setLocked(d.uri, p.TextDocument.Version, t)
}

// setLocked sets the text of a document.
func (s *server) setLocked(uri string, version int, t text) {
	p := s.platformOfLocked(filepath.Dir(fileOf(uri)))
	d := newDocument(uri, version, t, p != nil)
	s.documents = s.documents.with(d)
	s.cue.open(d)
	// Publish the syntax errors of a document.
	f := s.findings.of(d.uri)
	before := len(f.syntax)
	f.syntax = syntaxErrors(d.text)
	if before+len(f.syntax) > 0 {
		s.publishLocked(d.uri)
	}
	if p != nil {
		s.scheduleLocked(p)
	}
}

func (s *server) didSave(params json.RawMessage) error {
	s.cue.notify("textDocument/didSave", params)
	return nil // the saved text has already been compiled
}

func (s *server) didClose(p inDocument, _ json.RawMessage) {
	uri := p.TextDocument.URI
	if s.documents.at(uri) == nil {
		return
	}
	s.documents = s.documents.without(uri)
	s.cue.shut(uri)
	s.findings.of(uri).syntax, s.findings.of(uri).cue = nil, nil
	s.publishLocked(uri)
	if p := s.platformOfLocked(filepath.Dir(fileOf(uri))); p != nil {
		p.disk = nil
		s.scheduleLocked(p) // the text of the file applies again
	}
}

// platform is a module with the schema. A document in it is open, or a folder of the workspace
// is in it.
type platform struct {
	root  string          // in the editor's spelling
	found map[string]bool // the URIs of files with findings of the last compilation

	results *results // of the last compilation; nil before the first one
	version int      // of the current files
	timer   *time.Timer
	cancel  context.CancelFunc // of the compilation under way; nil if none runs

	disk    []names.File // nil if they must be read
	index   *names.Index
	indexed int // the version of the index
}

// platformOfLocked returns the platform that a folder is in. It returns nil if the folder is
// not in a platform.
func (s *server) platformOfLocked(dir string) *platform {
	root := rootOf(dir)
	if root == "" {
		return nil
	}
	if s.platforms[root] == nil {
		if cuemodule.Unpinned(root, nil) {
			return nil // a different module of CUE
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

// rootOf returns the root of the module that a folder is in. The path of the root begins like
// the folder's path, because the editor knows files by the links that it followed. rootOf returns
// "" if there is no module.
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

// scheduleLocked compiles a platform when nothing has changed for a while. It cancels the
// compilation under way, because its results are outdated.
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
// compile keeps the last result, because most of the new one would be missing.
func (s *server) compile(p *platform, version int) {
	s.mu.Lock()
	parses := true
	for uri, d := range s.documents {
		_, within := p.name(d.uri)
		parses = parses && (!within || len(s.findings.of(uri).syntax) == 0)
	}
	if version != p.version || p.results != nil && !parses {
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
		// The answer has no content.
		go func() { _ = s.editor.Call(context.Background(), "workspace/codeLens/refresh", nil, nil) }()
	}
}

// stopCompiling ends all compilations, and waits for their end.
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
