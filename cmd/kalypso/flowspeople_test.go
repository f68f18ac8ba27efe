//go:build unix

package main

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// hand changes something in a GitOps branch, past kalypso.
func (f *flow) hand(e *flowEnvironment, r *rand.Rand) {
	kind := []string{"edit", "edit", "beside", "folder", "inside", "mode", "delete", "forget", "revert"}[r.IntN(9)]
	tip, err := f.tryGit("gitops", "rev-parse", "-q", "--verify", "refs/heads/"+e.name)
	if err != nil {
		return
	}
	f.say("hand: %s in %s", kind, e.name)
	if kind == "delete" {
		f.git("gitops", "update-ref", "-d", "refs/heads/"+e.name)
		f.checker.deleted(e.name)
		return
	}
	f.git("hand", "fetch", "-q", "origin")
	f.git("hand", "checkout", "-q", "-f", "--detach", tip)
	generated := "east/shop-" + e.name + "/platform-config.yaml"
	if e.rings && r.IntN(2) == 0 {
		generated = "lab" + strings.TrimPrefix(generated, "east")
	}
	_, err = os.Stat(filepath.Join(f.dir, "hand", generated))
	switch {
	case kind == "edit" && err == nil:
		f.write("hand/"+generated, "kind: Mine\n")
	case kind == "beside":
		f.write("hand/notes.md", "Mine.\n")
	case kind == "folder":
		f.write("hand/.github/CODEOWNERS", "* @mine\n")
	case kind == "inside":
		f.write("hand/east/mine.yaml", "kind: Mine\n")
	case kind == "mode" && err == nil:
		if err := os.Chmod(filepath.Join(f.dir, "hand", generated), 0o777); err != nil {
			f.t.Fatal(err)
		}
	case kind == "forget":
		f.git("hand", "rm", "-q", "-r", ".kalypso")
	case kind == "revert":
		if _, err := f.tryGit("hand", "revert", "--no-edit", "HEAD"); err != nil {
			return
		}
	}
	f.git("hand", "add", "--all")
	f.git("hand", "commit", "-q", "--allow-empty", "-m", "By hand: "+kind)
	f.git("hand", "push", "-q", "origin", "HEAD:refs/heads/"+e.name)
	f.checker.touched(e.name, tip, f.git("hand", "rev-parse", "HEAD"))
}

// order gives a random order of a person to kalypso, other than promoting.
func (f *flow) order(e *flowEnvironment, r *rand.Rand) {
	kind := []string{"hold", "release", "freeze", "thaw", "reject", "undo", "rollback", "rollback", "exact", "overwrite", "adopt", "commit", "skip"}[r.IntN(13)]
	ring := ""
	if stops := e.stops(); r.IntN(2) == 0 {
		ring = stops[r.IntN(len(stops))].ring
	}
	commit := f.commits[max(0, len(f.commits)-1-r.IntN(4))]
	f.give(flowOrder{kind, e.name, ring}, commit, []string{"", "", "2h"}[r.IntN(3)])
}

// give gives an order to kalypso, and tells the checker which effects to expect.
func (f *flow) give(o flowOrder, commit, until string) {
	args := map[string][]string{
		"hold": {"hold", o.environment}, "release": {"release", o.environment}, "freeze": {"freeze", o.environment}, "thaw": {"thaw", o.environment},
		"reject": {"reject", commit}, "undo": {"reject", "--undo", commit},
		"rollback": {"rollback", o.environment}, "exact": {"rollback", "--exact", o.environment},
		"overwrite": {"promote", "--overwrite", "--env", o.environment}, "adopt": {"promote", "--adopt", "--env", o.environment},
		"commit": {"promote", "--env", o.environment, "--commit", commit}, "skip": {"promote", "--env", o.environment, "--skip-gate", "soak"},
	}[o.kind]
	if o.ring != "" && !slices.Contains([]string{"freeze", "thaw", "reject", "undo"}, o.kind) {
		args = append(args, "--ring", o.ring)
	}
	named := o.kind == "commit" && until == "" // or without a reason
	if slices.Contains([]string{"hold", "freeze"}, o.kind) && until != "" {
		args = append(args, "--until", until)
	} else {
		until = ""
	}
	if named || slices.Contains([]string{"hold", "release", "freeze", "reject", "rollback", "exact", "skip"}, o.kind) {
		args = append(args, "--reason", "INC-1")
	}
	if args[0] == "promote" || args[0] == "rollback" {
		args = append(args, "--report", "../reports")
	}
	f.person = o
	code, said := f.kalypso(0, 0, args...)
	f.say("%s: exit code %d\n%s", strings.Join(args, " "), code, strings.TrimSpace(said))
	f.checker.ordered(o, commit, until, code, said)
}

