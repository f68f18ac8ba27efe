package compiler_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/internal/address"
)

// another is a fetcher that tries to lock the same platform from another kalypso while it
// answers.
type another struct {
	store, root string
	meets       int // answers during which the other one did not have to wait
	answers     int
	mu          sync.Mutex
}

func (a *another) Within(address.Reach) dependency.Fetcher { return a }

func (a *another) Resolve(_ context.Context, s dependency.Source) (dependency.Entry, []byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answers++
	impatient, cancel := context.WithCancel(context.Background())
	cancel()
	if release, err := dependency.Alone(impatient, a.root, a.store); err == nil {
		release()
		a.meets++
	}
	if s.Kind != dependency.Chart {
		return dependency.Entry{}, nil, errors.New("only the chart is there")
	}
	text := []byte("a chart")
	return dependency.Entry{Source: s, Revision: "1.0.0", Content: dependency.DigestOf(text), Size: int64(len(text))}, text, nil
}

func (a *another) Fetch(context.Context, dependency.Entry) ([]byte, error) {
	return nil, errors.New("nothing is there")
}

// Lock reads, resolves and writes pins while no other process does so.
func TestLockAlone(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"cue.mod/module.cue": "module: \"render.example/platform@v0\"\nlanguage: version: \"v0.15.0\"\n",
		"platform.cue":       renderedPlatform,
	} {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o777), os.WriteFile(name, []byte(text), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	a := &another{store: t.TempDir(), root: dir}
	locked, err := compiler.Lock(t.Context(), compiler.Request{Dir: dir, Store: a.store}, a, nil)
	if err != nil || len(locked.Sources) == 0 {
		t.Fatalf("%+v, %v", locked, err)
	}
	if a.answers == 0 || a.meets > 0 {
		t.Errorf("another may lock during %d of %d answers", a.meets, a.answers)
	}
}
