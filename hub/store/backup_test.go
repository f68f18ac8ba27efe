package store_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/hub/store"
	"github.com/kalypso-io/kalypso/internal/testing/hubtest"
)

// served runs a hub on a database with the content of testdata/older.
func served(t *testing.T) (*hub.Hub, string) {
	t.Helper()
	name := hubtest.SQLite(t)()
	left(t, name, last(t))
	return run(t, hubtest.Open(t, name), func(err error) { t.Error(err) }), name
}

// number sends a report with a number. Each has a later time and a different state.
func number(h *hub.Hub, n int) error {
	item := state.Item{Assignment: "prod/edge/hello-main", Commit: "c3", State: state.ReportedFailed, Message: strconv.Itoa(n)}
	if n%2 == 0 {
		item.State = state.ReportedProgressing
	}
	_, err := h.Report(context.Background(), &state.Report{Cluster: "oslo", Received: now().Add(time.Duration(n) * time.Millisecond), Items: []state.Item{item}})
	return err
}

// TestBackup copies a database while a cluster reports, and afterwards. A hub on a copy gives the
// same answers as the hub on the database.
func TestBackup(t *testing.T) {
	h, _ := served(t)
	dir := t.TempDir()
	var sent, acknowledged atomic.Int64
	copied, done := make(chan struct{}), make(chan error)
	reporting := make(chan struct{})
	go func() {
		for n := 1; ; n++ {
			select {
			case <-copied:
				done <- nil
				return
			default:
			}
			sent.Store(int64(n))
			if err := number(h, n); err != nil {
				done <- err
				return
			}
			if acknowledged.Store(int64(n)); n == 10 {
				close(reporting)
			}
		}
	}()
	<-reporting
	var names []string
	var least, most []int64
	for i := range 3 {
		names, least = append(names, filepath.Join(dir, strconv.Itoa(i))), append(least, acknowledged.Load())
		if err := h.Store().Backup(t.Context(), names[i]); err != nil {
			t.Fatal(err)
		}
		most = append(most, sent.Load())
	}
	close(copied)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		other := run(t, hubtest.Open(t, name), func(err error) { t.Error(err) })
		rows := hubtest.Rows(other.Fleet())
		n, err := strconv.ParseInt(rows[1].Message, 10, 64)
		if err != nil || n < least[i] || n > most[i] {
			t.Errorf("the copy has report %q, and should have one of %d to %d", rows[1].Message, least[i], most[i])
		}
		history, _, err := other.Store().History(t.Context(), store.Filter{Filter: state.Filter{Cluster: "oslo"}}, 1)
		if err != nil || history[0].Message != rows[1].Message || history[0].State != rows[1].State.String() {
			t.Errorf("the history of the copy ends with %+v, %v, and its state is %+v", history, err, rows[1])
		}
	}
	last := filepath.Join(dir, "last")
	if err := h.Store().Backup(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	is, want := answers(t, run(t, hubtest.Open(t, last), func(err error) { t.Error(err) })), answers(t, h)
	if is != want || !strings.Contains(want, "secret sss") {
		t.Errorf("a hub on the copy answers\n%s\nand the other one\n%s", is, want)
	}
}

// A copy has the hashes of tokens and the keys of sessions: no other user may read it, even while
// it is being written.
func TestBackupIsPrivate(t *testing.T) {
	h, _ := served(t)
	dir := t.TempDir()
	done := make(chan error)
	go func() {
		for i := range 20 {
			if err := h.Store().Backup(context.Background(), filepath.Join(dir, strconv.Itoa(i))); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	private := func() {
		t.Helper()
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if path == dir || err != nil {
				return nil // it is gone
			}
			if info, err := d.Info(); err == nil && info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s has mode %s", path, info.Mode())
			}
			return nil
		})
	}
	for {
		private()
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			private()
			if files, err := os.ReadDir(dir); err != nil || len(files) != 20 {
				t.Errorf("there are %v, %v", files, err)
			}
			return
		default:
		}
	}
}

// If a backup fails, no file remains, not even a part of it.
func TestBackupFails(t *testing.T) {
	h, name := served(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	file := filepath.Join(dir, "is-there")
	if err := os.WriteFile(file, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		ctx         context.Context
		file, error string
	}{
		"ended":    {ended, filepath.Join(dir, "copy"), "context canceled"},
		"there":    {t.Context(), file, file + " is there already"},
		"no":       {t.Context(), filepath.Join(dir, "no", "copy"), "there is no folder"},
		"a file":   {t.Context(), filepath.Join(file, "copy"), "not a directory"},
		"the same": {t.Context(), name, name + " is there already"},
	} {
		if err := h.Store().Backup(c.ctx, c.file); err == nil || !strings.Contains(err.Error(), c.error) {
			t.Errorf("%s: %v, and should be %s", what, err, c.error)
		}
	}
	files, err := os.ReadDir(dir)
	text, errText := os.ReadFile(file)
	if err := errors.Join(err, errText); err != nil || len(files) != 1 || string(text) != "mine" {
		t.Errorf("there are %v, %q, %v", files, text, err)
	}
}
