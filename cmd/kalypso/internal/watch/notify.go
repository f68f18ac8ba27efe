package watch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/fsnotify/fsnotify"
)

// subscribe requests notifications for every folder that exists now. Existing subscriptions stay.
func (w *Watcher) subscribe() error {
	// The system would continue to send notifications about folders below a moved one, by their
	// old names.
	for _, path := range w.notifier.WatchList() {
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			_ = w.notifier.Remove(path) // the system may have ended it itself
		}
	}
	w.linked, w.aside = map[string]bool{}, map[string]bool{}
	watched := map[string]bool{}
	err := w.walk(func(folder string) error {
		watched[folder] = true
		return w.add(folder)
	}, func(file string, e fs.DirEntry) error {
		if e.Type()&fs.ModeSymlink == 0 {
			return nil
		}
		if target, err := filepath.EvalSymlinks(file); err == nil {
			w.linked[target] = true
		}
		return nil
	})
	for target := range w.linked {
		if folder := filepath.Dir(target); err == nil && !watched[folder] {
			w.aside[folder] = true
			err = w.add(folder)
		}
	}
	var unable *unableError
	if errors.As(err, &unable) {
		return w.poll(err)
	}
	return err
}

// unableError is the error if the system sends no notifications for a folder.
type unableError struct{ error }

func (e *unableError) Unwrap() error { return e.error }

func (w *Watcher) add(folder string) error {
	err := w.notifier.Add(folder)
	switch {
	case err == nil, errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR),
		errors.Is(err, fs.ErrPermission):
		return nil // gone again, or not readable, which the build reports
	}
	return &unableError{explain(err)}
}

// explain adds the remedy to an error about a limit of the system.
func explain(err error) error {
	switch {
	case runtime.GOOS == "linux" && errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("the system watches no more folders for this user; sudo sysctl "+
			"fs.inotify.max_user_watches=524288 raises the limit: %w", err)
	case runtime.GOOS == "linux" && errors.Is(err, syscall.EMFILE):
		return fmt.Errorf("too many programs watch files, or too many files are open; sudo sysctl "+
			"fs.inotify.max_user_instances=1024, or ulimit -n, raises the limit: %w", err)
	case errors.Is(err, syscall.EMFILE):
		return fmt.Errorf("too many files are open; ulimit -n raises the limit: %w", err)
	}
	return fmt.Errorf("the system does not tell of changes: %w", err)
}

// concerns reports whether an event is about a file that counts.
func (w *Watcher) concerns(e fsnotify.Event) bool {
	// A file that becomes readable is a change. Elsewhere indexes and virus scanners
	// set attributes of files that were just written, again and again.
	if e.Op == fsnotify.Chmod && runtime.GOOS != "linux" {
		return false
	}
	if e.Name == w.Root || w.linked[e.Name] {
		return true
	}
	return w.counts(e.Name) && !w.aside[filepath.Dir(e.Name)] && !w.aside[e.Name]
}
