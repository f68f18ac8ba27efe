package dependency

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/archive"
)

// VendorDir is the folder in the root of a platform that holds the content of its
// sources for builds on machines that have none.
const VendorDir = "vendor"

// Library is what kalypso.lock pins, as a store holds it. Several goroutines may
// use it.
type Library struct {
	Lock  *Lock
	Store *Store

	verified sync.Map // Entry -> func() error, what is wrong with its content
}

// Open reads the lock of the platform, or the application, at root. machine is the
// machine's store; "" for the user's. What is wrong with the lock is said in the
// diagnostics, which have positions; the error is for what cannot be read.
func Open(root, machine string) (*Library, []diag.Diagnostic, error) {
	locked, ds, err := ReadLock(root)
	if err != nil {
		return nil, nil, err
	}
	return &Library{Lock: locked, Store: storeOf(root, machine)}, ds, nil
}

// Alone is [Store.Alone] for who opens the library of root to change what its
// lock pins: it comes before [Open], and release after the lock is written.
func Alone(ctx context.Context, root, machine string) (release func(), err error) {
	return storeOf(root, machine).Alone(ctx, root)
}

func storeOf(root, machine string) *Store {
	if machine == "" {
		machine, _ = MachineDir() // who asks for content is told what is missing
	}
	return OpenStore(filepath.Join(root, VendorDir), machine)
}

// Entry returns what a source is pinned to, or says that it is not, without a site.
func (l *Library) Entry(s Source) (Entry, []diag.Diagnostic) {
	e, ok := l.Lock.Find(s)
	if !ok {
		return e, []diag.Diagnostic{diag.New(diag.NotLocked, fmt.Sprintf("%s is not in %s", s, FileName)).
			Hinting("run `kalypso lock`, and commit " + FileName)}
	}
	return e, nil
}

// Pinned returns what a source is pinned to, if the store holds it unharmed, or
// says, without a site, why not. The content is verified once, so that all of a
// build sees the same, and what the build remembers does not hide that content is
// gone or was tampered with.
func (l *Library) Pinned(s Source) (Entry, []diag.Diagnostic) {
	e, ds := l.Entry(s)
	if len(ds) > 0 {
		return e, ds
	}
	verify, _ := l.verified.LoadOrStore(e, sync.OnceValue(func() error {
		_, err := l.get(e)
		return err
	}))
	return e, why(e, verify.(func() error)())
}

// Content returns the bytes that an entry pins, or says, without a site, why they
// are not to be had, which may be otherwise the next time.
func (l *Library) Content(e Entry) ([]byte, []diag.Diagnostic) {
	data, err := l.get(e)
	return data, why(e, err)
}

// get returns the bytes that an entry pins, verified.
func (l *Library) get(e Entry) ([]byte, error) {
	data, err := l.Store.Get(e.Content)
	if err == nil {
		err = e.Fits(data)
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}

// why says why the store does not give the content of an entry.
func why(e Entry, err error) []diag.Diagnostic {
	var absent *MissingError
	var damaged *DamagedError
	var size *SizeError
	var d diag.Diagnostic
	switch {
	case err == nil:
		return nil
	case errors.As(err, &absent):
		d = diag.New(diag.MissingContent, fmt.Sprintf("the content of %s, pinned to %s, is not in the store", e.Source, e.Revision)).
			Hinting("run `kalypso lock`, which fetches exactly what is pinned; for a machine without a network, run `kalypso vendor` on one that has it")
	case errors.As(err, &damaged):
		d = diag.New(diag.DamagedContent, fmt.Sprintf("the content of %s is not what %s pins: %v", e.Source, FileName, err)).
			Hinting(damaged.Hint())
	case errors.As(err, &size):
		d = diag.New(diag.DamagedContent, err.Error()).Hinting(size.Hint())
	default:
		d = diag.New(diag.MissingContent, fmt.Sprintf("the content of %s cannot be read: %v", e.Source, err)).
			Hinting("correct the permissions of the store, or run `kalypso lock`")
	}
	return []diag.Diagnostic{d}
}

// Tree returns the files that an entry pins, or says why there are none.
func (l *Library) Tree(e Entry) (*archive.Tree, []diag.Diagnostic) {
	data, ds := l.Content(e)
	if len(ds) > 0 {
		return nil, ds
	}
	tree, err := archive.Read(data)
	if err != nil {
		return nil, []diag.Diagnostic{diag.New(diag.BadSource, fmt.Sprintf("the content of %s cannot be used: %v", e.Source, err)).
			Hinting("correct it where it is kept, and run `kalypso lock --update-all`")}
	}
	return tree, nil
}

// Digest identifies what is pinned; "" for nothing.
func (l *Library) Digest() model.Digest {
	if len(l.Lock.Sources) == 0 {
		return ""
	}
	text, _ := json.Marshal(l.Lock.Sources) // of strings and numbers
	return model.DigestBytes(text)
}
