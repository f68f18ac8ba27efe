package lsp

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
)

// clientCapabilities are what is used of an editor's.
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

// initialize starts CUE's server, and returns what this one can do.
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
		actions = map[string]any{"codeActionKinds": []string{"quickfix", "refactor.rewrite", "source.organizeImports"}}
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

// watched are the files whose changes by other programs matter.
var watched = []string{"**/*.cue", "**/kalypso.lock", "**/*.{json,yaml,yml}"}

// initialized asks the editor to tell of files that other programs change, and looks at
// what is wrong with the platforms of the folders.
func (s *server) initialized(string, json.RawMessage) error {
	if s.watches {
		var watchers []any
		for _, pattern := range watched {
			watchers = append(watchers, map[string]any{"globPattern": pattern})
		}
		go func() { // its answer says nothing
			_ = s.editor.Call(context.Background(), "client/registerCapability",
				map[string]any{"registrations": []any{map[string]any{
					"id": "files", "method": "workspace/didChangeWatchedFiles",
					"registerOptions": map[string]any{"watchers": watchers},
				}}}, nil)
		}()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.folders {
		if p := s.platformOfLocked(fileOf(f.URI)); p != nil {
			s.scheduleLocked(p)
		}
	}
	return nil
}

func (s *server) didChangeWorkspaceFolders(_ string, params json.RawMessage) error {
	var p struct {
		Event struct {
			Added   []workspaceFolder `json:"added"`
			Removed []workspaceFolder `json:"removed"`
		} `json:"event"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.folders = slices.DeleteFunc(slices.Clone(s.folders), func(f workspaceFolder) bool {
		return slices.ContainsFunc(p.Event.Removed, func(r workspaceFolder) bool { return r.URI == f.URI })
	})
	s.folders = append(s.folders, p.Event.Added...)
	s.cue.changeFolders(s.folders, params)
	for _, f := range p.Event.Added {
		if p := s.platformOfLocked(fileOf(f.URI)); p != nil {
			s.scheduleLocked(p)
		}
	}
	return nil
}

func (s *server) didChangeWatchedFiles(method string, params json.RawMessage) error {
	var p struct {
		Changes []struct {
			URI string `json:"uri"`
		} `json:"changes"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return err
	}
	s.cue.notify(method, params)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range p.Changes {
		if p := s.platformOfLocked(filepath.Dir(fileOf(c.URI))); p != nil {
			p.disk = nil
			s.scheduleLocked(p)
		}
	}
	return nil
}

func (s *server) didOpen(_ string, params json.RawMessage) error {
	var p didOpen
	if err := json.Unmarshal(params, &p); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setLocked(p.TextDocument.URI, p.TextDocument.Version, newText(p.TextDocument.Text))
	return nil
}

func (s *server) didChange(_ string, params json.RawMessage) error {
	var p didChange
	if err := json.Unmarshal(params, &p); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.documents.at(p.TextDocument.URI)
	if d == nil {
		return nil // it was never opened
	}
	t := d.text
	for _, c := range p.ContentChanges {
		t = t.change(c)
	}
	s.setLocked(d.uri, p.TextDocument.Version, t)
	return nil
}

// setLocked gives a document a text.
func (s *server) setLocked(uri string, version int, t text) {
	p := s.platformOfLocked(filepath.Dir(fileOf(uri)))
	d := newDocument(uri, version, t, p != nil)
	s.documents = s.documents.with(d)
	s.cue.open(d)
	s.parsedLocked(d)
	if p != nil {
		s.scheduleLocked(p)
	}
}

func (s *server) didSave(method string, params json.RawMessage) error {
	s.cue.notify(method, params)
	return nil // what was saved has been compiled
}

func (s *server) didClose(_ string, params json.RawMessage) error {
	var p inDocument
	if err := json.Unmarshal(params, &p); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	uri := p.TextDocument.URI
	if s.documents.at(uri) == nil {
		return nil
	}
	s.documents = s.documents.without(uri)
	s.cue.shut(uri)
	s.findings.of(uri).syntax, s.findings.of(uri).cue = nil, nil
	s.publishLocked(uri)
	if p := s.platformOfLocked(filepath.Dir(fileOf(uri))); p != nil {
		p.disk = nil
		s.scheduleLocked(p) // the text of the file holds again
	}
	return nil
}
