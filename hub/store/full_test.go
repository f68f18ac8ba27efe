package store

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub/state"
)

func wanted(digest string) *state.DesiredState {
	w := &state.DesiredState{Environment: "prod", Commits: []state.Commit{{ID: "1"}}, Folders: []state.Folder{{
		Name: "edge", ClusterType: "edge", Listed: true, Targets: []state.Target{{Name: "hello-main", Workload: "hello", Digest: digest}},
	}}}
	for i := range 200 {
		w.Clusters = append(w.Clusters, state.Cluster{Name: fmt.Sprintf("c%03d", i), Folder: "edge"})
	}
	return w
}

// TestFull checks a full disk: a write that does not fit stores nothing, and the earlier rows stay.
// When there is room again, a hub continues, with the texts that it could not store before.
func TestFull(t *testing.T) {
	ctx := context.Background()
	s, err := Open(ctx, filepath.Join(t.TempDir(), "hub.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	fleet, now := state.New(time.Hour, 0, time.UnixMilli(1)), time.UnixMilli(1_700_000_000_000).UTC()
	write := func(changes *state.Changes) error {
		_, err := s.Write(ctx, func(tx *Tx) error { return tx.Changes(ctx, now, changes) })
		return err
	}
	if err := write(fleet.Want(now, wanted("a"))); err != nil {
		t.Fatal(err)
	}
	var pages, transitions, number int
	count := func() (n int) {
		t.Helper()
		if err := s.read.QueryRow(`SELECT COUNT(*) FROM transition`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if err := s.db.QueryRow(`PRAGMA page_count`).Scan(&pages); err != nil {
		t.Fatal(err)
	}
	most := func(n int) {
		t.Helper()
		if err := s.db.QueryRow(fmt.Sprint(`PRAGMA max_page_count = `, n)).Scan(&number); err != nil {
			t.Fatal(err)
		}
	}
	most(pages)
	transitions = count()
	failed := false
	for i := range 50 { // the existing pages may have room
		report := &state.Report{Cluster: fmt.Sprintf("c%03d", i), Received: now, Items: []state.Item{{Assignment: "prod/edge/hello-main", Commit: "1", State: state.ReportedFailed, Message: strings.Repeat("m", 1000) + fmt.Sprint(i)}}}
		changes, _ := fleet.Observe(report)
		if err := write(changes); err != nil {
			if failed = true; !strings.Contains(err.Error(), "full") {
				t.Errorf("the error does not say why: %v", err)
			}
			if count() != transitions {
				t.Error("a part of a write that failed is stored")
			}
			most(pages + 1000)
			if err := write(changes); err != nil {
				t.Fatalf("there is room again: %v", err)
			}
			most(pages)
		}
		transitions++
	}
	if !failed {
		t.Fatal("the disk was not full")
	}
	rows, _, err := s.History(ctx, Filter{}, 50)
	if err != nil || len(rows) != 50 {
		t.Fatal(len(rows), err)
	}
	for i, r := range rows {
		if want := fmt.Sprint("m", 49-i); !strings.HasSuffix(r.Message, want) || r.Cluster != fmt.Sprintf("c%03d", 49-i) {
			t.Errorf("%s has %.10s...", r.Cluster, r.Message)
		}
	}
}

// TestLocked has another program lock the database. A write waits, and fails after a while, or when
// its context ends.
func TestLocked(t *testing.T) {
	ctx := context.Background()
	name := filepath.Join(t.TempDir(), "hub.db")
	s, err := Open(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	other, err := Open(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	tx, err := other.db.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(`UPDATE change SET number = 7`); err != nil {
		t.Fatal(err)
	}
	written := make(chan error)
	go func() {
		_, err := s.Write(ctx, func(tx *Tx) error {
			if tx.Last() != 7 {
				return fmt.Errorf("the last change is %d", tx.Last())
			}
			return nil
		})
		written <- err
	}()
	// Reads do not wait for writes.
	if number, err := s.Number(ctx); err != nil || number != 0 {
		t.Errorf("the last change is %d, %v", number, err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
}
