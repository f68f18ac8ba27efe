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

// VendorDir is the folder in the root of a platform with the content of its sources, for
// builds on machines without a store.
const VendorDir = "vendor"

// Library is the content that kalypso.lock pins. Any number of goroutines may use it.
type Library struct {
	Lock  *Lock
	Store *Store

	verified sync.Map // Entry -> func() error, the error of its content
}

// Open reads the lock of the platform, or the application, at root. machine is the
// machine's store, or "" for the user's store. Errors in the lock are diagnostics with
// positions. Open returns an error if a file cannot be read.
func Open(root, machine string) (*Library, []diag.Diagnostic, error) {
	locked, ds, err := ReadLock(root)
	if err != nil {
		return nil, nil, err
	}
	return &Library{Lock: locked, Store: storeOf(root, machine)}, ds, nil
}

// Alone is [Store.Alone] for changes of the lock of root: call it before [Open], and
// release after the lock is written.
func Alone(ctx context.Context, root, machine string) (release func(), err error) {
	return storeOf(root, machine).Alone(ctx, root)
}

func storeOf(root, machine string) *Store {
	if machine == "" {
		machine, _ = MachineDir() // reads report what is missing
	}
	return OpenStore(filepath.Join(root, VendorDir), machine)
}

// Entry returns the pin of a source, or a diagnostic without a site if the source is not
// pinned.
func (l *Library) Entry(s Source) (Entry, []diag.Diagnostic) {
	e, ok := l.Lock.Find(s)
	if !ok {
		return e, []diag.Diagnostic{diag.New(diag.NotLocked, fmt.Sprintf("%s is not in %s", s, FileName)).
			Hinting("run `kalypso lock`, and commit " + FileName)}
	}
	return e, nil
}

// Pinned returns the pin of a source if the store has its content, or else a diagnostic
// without a site. It verifies the content once, so a whole build sees the same. So cached
// results do not hide that content is missing or was changed.
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

// Content returns the bytes that an entry pins, or a diagnostic without a site; the next
// call may have another result.
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

// why returns the diagnostic for content that the store does not return.
func why(e Entry, err error) []diag.Diagnostic {
	var absent *MissingError
	var damaged *DamagedError
	var size *SizeError
	var d diag.Diagnostic
	switch {
	case err == nil:
		return nil
	case errors.As(err, &absent):
		d = diag.New(diag.MissingContent,
			fmt.Sprintf("the content of %s, pinned to %s, is not in the store", e.Source, e.Revision)).
			Hinting("run `kalypso lock`, which fetches exactly what is pinned; for a machine without a " +
				"network, run `kalypso vendor` on one that has it")
	case errors.As(err, &damaged):
		d = diag.New(diag.DamagedContent,
			fmt.Sprintf("the content of %s is not what %s pins: %v", e.Source, FileName, err)).
			Hinting(damaged.Hint())
	case errors.As(err, &size):
		d = diag.New(diag.DamagedContent, err.Error()).Hinting(size.Hint())
	default:
		d = diag.New(diag.MissingContent,
			fmt.Sprintf("the content of %s cannot be read: %v", e.Source, err)).
			Hinting("correct the permissions of the store, or run `kalypso lock`")
	}
	return []diag.Diagnostic{d}
}

// Tree returns the files that an entry pins, or a diagnostic.
func (l *Library) Tree(e Entry) (*archive.Tree, []diag.Diagnostic) {
	data, ds := l.Content(e)
	if len(ds) > 0 {
		return nil, ds
	}
	tree, err := archive.Read(data)
	if err != nil {
		return nil, []diag.Diagnostic{diag.New(diag.BadSource,
			fmt.Sprintf("the content of %s cannot be used: %v", e.Source, err)).
			Hinting("correct it where it is kept, and run `kalypso lock --update-all`")}
	}
	return tree, nil
}

// Digest returns a digest of all pins, or "".
func (l *Library) Digest() model.Digest {
	if len(l.Lock.Sources) == 0 {
		return ""
	}
	text, _ := json.Marshal(l.Lock.Sources) // of strings and numbers
	return model.DigestBytes(text)
}
