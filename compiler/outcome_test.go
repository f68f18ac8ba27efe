package compiler_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// outcome is the whole result of a build, as a user sees it.
type outcome struct {
	files   map[string]string // the whole output folder, by path
	said    map[string]string // the printed texts and the error, by kind
	changes map[string]*tree.Changes
	commit  tree.ID
	stats   engine.Stats
	all     []diag.Diagnostic
	errors  []diag.Diagnostic
	// untouched are the environments that keep all their files.
	untouched []string
	uncertain []string
	// failed are the ids of assignments that were not built, and the names of environments that
	// were not built at all.
	failed map[string]bool
	// digests are the digests of the parts of assignments' configuration, and functions the parts
	// that are functions of the assignment. Both are by environment and reference.
	digests   map[string]model.Digest
	functions map[string]bool
	models    map[string]*model.Environment // by environment; absent if there is no model
}

// clean reports whether no part of the output is from an earlier build.
func (o outcome) clean() bool { return len(o.errors) == 0 && o.said["error"] == "" }

// computed returns the number of computed results of a level.
func (o outcome) computed(level cache.Level) int {
	for _, l := range o.stats.Levels {
		if l.Level == level {
			return l.Computed
		}
	}
	return 0
}

// compileTo builds into a folder.
func compileTo(t *testing.T, r compiler.Request, outDir string) outcome {
	o := write(t, r, compiler.Output{Dir: outDir})
	o.files = outputFiles(t, outDir)
	return o
}

// write builds, and returns the outcome without the files.
func write(t *testing.T, r compiler.Request, to compiler.Output) outcome {
	o := outcome{said: map[string]string{}, failed: map[string]bool{}, digests: map[string]model.Digest{}, functions: map[string]bool{}, models: map[string]*model.Environment{}}
	r.AllowRemovals = true // random edits remove assignments
	b, written, err := compiler.Write(t.Context(), r, to)
	if err != nil {
		o.said["error"] = strings.ReplaceAll(err.Error(), to.Dir+to.Git, "OUT")
		return o
	}
	o.changes, o.stats = written.Changes, b.Stats
	for _, c := range written.Commits {
		o.commit = c.Commit
	}
	var text, json, github bytes.Buffer
	if err := errors.Join(diag.WriteText(&text, b.Diagnostics, nil), diag.WriteJSON(&json, b.Diagnostics), diag.WriteGitHub(&github, b.Diagnostics)); err != nil {
		t.Fatal(err)
	}
	o.said["text"], o.said["json"], o.said["github"] = text.String(), json.String(), github.String()
	o.all = b.Diagnostics
	for _, d := range o.all {
		if d.Severity == diag.Error {
			o.errors = append(o.errors, d)
		}
	}
	for _, e := range b.Environments {
		o.said["summary of "+e.Name] = fmt.Sprintf("%+v", e.Counts)
		if c := o.changes[e.Name]; c != nil {
			o.said["changes of "+e.Name] = fmt.Sprintf("written %q removed %q unchanged %d assignments %+v", c.Written, c.Removed, c.Unchanged, c.Assignments)
		} else {
			o.untouched = append(o.untouched, e.Name)
		}
		if e.Tree == nil {
			o.failed[e.Name] = true
		}
		if e.Model == nil {
			continue
		}
		o.models[e.Name] = e.Model
		if e.Model.Incomplete {
			o.uncertain = append(o.uncertain, e.Name)
		}
		o.identify(e)
		for i, a := range e.Schedule.Assignments {
			if e.Failed(i) {
				o.failed[a.ID(e.Name)] = true
			}
		}
	}
	return o
}

func (o outcome) identify(e *engine.Environment) {
	put := func(collection, name string, digest model.Digest, facts []string) {
		id := e.Name + "/" + model.Ref{Collection: collection, Name: name}.String()
		o.digests[id] = digest
		if facts != nil {
			o.functions[id] = true
		}
	}
	for _, c := range e.Model.Configs {
		put("configs", c.Name, c.Digest, c.Facts)
	}
	for _, s := range e.Model.ConfigSchemas {
		put("configSchemas", s.Name, s.Digest, nil)
	}
	for _, s := range e.Model.NamespaceServices {
		put("namespaceServices", s.Name, s.Digest, s.Facts)
	}
	for _, r := range e.Model.Reconcilers {
		put("reconcilers", r.Name, r.Digest, r.Facts)
	}
	for _, w := range e.Model.Workloads {
		put("workloads", w.Name, w.Digest, nil)
	}
}

// isLocal reports whether a file is kalypso's own, only for this machine, and not part of the
// output.
func isLocal(p string) bool {
	dir, name := path.Split(p)
	return strings.HasSuffix(dir, ".kalypso/") && slices.Contains([]string{"index", "lock", "journal.json"}, name)
}

// outputFiles reads an output folder, without local files. It returns nil if the folder does not
// exist, because a build without results does not make it.
func outputFiles(t *testing.T, dir string) map[string]string {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	out := files(t, dir)
	maps.DeleteFunc(out, func(p, _ string) bool { return isLocal(p) })
	return out
}

// writeFiles writes the result of files into a folder.
func writeFiles(t *testing.T, dir string, files map[string]string) {
	for p, text := range files {
		at, mode := filepath.Join(dir, filepath.FromSlash(p)), fs.FileMode(0o666)
		f := fileOf(p, text)
		if f.Executable {
			mode = 0o777
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o777), os.WriteFile(at, f.Data, mode)); err != nil {
			t.Fatal(err)
		}
	}
}

