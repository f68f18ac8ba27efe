// Package watch says when files change: by what the system tells, or by looking
// again and again where it tells nothing.
//
// A Watcher has no goroutine and no queue of its own. What happens while nobody
// waits is kept by the system, or seen at the next look, so that no change is
// lost between two calls of Next.
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
	// quiet is how long nothing may change before a burst of changes is over.
	quiet = 100 * time.Millisecond
	// longest is how long a burst can last.
	longest = time.Second
	// pollEvery is how often a Watcher that polls looks.
	pollEvery = 500 * time.Millisecond
)

// Options say what to watch. Paths are absolute and without links.
type Options struct {
	// Root is watched with all folders below it. It must stay: see GoneError.
	Root string
	// Outside returns more folders that are watched so, each time that the folders
	// are looked through; nil for none. One that is not there does not count.
	Outside func() []string
	// Except are folders that are not watched.
	Except []string
	// Follow says whether a link to a folder is watched like a folder; nil for
	// none, and what they lead to does not count. What links to files lead to does.
	Follow func(path string) bool
	// Poll looks at the size, time and mode of every file twice a second instead of
	// asking the system to tell.
	Poll bool
	// Warn is called, at most once, with the reason why files are polled though nobody asked for it.
	Warn func(error)
}

// GoneError says that the folder that is watched does not exist any more.
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

// Open begins to watch: changes from now on count. The error is a GoneError, or
// about the root's files. A system that cannot tell of changes, or of no more of
// them, is no error: the files are polled, and Warn is called.
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

// Next returns nil once files have changed since Open or the call before, and
// then not for a tenth of a second; after a second of changes it does not wait
// longer. The error is that of the context, or a GoneError.
func (w *Watcher) Next(ctx context.Context) error {
	if w.notifier == nil {
		return w.nextLook(ctx)
	}
	if err := await(ctx, w.notifier.Events, w.notifier.Errors, w.concerns); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return w.poll(err)
	}
	return w.subscribe()
}

// await returns nil once events that concern were followed by silence, or went
// on for too long. The error is that of the context, or one of errs after which
// events may be missing for good.
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

// stamp is what a Watcher that polls remembers of a file, or of what a link
// leads to.
type stamp struct {
	size  int64
	mode  fs.FileMode
	mtime time.Time
}

// look remembers what there is.
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

func (w *Watcher) nextLook(ctx context.Context) error {
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
