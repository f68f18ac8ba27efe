package watch

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
)

// deadline is the longest time until a change must be reported.
const deadline = 5 * time.Minute

// folders makes a root with a folder in it, and another folder next to the root.
func folders(t *testing.T) (root, beside string) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root, beside = filepath.Join(base, "root"), filepath.Join(base, "beside")
	for _, dir := range []string{filepath.Join(root, "in"), filepath.Join(root, "out"), filepath.Join(root, ".git"), beside} {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(root, "a"), "1")
	write(t, filepath.Join(root, "in", "b"), "1")
	write(t, filepath.Join(beside, "c"), "1")
	return root, beside
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, o Options) *Watcher {
	t.Helper()
	w, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// changes are the possible changes to files, each with a path of its own.
var changes = []struct {
	name   string
	before func(root, beside string) error
	change func(root, beside string) error
}{
	{"a file is written", nil, func(root, _ string) error { return os.WriteFile(filepath.Join(root, "in", "b"), []byte("22"), 0o666) }},
	{"a file is new", nil, func(root, _ string) error { return os.WriteFile(filepath.Join(root, "in", "new"), nil, 0o666) }},
	{"a file goes", nil, func(root, _ string) error { return os.Remove(filepath.Join(root, "a")) }},
	{"a file takes another's place", func(root, _ string) error {
		return os.WriteFile(filepath.Join(root, "a~"), []byte("22"), 0o666)
	}, func(root, _ string) error { return os.Rename(filepath.Join(root, "a~"), filepath.Join(root, "a")) }},
	{"a folder is new", nil, func(root, _ string) error { return os.Mkdir(filepath.Join(root, "new"), 0o777) }},
	{"a folder goes", nil, func(root, _ string) error { return os.RemoveAll(filepath.Join(root, "in")) }},
	{"a file that a link leads to", func(root, beside string) error {
		return os.Symlink(filepath.Join(beside, "c"), filepath.Join(root, "link"))
	}, func(_, beside string) error { return os.WriteFile(filepath.Join(beside, "c"), []byte("22"), 0o666) }},
	{"a file in a folder that a link leads to", func(root, beside string) error {
		return os.Symlink(beside, filepath.Join(root, "followed"))
	}, func(_, beside string) error { return os.WriteFile(filepath.Join(beside, "c"), []byte("22"), 0o666) }},
	{"a circle of links", func(root, _ string) error {
		return os.Symlink(root, filepath.Join(root, "in", "followed"))
	}, func(root, _ string) error { return os.WriteFile(filepath.Join(root, "a"), []byte("22"), 0o666) }},
	{"a file outside", func(root, beside string) error {
		return os.WriteFile(filepath.Join(root, "outside"), nil, 0o666)
	}, func(_, beside string) error { return os.WriteFile(filepath.Join(beside, "c"), []byte("22"), 0o666) }},
}

func optionsOf(root, beside string) Options {
	return Options{
		Root: root, Except: []string{filepath.Join(root, "out")},
		Follow: func(path string) bool { return filepath.Base(path) == "followed" },
		Outside: func() []string {
			if _, err := os.Stat(filepath.Join(root, "outside")); err != nil {
				return nil
			}
			return []string{beside, filepath.Join(beside, "missing")}
		},
	}
}

func TestNotified(t *testing.T) {
	for _, c := range changes {
		t.Run(c.name, func(t *testing.T) {
			root, beside := folders(t)
			if c.before != nil {
				must(t, c.before(root, beside))
			}
			o := optionsOf(root, beside)
			o.Warn = func(err error) { t.Error(err) }
			w := open(t, o)
			must(t, c.change(root, beside))
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			must(t, w.Next(ctx))
			if w.notifier == nil {
				t.Error("it polls")
			}
		})
	}
}

func TestPolled(t *testing.T) {
	for _, c := range changes {
		t.Run(c.name, func(t *testing.T) {
			root, beside := folders(t)
			if c.before != nil {
				must(t, c.before(root, beside))
			}
			synctest.Test(t, func(t *testing.T) {
				o := optionsOf(root, beside)
				o.Poll = true
				w := open(t, o)
				must(t, c.change(root, beside))
				begin := time.Now()
				must(t, w.Next(t.Context()))
				if took := time.Since(begin); took != pollEvery+quiet {
					t.Errorf("it takes %v", took)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := w.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("without a change: %v", err)
				}
			})
		})
	}
}

// TestFollowsFolders checks that new folders and moved folders are watched as well.
func TestFollowsFolders(t *testing.T) {
	root, beside := folders(t)
	w := open(t, optionsOf(root, beside))
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	deep := filepath.Join(root, "new", "deep")
	must(t, os.MkdirAll(deep, 0o777), w.Next(ctx))
	write(t, filepath.Join(deep, "file"), "1")
	must(t, w.Next(ctx))
	must(t, os.Rename(filepath.Join(root, "new"), filepath.Join(root, "moved")), w.Next(ctx))
	deep = filepath.Join(root, "moved", "deep")
	must(t, os.Mkdir(filepath.Join(deep, "deeper"), 0o777), w.Next(ctx))
	write(t, filepath.Join(deep, "deeper", "file"), "1")
	must(t, w.Next(ctx))
}

// TestGone checks that watching ends with a GoneError if the root is gone.
func TestGone(t *testing.T) {
	ways := map[string]func(root string) error{
		"removed": os.RemoveAll,
		"moved":   func(root string) error { return os.Rename(root, root+"-moved") },
		"a file":  func(root string) error { return errors.Join(os.RemoveAll(root), os.WriteFile(root, nil, 0o666)) },
	}
	for name, way := range ways {
		for _, poll := range []bool{false, true} {
			root, _ := folders(t)
			w := open(t, Options{Root: root, Poll: poll})
			must(t, way(root))
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			var gone *GoneError
			if err := w.Next(ctx); !errors.As(err, &gone) || gone.Root != root {
				t.Errorf("%s, polled %t: %v", name, poll, err)
			}
			if _, err := Open(Options{Root: root, Poll: poll}); !errors.As(err, &gone) {
				t.Errorf("%s, opened, polled %t: %v", name, poll, err)
			}
		}
	}
}

// TestUnable checks that files are polled if the system stops sending notifications, and that
// changes may have been missed counts as a change.
func TestUnable(t *testing.T) {
	root, _ := folders(t)
	var warnings []error
	w := open(t, Options{Root: root, Warn: func(err error) { warnings = append(warnings, err) }})
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()

	go func() { w.notifier.Errors <- fsnotify.ErrEventOverflow }()
	must(t, w.Next(ctx))
	if w.notifier == nil || len(warnings) > 0 {
		t.Fatalf("it polls after too many events: %v", warnings)
	}
	failure := errors.New("a failure")
	go func() { w.notifier.Errors <- failure }()
	must(t, w.Next(ctx))
	if len(warnings) != 1 || !errors.Is(warnings[0], failure) {
		t.Errorf("warnings: %v", warnings)
	}
	write(t, filepath.Join(root, "in", "b"), "22")
	must(t, w.Next(ctx))
	if w.notifier != nil || len(warnings) != 1 {
		t.Error("it does not poll")
	}
}

func TestExplain(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("limits of Linux")
	}
	for err, want := range map[error]string{
		syscall.ENOSPC: "fs.inotify.max_user_watches", syscall.EMFILE: "fs.inotify.max_user_instances", syscall.ENOSYS: "does not tell",
	} {
		if got := explain(&fs.PathError{Op: "watch", Path: "x", Err: err}); !strings.Contains(got.Error(), want) || !errors.Is(got, err) {
			t.Errorf("%v: %v", err, got)
		}
	}
}

