package dependency

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
)

// The second process gets its turn when the first is done, and not before.
func TestAlone(t *testing.T) {
	s, root := OpenStore("", t.TempDir()), t.TempDir()
	first, err := s.Alone(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Alone(cancelled, root); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v while another has it", err)
	}
	elsewhere, err := s.Alone(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	elsewhere()

	var done atomic.Bool
	turn := make(chan error)
	go func() {
		release, err := s.Alone(t.Context(), root)
		if err == nil && !done.Load() {
			err = errors.New("it has it as well")
		}
		if err == nil {
			release()
		}
		turn <- err
	}()
	done.Store(true)
	first()
	if err := <-turn; err != nil {
		t.Error(err)
	}
	left, err := os.ReadDir(root)
	if err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// If a folder cannot be written, its content can still be used.
func TestAloneWithoutFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, machine := range []string{"", file} {
		release, err := OpenStore("", machine).Alone(t.Context(), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		release()
	}
}
