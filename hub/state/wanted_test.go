package state_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/kalypso-io/kalypso/hub/state"
)

func TestBound(t *testing.T) {
	wanted := func(name, version, subject string) *state.DesiredState {
		return &state.DesiredState{
			Environment: "prod", Commits: []state.Commit{{ID: "1", Subject: subject}},
			Folders:  []state.Folder{{Name: "edge", ClusterType: "edge", Targets: []state.Target{{Name: name, Version: version}}}},
			Clusters: []state.Cluster{{Name: "c0", Folder: "edge"}},
		}
	}
	long := strings.Repeat("ä", 5000)
	a, b := wanted("hello-main", long+"1", "a\x00b"), wanted("hello-main", long+"2", "ok")
	for _, w := range []*state.DesiredState{a, b} {
		if err := w.Bound(); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{w.Folders[0].Targets[0].Version, w.Commits[0].Subject} {
			if len(text) > 500 || !utf8.ValidString(text) || strings.Contains(text, "\x00") {
				t.Errorf("%q", text)
			}
		}
	}
	if a.Folders[0].Targets[0].Version == b.Folders[0].Targets[0].Version {
		t.Error("two versions are one")
	}
	if b.Commits[0].Subject != "ok" {
		t.Errorf("%q", b.Commits[0].Subject)
	}
	for _, name := range []string{long, "a\x00b", "a\xff"} {
		if err := wanted(name, "1", "").Bound(); err == nil || !strings.Contains(err.Error(), "a name that is longer than 2000 bytes, or has a NUL") {
			t.Errorf("%.10q: %v", name, err)
		}
	}
	w := wanted("hello-main", "1", "")
	w.Clusters[0].Name = long
	if err := w.Bound(); err == nil || !strings.Contains(err.Error(), "a cluster whose name") {
		t.Error(err)
	}
}