// TestAwait checks the time until a burst counts as one change.
func TestAwait(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		at   []time.Duration // events
		want time.Duration
	}{
		"one":                     {[]time.Duration{50 * ms}, 150 * ms},
		"a burst":                 {[]time.Duration{0, 10 * ms, 20 * ms, 90 * ms, 189 * ms}, 289 * ms},
		"what comes later":        {[]time.Duration{0, 101 * ms}, 100 * ms},
		"a burst that goes on":    {every(90*ms, 3*time.Second), 1000 * ms},
		"and on, from when it is": {every(90*ms, 3*time.Second)[20:], 2800 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				events := make(chan fsnotify.Event, 1)
				stop, stopped := make(chan struct{}), make(chan struct{})
				go func() {
					defer close(stopped)
					for _, at := range c.at {
						time.Sleep(at - time.Since(begin))
						for _, name := range []string{"passing", "counts"} {
							select {
							case events <- fsnotify.Event{Name: name}:
							case <-stop:
								return
							}
						}
					}
				}()
				must(t, await(t.Context(), events, nil, func(e fsnotify.Event) bool { return e.Name == "counts" }))
				if got := time.Since(begin); got != c.want {
					t.Errorf("after %v, not %v", got, c.want)
				}
				close(stop)
				<-stopped
			})
		})
	}
}

func every(step, until time.Duration) (out []time.Duration) {
	for at := time.Duration(0); at < until; at += step {
		out = append(out, at)
	}
	return out
}

func TestAwaitIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		events := make(chan fsnotify.Event, 1)
		events <- fsnotify.Event{}
		err := await(ctx, events, nil, func(fsnotify.Event) bool { return false })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
}

func TestCounts(t *testing.T) {
	s := &scope{Options{Root: "/p", Except: []string{"/p/out"}}}
	for path, want := range map[string]bool{
		"/p/a.cue":                true,
		"/p/outer":                true,
		"/p/environments/dev":     true,
		"/p/.gitignore":           true,
		"/p/out":                  false,
		"/p/out/dev/small":        false,
		"/p/.git":                 false,
		"/p/.idea":                false,
		"/p/a.cue~":               false,
		"/p/.a.cue.swp":           false,
		"/p/.a.cue.swx":           false,
		"/p/4913":                 false,
		"/p/.#a.cue":              false,
		"/p/#a.cue#":              false,
		"/p/a.cue___jb_tmp___":    false,
		"/p/.goutputstream-ABCDE": false,
	} {
		if got := s.counts(path); got != want {
			t.Errorf("%s: %t", path, got)
		}
	}
}

// TestConcerns checks that changes next to the target of a link to a file do not count.
func TestConcerns(t *testing.T) {
	root, beside := folders(t)
	must(t, os.Symlink(filepath.Join(beside, "c"), filepath.Join(root, "link")))
	w := open(t, optionsOf(root, beside))
	for name, want := range map[string]bool{
		root:                             true,
		filepath.Join(root, "a"):         true,
		filepath.Join(root, "a~"):        false,
		filepath.Join(root, "out"):       false,
		filepath.Join(beside, "c"):       true,
		filepath.Join(beside, "another"): false,
		beside:                           false,
	} {
		if got := w.concerns(fsnotify.Event{Name: name, Op: fsnotify.Write}); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