// differs describes the first difference between two maps of texts. It returns "" if the maps
// are equal.
func differs(got, want map[string]string) string {
	for _, p := range slices.Sorted(maps.Keys(want)) {
		if text, there := got[p]; !there {
			return p + " is not there"
		} else if text != want[p] {
			return p + " differs: " + firstDifference([]byte(text), []byte(want[p]))
		}
	}
	for _, p := range slices.Sorted(maps.Keys(got)) {
		if _, wanted := want[p]; !wanted {
			return p + " should not be there"
		}
	}
	return ""
}

// folders returns the files in the folders of assignments, by
// <environment>/<clusterType>/<target>.
func folders(files map[string]string) map[string]map[string]string {
	out := map[string]map[string]string{}
	for p, text := range files {
		if parts := strings.SplitN(p, "/", 4); len(parts) == 4 && isAssignment(parts) {
			id := strings.Join(parts[:3], "/")
			if out[id] == nil {
				out[id] = map[string]string{}
			}
			out[id][parts[3]] = text
		}
	}
	return out
}

// isAssignment reports whether a path leads into the folder of an assignment. Cluster types have
// other folders too, but their names are not full names of targets.
func isAssignment(parts []string) bool {
	return len(parts) == 4 && parts[1] != ".kalypso" && strings.Contains(parts[2], "-")
}

// roots returns the files at the roots of cluster types, by <environment>/<clusterType>.
func roots(files map[string]string) map[string]map[string]string {
	out := map[string]map[string]string{}
	for p, text := range files {
		if parts := strings.SplitN(p, "/", 3); len(parts) == 3 && parts[1] != ".kalypso" && !isAssignment(strings.SplitN(p, "/", 4)) {
			id := strings.Join(parts[:2], "/")
			if out[id] == nil {
				out[id] = map[string]string{}
			}
			out[id][parts[2]] = text
		}
	}
	return out
}

// comparison is the difference between two sets of named texts, sorted.
type comparison struct{ added, changed, removed []string }

func compareFolders(was, is map[string]map[string]string) (c comparison) {
	for id, folder := range is {
		switch {
		case was[id] == nil:
			c.added = append(c.added, id)
		case !maps.Equal(was[id], folder):
			c.changed = append(c.changed, id)
		}
	}
	for id := range was {
		if is[id] == nil {
			c.removed = append(c.removed, id)
		}
	}
	slices.Sort(c.added)
	slices.Sort(c.changed)
	slices.Sort(c.removed)
	return c
}

// misreported compares the reported changes of a write with the files before and after it. It
// returns "" if they match.
func misreported(before map[string]string, o outcome) string {
	var written, removed []string
	for p, text := range o.files {
		if old, there := before[p]; (!there || old != text) && !strings.Contains(p, "/.kalypso/") {
			written = append(written, p)
		}
	}
	for p := range before {
		if _, there := o.files[p]; !there && !strings.Contains(p, "/.kalypso/") {
			removed = append(removed, p)
		}
	}
	is := compareFolders(folders(before), folders(o.files))
	var says struct {
		written, removed []string
		comparison
	}
	for environment, c := range o.changes {
		for _, p := range c.Written {
			says.written = append(says.written, environment+"/"+p)
		}
		for _, p := range c.Removed {
			says.removed = append(says.removed, environment+"/"+p)
		}
		says.added = append(says.added, c.Assignments.Added...)
		says.changed = append(says.changed, c.Assignments.Changed...)
		says.comparison.removed = append(says.comparison.removed, c.Assignments.Removed...)
	}
	return sameLists([]lists{
		{"files written", says.written, written}, {"files removed", says.removed, removed}, {"assignments added", says.added, is.added},
		{"assignments changed", says.changed, is.changed}, {"assignments removed", says.comparison.removed, is.removed},
	})
}

// misrecorded compares the reported change of a record with the records before and after. It
// returns "" if they match.
func misrecorded(before map[string]string, o outcome) string {
	records := func(files map[string]string, environment string) map[string]string {
		return without(files, func(p string) bool { return !strings.HasPrefix(p, environment+"/.kalypso/") })
	}
	for environment, c := range o.changes {
		if changed := !maps.Equal(records(before, environment), records(o.files, environment)); changed != c.Recorded {
			return fmt.Sprintf("that the record of %s changes is said to be %t, and is %t", environment, c.Recorded, changed)
		}
	}
	return ""
}

// lists are a reported list and the true one, in any order.
type lists struct {
	what      string
	said, did []string
}

func sameLists(all []lists) string {
	for _, l := range all {
		slices.Sort(l.said)
		slices.Sort(l.did)
		if !slices.Equal(l.said, l.did) {
			return fmt.Sprintf("%s are said to be %q, and are %q", l.what, l.said, l.did)
		}
	}
	return ""
}

// lost describes a part of the output that changed although a failure should have kept it.
func lost(before map[string]string, o outcome) string {
	was, is := folders(before), folders(o.files)
	kept := map[string]string{} // assignment -> the reason
	for _, d := range o.errors {
		for _, id := range d.Assignments {
			kept[id] = "an error concerns it"
		}
	}
	for _, c := range o.changes {
		for _, id := range c.Assignments.Kept {
			kept[id] = "it is said to be kept"
		}
	}
	for id, why := range kept {
		if !maps.Equal(was[id], is[id]) {
			return fmt.Sprintf("%s is another, but %s", id, why)
		}
	}
	for id := range was {
		environment, _, _ := strings.Cut(id, "/")
		if is[id] == nil && slices.Contains(o.uncertain, environment) {
			return fmt.Sprintf("%s is gone, but which assignments there are is uncertain", id)
		}
	}
	for _, environment := range o.untouched {
		for p, text := range before {
			if strings.HasPrefix(p, environment+"/") && o.files[p] != text {
				return fmt.Sprintf("%s is another, but nothing is said to be written", p)
			}
		}
	}
	return ""
}
