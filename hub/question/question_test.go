package question_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub/question"
	"github.com/kalypso-io/kalypso/hub/state"
)

// fleet has three environments. prod has two cluster types, and one of them lists no clusters. dev
// has only cluster types that list clusters, and stage has no promotion yet.
func fleet() *state.Fleet {
	now := time.Unix(1_700_000_000, 0)
	f := state.New(time.Hour, time.Minute, now)
	folder := func(name, base string, listed bool) state.Folder {
		of, _, _ := strings.Cut(name, ".")
		return state.Folder{Name: name, ClusterType: of, Ring: "canary", Base: base, Listed: listed, Targets: []state.Target{{Name: "till-main", Workload: "till", Version: "1.0.0", Digest: "d"}}}
	}
	f.Want(now, &state.DesiredState{Environment: "prod",
		Commits:  []state.Commit{{ID: "1", Rings: []state.Ring{{Name: "canary", Base: commit("aaaaaaa1")}}}, {ID: "0", Rings: []state.Ring{{Name: "canary", Base: commit("aaaaaaa2")}}}},
		Folders:  []state.Folder{folder("box.new", commit("aaaaaaa1"), false), folder("store.new", commit("aaaaaaa1"), true), folder("store.old", commit("bbbbbbbb"), true)},
		Clusters: []state.Cluster{{Name: "store-1", Folder: "store.new"}, {Name: "store-2", Folder: "store.old"}}})
	f.Want(now, &state.DesiredState{Environment: "dev", Commits: []state.Commit{{ID: "2"}}, Folders: []state.Folder{folder("lab", commit("cccccccc"), true)}, Clusters: []state.Cluster{{Name: "lab-1", Folder: "lab"}}})
	f.Want(now, &state.DesiredState{Environment: "stage"})
	f.Order([]string{"dev", "stage", "prod", "unreadable"})
	return f
}

func commit(begin string) string { return begin + strings.Repeat("0", 40-len(begin)) }

func TestResolve(t *testing.T) {
	f := fleet()
	for _, c := range []struct {
		of         state.Filter
		base, want string // the commit, and the class or the error
	}{
		{state.Filter{Base: "bbbbbbb"}, commit("bbbbbbbb"), ""},
		{state.Filter{Base: "aaaaaaa2"}, commit("aaaaaaa2"), ""}, // a ring had it
		{state.Filter{Base: "bbbbbb"}, "bbbbbb", ""},
		{state.Filter{Base: "dddddddd"}, "dddddddd", ""},
		{state.Filter{Base: "a branch"}, "a branch", ""},
		{state.Filter{Base: "aaaaaaa"}, "", "commit aaaaaaa is ambiguous: there are " + commit("aaaaaaa1") + ", " + commit("aaaaaaa2")},
		{state.Filter{Base: "bbbbbbb", Environments: state.In("dev")}, "bbbbbbb", ""},
		{state.Filter{Class: "old"}, "", "store.old"},
		{state.Filter{Class: "store.old"}, "", "store.old"},
		{state.Filter{Class: "lab"}, "", "lab"},
		{state.Filter{Class: "new"}, "", "class new is ambiguous: there are box.new, store.new"},
		{state.Filter{Class: "new", Environments: state.In("dev")}, "", "new"},
	} {
		got, err := question.Resolve(f, c.of)
		want := got.Class
		if err != nil {
			want = err.Error()
			got.Base = ""
		}
		if want != c.want || got.Base != c.base {
			t.Errorf("%+v: %s, %q", c.of, got.Base, want)
		}
	}
}

func TestNames(t *testing.T) {
	f := fleet()
	dev, prod, stage := state.In("dev"), state.In("prod"), state.In("stage")
	for _, c := range []struct {
		of            state.Filter
		warning, want string
	}{
		{state.Filter{Ring: "canary", ClusterType: "store", Class: "store.old", Workload: "till", Target: "till-main", Version: "1.0.0", Cluster: "store-1", Base: commit("bbbbbbbb")}, "", ""},
		{state.Filter{Ring: "canry"}, "", "there is no ring canry; did you mean canary?"},
		{state.Filter{Workload: "tll", Environments: stage}, "there is no workload tll", ""},
		{state.Filter{Cluster: "store-3", Environments: prod}, "there is no cluster store-3; did you mean store-", ""}, // of the type that does not list clusters
		{state.Filter{Cluster: "lab-2", Environments: dev}, "", "there is no cluster lab-2; did you mean lab-1?"},
		{state.Filter{Cluster: "store-1", Environments: dev}, "", "there is no cluster store-1; there are: lab-1"},
		{state.Filter{Version: "1.0.1"}, "there is no version 1.0.1; did you mean 1.0.0?", ""},
		{state.Filter{Version: "2", Workload: "tll"}, "", "there is no workload tll; did you mean till?"},
		{state.Filter{Base: "ddddddd"}, "", "there is no commit ddddddd"},
		{state.Filter{Base: commit("d")}, "there is no commit d0", ""},
		{state.Filter{Workspace: "\x1b[2J"}, "", `there is no workspace "\x1b[2J"`},
	} {
		warning, err := question.Names(f, c.of)
		if text := fmt.Sprint(err); !strings.HasPrefix(warning, c.warning) || (warning == "") != (c.warning == "") || err != nil && !strings.HasPrefix(text, c.want) || (err == nil) != (c.want == "") {
			t.Errorf("%+v: %q, %v", c.of, warning, err)
		}
	}
}

func TestEnvironment(t *testing.T) {
	f := fleet()
	for name, want := range map[string]string{"": "<nil>", "prod": "<nil>", "unreadable": "<nil>", "pord": "there is no environment pord; did you mean prod?", "dve": "there is no environment dve; there are: prod"} {
		if got := fmt.Sprint(question.Environment(f, name, func(name string) bool { return name == "prod" })); got != want {
			t.Errorf("%q: %s, and not %s", name, got, want)
		}
	}
}

func TestProblem(t *testing.T) {
	f := fleet()
	for _, c := range []struct {
		of   state.Environments
		why  map[string]string
		want string
	}{
		{nil, nil, ""},
		{nil, map[string]string{"": "away", "dev": "broken"}, "away"},
		{nil, map[string]string{"unreadable": "no rings", "dev": "broken"}, "environment dev: broken; environment unreadable: no rings"},
		{state.In("prod"), map[string]string{"dev": "broken"}, ""},
	} {
		if got := question.Problem(f, c.of.Has, func(name string) string { return c.why[name] }); got != c.want {
			t.Errorf("%v, %v: %q", c.of, c.why, got)
		}
	}
}
