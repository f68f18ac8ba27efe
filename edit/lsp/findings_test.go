//go:build unix

package lsp

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// A diagnostic about a pipe that nobody writes to does not keep the server waiting.
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
