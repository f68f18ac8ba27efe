package compiler_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/cache"
)

// affected compares the platform with what it was before each edit: with a revision
// of it, or with what was built of it into an empty folder. Exactly what differs
// between two such folders is affected, but for assignments with errors.
func affected(shared *cache.Cache) variant {
	return func(t *testing.T, root string) follower {
		a := &affectedSet{t: t, shared: shared, root: root}
		return follower{name: "affected", step: a.step}
	}
}

type affectedSet struct {
	t      *testing.T
	shared *cache.Cache
	root   string
	before outcome // of a build into an empty folder
}

func (a *affectedSet) step(s *step) (broken string) {
	repository := filepath.Dir(s.platformDir)
	if s.number == 0 {
		git(a.t, repository, "init", "--quiet", ".")
	}
	out := filepath.Join(a.root, fmt.Sprint("empty", s.number))
	after := s.want
	if !after.clean() || s.r.IntN(2) == 0 {
		after = compileTo(a.t, compiler.Request{Dir: s.platformDir, Cache: a.shared}, out)
	} else {
		writeFiles(a.t, out, after.files)
	}
	if s.number > 0 {
		before := compiler.Side{Revision: "HEAD"}
		previous := filepath.Join(a.root, "previous")
		if s.r.IntN(2) == 0 && len(a.before.files) > 0 {
			before = compiler.Side{Output: previous}
			writeFiles(a.t, previous, a.before.files)
		}
		if broken = a.compare(s, before, after); broken != "" {
			return fmt.Sprintf("since %+v: %s", before, broken)
		}
		removeAll(a.t, previous)
	}
	removeAll(a.t, out)
	a.before = after
	git(a.t, repository, "add", "--all")
	git(a.t, repository, "commit", "--quiet", "--allow-empty", "--message", "edit")
	return ""
}

func (a *affectedSet) compare(s *step, before compiler.Side, after outcome) string {
	d, err := compiler.Compare(a.t.Context(), compiler.Request{Dir: s.platformDir, Cache: a.shared}, before, compiler.Side{})
	if err != nil {
		return err.Error()
	}
	was, is := folders(a.before.files), folders(after.files)
	unknown := func(id string) bool {
		environment, _, _ := strings.Cut(id, "/")
		has := func(files map[string]string) bool {
			for p := range files {
				if strings.HasPrefix(p, environment+"/") && !strings.Contains(p, "/.kalypso/") {
					return true
				}
			}
			return false
		}
		return after.failed[environment] || after.failed[id] ||
			before.Output == "" && (a.before.failed[environment] || a.before.failed[id]) ||
			before.Output != "" && !has(a.before.files)
	}
	// What an uncertain environment lacks, it may only seem to lack.
	hides := func(o outcome) func(id string) bool {
		return func(id string) bool {
			environment, _, _ := strings.Cut(id, "/")
			return slices.Contains(o.uncertain, environment)
		}
	}
	want := compareFolders(was, is)
	want.removed = slices.DeleteFunc(want.removed, hides(after))
	if before.Output == "" {
		want.added = slices.DeleteFunc(want.added, hides(a.before))
	}
	want.added = slices.DeleteFunc(want.added, unknown)
	want.changed = slices.DeleteFunc(want.changed, unknown)
	want.removed = slices.DeleteFunc(want.removed, unknown)
	got := d.Report.Assignments
	all := []lists{
		{"assignments added", got.Added, want.added}, {"assignments changed", got.Changed, want.changed}, {"assignments removed", got.Removed, want.removed},
	}
	if a.before.clean() && after.clean() {
		own := compareFolders(roots(a.before.files), roots(after.files))
		if before.Output != "" {
			own.added = slices.DeleteFunc(own.added, unknown)
		}
		said := d.Report.ClusterTypes
		all = append(all, lists{"cluster types added", said.Added, own.added}, lists{"cluster types changed", said.Changed, own.changed}, lists{"cluster types removed", said.Removed, own.removed})
		if n := len(is) - len(want.added) - len(want.changed); before.Output == "" && got.Unchanged != n {
			return fmt.Sprintf("%d are said to be unchanged, and %d are", got.Unchanged, n)
		}
	}
	return sameLists(all)
}
