// Package watch reports when files change. It uses the notifications of the system, or compares
// the files again and again if the system sends none.
//
// A Watcher has no goroutine and no queue of its own. Between two calls of Next, the system keeps
// the changes, or the next comparison finds them, so that no change is lost.
package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// quiet is the time without changes after which a burst of changes is over.
	quiet = 100 * time.Millisecond
	// longest is the longest time of a burst.
	longest = time.Second
	// pollEvery is the interval at which a polling Watcher compares files.
	pollEvery = 500 * time.Millisecond
)

// Options are the folders to watch, and how to watch them. Paths are absolute and without links.
type Options struct {
	// Root is watched with all folders below it. It must stay: see GoneError.
	Root string
	// Outside returns more folders to watch in the same way. The Watcher calls it each time that
	// it reads the folders. It is nil if only Root is watched. A folder that does not exist does not
	// count.
	Outside func() []string
	// Except are folders that are not watched.
	Except []string
	// Follow reports whether a link to a folder is watched like a folder. If it is nil, the
	// targets of links to folders do not count. The targets of links to files always do.
	Follow func(path string) bool
	// Poll compares the size, time and mode of every file twice a second instead of using the
	// system's notifications.
	Poll bool
	// Warn is called, at most once, with the reason why files are polled although Poll is false.
	Warn func(error)
}

// GoneError is the error if the watched folder does not exist any more.
type GoneError struct{ Root string }

// Error names the folder.
func (e *GoneError) Error() string { return fmt.Sprintf("%s is gone", e.Root) }

// Watcher watches files. It is not for use by several goroutines.
type Watcher struct {
	scope
	warn     func(error)
	notifier *fsnotify.Watcher // nil for one that polls
	linked   map[string]bool   // files outside that links lead to
	aside    map[string]bool   // their folders
	seen     map[string]stamp  // by one that polls
}

// Open starts to watch: changes from now on count. It returns a GoneError if the root does not
// exist, or another error about the root's files. If the system cannot notify of changes, or of
// no more changes, Open does not fail. It polls the files, and calls Warn.
func Open(o Options) (*Watcher, error) {
	w := &Watcher{scope: scope{o}, warn: o.Warn}
	if o.Poll {
		return w, w.look()
	}
	var err error
	if w.notifier, err = fsnotify.NewWatcher(); err != nil {
		w.notifier = nil
		return w, w.poll(explain(err))
	}
	if err := w.subscribe(); err != nil {
		return w, errors.Join(err, w.Close())
	}
	return w, nil
}

// Close ends watching. A Watcher that is closed must not be used.
func (w *Watcher) Close() error {
	if w.notifier == nil {
		return nil
	}
	return w.notifier.Close()
}

// Next returns nil after files have changed since Open or the previous call. It waits until there
// are no more changes for a tenth of a second, but at most for a second after the first change.
// It returns the context's error if the context ends, and a GoneError if the root is gone.
func (w *Watcher) Next(ctx context.Context) error {
	if w.notifier == nil {
		var changed time.Time
		for wait := pollEvery; ; wait = quiet {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(wait):
			}
			now, err := w.stamps()
			if err != nil {
				return err
			}
			same := maps.Equal(w.seen, now)
			w.seen = now
			switch {
			case changed.IsZero() && same:
				wait = pollEvery
			case changed.IsZero():
				changed = time.Now()
			case same || time.Since(changed) >= longest:
				return nil
			}
		}
	}
	if err := await(ctx, w.notifier.Events, w.notifier.Errors, w.concerns); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return w.poll(err)
	}
	return w.subscribe()
}

// await returns nil after events that concern, either when no more arrive for a while, or when
// they have arrived for too long. It returns the context's error if the context ends, and an
// error from errs if events may be missing from then on.
func await(ctx context.Context, events <-chan fsnotify.Event, errs <-chan error,
	concerns func(fsnotify.Event) bool) error {
	var silence, patience <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e := <-events:
			if !concerns(e) {
				continue
			}
		case err := <-errs:
			if !errors.Is(err, fsnotify.ErrEventOverflow) { // too many events are a change
				return err
			}
		case <-silence:
			return nil
		case <-patience:
			return nil
		}
		silence = time.After(quiet)
		if patience == nil {
			patience = time.After(longest)
		}
	}
}

// poll makes a Watcher one that polls.
func (w *Watcher) poll(why error) error {
	if w.notifier != nil {
		why = errors.Join(why, w.notifier.Close())
		w.notifier = nil
	}
	if w.warn != nil {
		w.warn(why)
	}
	return w.look()
}

// stamp is the state of a file that a polling Watcher remembers. For a link, it is the state of
// the link's target.
type stamp struct {
	size  int64
	mode  fs.FileMode
	mtime time.Time
}

// look records the present state of the files.
func (w *Watcher) look() (err error) {
	w.seen, err = w.stamps()
	return err
}

func (w *Watcher) stamps() (map[string]stamp, error) {
	out := map[string]stamp{}
	err := w.walk(func(folder string) error {
		out[folder] = stamp{mode: fs.ModeDir}
		return nil
	}, func(file string, e fs.DirEntry) error {
		info, err := os.Stat(file)
		if err != nil {
			info, err = e.Info() // a link that leads nowhere
		}
		if err == nil {
			out[file] = stamp{info.Size(), info.Mode(), info.ModTime()}
		}
		return nil
	})
	return out, err
}