// settle repairs everything that is broken, and lets time pass until nothing changes any more.
// Then every environment that nobody blocks has the newest commit.
func (f *flow) settle(r *rand.Rand) {
	for _, commit := range slices.Sorted(maps.Keys(f.checker.refused)) { // which later commits contain
		f.give(flowOrder{kind: "undo", environment: f.environments[0].name}, commit, "")
	}
	f.state = f.state.mended()
	f.state.release++
	f.commit("last")
	last := f.commits[len(f.commits)-1]
	var mended []*flowEnvironment
	for _, e := range f.environments {
		if r.IntN(4) == 0 {
			continue // as people left it
		}
		mended = append(mended, e)
		for _, kind := range []string{"thaw", "release", "adopt", "overwrite"} {
			if kind == "release" && !f.checker.holds(e) && !f.checker.takenBack(e) || kind == "adopt" && f.checker.record(f.checker.tips[e.name]) != nil || kind == "overwrite" && !f.checker.dirty(e) {
				continue
			}
			f.now = f.now.Add(time.Second)
			f.give(flowOrder{kind: kind, environment: e.name}, last, "")
			f.checker.look()
		}
	}
	var stops struct {
		Items []flowResult `json:"items"`
	}
	for range 8 * len(f.environments) {
		f.now = f.now.Add(3 * time.Hour)
		for _, e := range f.environments {
			for _, stop := range e.stops() {
				f.report(stop, r, true)
			}
			if tip := f.checker.tips[e.name]; slices.Contains(mended, e) && f.checker.record(tip) != nil && f.checker.dirty(e) {
				f.give(flowOrder{kind: "adopt", environment: e.name}, last, "") // ring by ring
				f.checker.look()
			}
		}
		f.person = flowOrder{}
		code, said := f.kalypso(0, 0, "promote", "--all", "--report", "../reports", "-o", "json")
		f.say("run: exit code %d", code)
		f.checker.exit(code, said)
		f.checker.look()
		stops.Items = nil
		_, result, _ := strings.Cut(said, "{\n  \"apiVersion\"")
		if err := json.NewDecoder(strings.NewReader("{\"apiVersion\"" + result)).Decode(&stops); err != nil {
			f.t.Fatalf("%v\n%s", err, said)
		}
		for _, s := range stops.Items {
			f.say("  %s/%s has %.12s: %s: %s", s.Environment, s.Ring, s.Has.Base, s.State, s.Reason)
		}
		if f.checker.late(last, stops.Items) == "" {
			break
		}
		f.name(last, stops.Items)
	}
	if stop := f.checker.late(last, stops.Items); stop != "" {
		f.t.Errorf("%s does not get %.12s", stop, last)
	}
	f.checker.verify()
}

// flowResult is the result of a stop, as promote prints it.
type flowResult struct {
	Environment, Ring, State, Reason string
	Has                              flowSource
}

// name requests a commit by its name if main was rewritten. A merge has made a side branch the
// first parent, so the deployed commit is no longer one of main's commits.
func (f *flow) name(commit string, stops []flowResult) {
	for _, s := range stops {
		if s.State == "blocked" && !slices.Contains(f.commits, s.Has.Base) {
			f.now = f.now.Add(time.Second)
			f.give(flowOrder{"commit", s.Environment, s.Ring}, commit, "")
			f.checker.look()
		}
	}
}
