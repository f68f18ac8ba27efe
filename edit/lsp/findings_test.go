//go:build unix

package lsp

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// TestLocationOfPipe checks that a diagnostic about a pipe without a writer does not block the
// server.
func TestLocationOfPipe(t *testing.T) {
	root := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(root, "x.cue"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := sources{root: root, read: map[string]text{}}
	if at := s.location(model.Position{File: "x.cue", Line: 1, Column: 1}); at.URI != s.uri("x.cue") {
		t.Errorf("%+v", at)
	}
}
