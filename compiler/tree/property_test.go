package tree_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// Trees, kept folders, kills and other people's files may follow each other in any order. After
// each write the folder contains the tree and other people's files. If these block the write, the
// folder is unchanged.
func TestRandomWrites(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := &randomWrites{t: t, random: rand.New(rand.NewPCG(seed, 0)), dir: t.TempDir(), foreign: files{}, ours: files{}, begun: files{}}
			for range 20 {
				r.step()
				if t.Failed() {
					return
				}
			}
		})
	}
}

type randomWrites struct {
	t       *testing.T
	random  *rand.Rand
	dir     string
	foreign files // other people's files in the folder
	ours    files // the files of the last write
	begun   files // possible files of failed writes since then
}

func (r *randomWrites) step() {
	if r.random.IntN(3) == 0 {
		r.someoneElse()
	}
	content := randomFiles(r.random, 12)
	for range r.random.IntN(3) {
		failing := failing(1+r.random.IntN(60), r.random.IntN(2) == 0)
		if !r.inTheWay(content) && writeFailing(r.t, r.dir, treeOf(content), dev, failing) {
			maps.Copy(r.begun, content)
			r.half(content)
		}
		content = randomFiles(r.random, 12)
	}
	desired, want := r.keepSome(content)
	if r.inTheWay(want) {
		before := read(r.t, r.dir)
		if _, report := tryWrite(r.t, r.dir, desired, dev); len(report) == 0 || report[0].Code != diag.ForeignFile {
			r.t.Fatalf("something is in the way, and the diagnostics are %v", report)
		}
		equal(r.t, "refused", read(r.t, r.dir), before)
		return
	}
	write(r.t, r.dir, desired, dev)
	r.ours, r.begun = want, files{}
	for p := range want {
		delete(r.foreign, p) // equal, and therefore taken over
	}
	all := maps.Clone(want)
	maps.Copy(all, r.foreign)
	equal(r.t, "folder", read(r.t, r.dir), all)
	clean(r.t, r.dir)
	r.isFresh(desired)
}

// isFresh checks that the records equal those of a first write of the tree, unless it keeps
// something. It also checks that the index hides nothing.
func (r *randomWrites) isFresh(desired *plainTree) {
	verify := dev
	verify.Verify = true
	if c := write(r.t, r.dir, desired, verify); !c.Empty() {
		r.t.Errorf("with every file read: %+v", c)
	}
	if slices.ContainsFunc(desired.ClusterTypes, func(ct plainType) bool { return ct.digest() == "" }) {
		return
	}
	fresh := r.t.TempDir()
	write(r.t, fresh, desired, dev)
	if got, want := records(r.t, r.dir), records(r.t, fresh); !maps.Equal(got, want) {
		r.t.Errorf("the records are %v, those of a first write %v", got, want)
	}
}

// records returns the records in a folder by path.
func records(t *testing.T, dir string) files {
	t.Helper()
	paths := []string{recordPath}
	entries, err := os.ReadDir(filepath.Join(dir, recordsFolder))
	must(t, err)
	for _, e := range entries {
		paths = append(paths, recordsFolder+"/"+e.Name())
	}
	all := files{}
	for _, p := range paths {
		data, err := os.ReadFile(filepath.Join(dir, p))
		must(t, err)
		all[p] = string(data)
	}
	return all
}

// someoneElse adds a file at a free path. No file is a parent of that path, and no failed write has
// begun to write it.
func (r *randomWrites) someoneElse() {
	there := read(r.t, r.dir)
	for p, data := range randomFiles(r.random, 1) {
		there[p] = data
		_, ours := r.ours[p]
		_, begun := r.begun[p]
		if !ours && !begun && tree.CheckPaths(slices.Collect(maps.Keys(there))) == nil {
			if _, err := os.Lstat(filepath.Join(r.dir, p)); err != nil {
				put(r.t, r.dir, files{p: data})
				r.foreign[p] = data
			}
		}
	}
}

// inTheWay reports whether someone else's file blocks a new file or a new folder. It blocks if it
// has the same path with other content, or is in a folder in the place of a new file.
func (r *randomWrites) inTheWay(content files) bool {
	for p, data := range r.foreign {
		if want, ok := content[p]; ok && want != data {
			return true
		}
		for q := range content {
			if strings.HasPrefix(p, q+"/") || strings.HasPrefix(q, p+"/") {
				return true
			}
		}
	}
	return false
}

// half checks after a failed write that no foreign file is lost. A foreign file with the desired
// path that the record lists now belongs to kalypso.
func (r *randomWrites) half(content files) {
	got := read(r.t, r.dir)
	for p, data := range r.foreign {
		if got[p] != data {
			r.t.Errorf("%s is lost", p)
		}
		if _, equal := content[p]; equal && filesOf(r.t, record(r.t, r.dir))[p] != (tree.Blob{}) {
			delete(r.foreign, p)
		}
	}
}

// keepSome turns some of the recorded folders into kept ones, and returns the expected files.
func (r *randomWrites) keepSome(content files) (*plainTree, files) {
	there := read(r.t, r.dir)
	var kept []string
	if previous := record(r.t, r.dir); previous != nil {
		for _, c := range previous.ClusterTypes {
			for _, a := range clusterType(r.t, previous, c.Name).Assignments {
				// A file at the root of the new tree must not be in the place of the folder.
				if _, file := content[c.Name+"/"+a.DeploymentTarget]; !file && r.random.IntN(4) == 0 {
					kept = append(kept, c.Name+"/"+a.DeploymentTarget)
				}
			}
		}
	}
	want := maps.Clone(content)
	previous := record(r.t, r.dir)
	for _, dir := range kept {
		maps.DeleteFunc(want, func(p, _ string) bool { return strings.HasPrefix(p, dir+"/") })
		for p := range filesOf(r.t, previous) {
			if strings.HasPrefix(p, dir+"/") {
				want[p] = there[p]
			}
		}
	}
	return keeping(treeOf(content), kept...), want
}
