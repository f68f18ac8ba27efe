package tree

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/internal/git"
)

// Whatever is changed at once in a tree, it becomes the tree of the files that
// there are then.
func TestGraftsMakeTheTreeOfTheFiles(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	m := newMirror(t, "")
	r, err := git.Open(m.repo)
	must(t, err)
	defer r.Close()
	var base git.Hash
	have := files{}
	for range 60 {
		w := r.NewPack()
		g := &treeEditor{r, w.Add}
		next := randomFiles(random, random.IntN(8))
		for p, data := range have {
			blocked := slices.ContainsFunc(slices.Collect(maps.Keys(next)), func(q string) bool {
				return strings.HasPrefix(p, q+"/") || strings.HasPrefix(q, p+"/")
			})
			if _, there := next[p]; !there && !blocked && random.IntN(3) > 0 {
				next[p] = data
			}
		}
		var changes []treeEdit
		for p := range have {
			if _, stays := next[p]; !stays {
				changes = append(changes, treeEdit{path: p})
			}
		}
		for p, data := range next {
			f := fileOf(p, data)
			id, err := w.Add(git.BlobKind, f.Data)
			must(t, err)
			if was, there := have[p]; !there || was != data {
				changes = append(changes, treeEdit{p, &git.Entry{Mode: BlobOf(f).mode(), ID: id}})
			}
		}
		got, err := g.apply(base, changes)
		must(t, err)
		must(t, w.Finish())
		if want := TreeID(next.blobs()); ID(got.String()) != want && !(got.IsZero() && len(next) == 0) {
			t.Fatalf("%v became %v: the tree is %s, want %s", have, next, got, want)
		}
		base, have = got, next
	}
}

func TestGraftsInTheWay(t *testing.T) {
	m := newMirror(t, "")
	r, err := git.Open(m.repo)
	must(t, err)
	defer r.Close()
	w := r.NewPack()
	g := &treeEditor{r, w.Add}
	file := func(data string) *git.Entry {
		id, err := w.Add(git.BlobKind, []byte(data))
		must(t, err)
		return &git.Entry{Mode: git.FileMode, ID: id}
	}
	base, err := g.apply(git.Hash{}, []treeEdit{{"a", file("1")}, {"b/c", file("2")}, {"d/e/f", file("3")}})
	must(t, err)
	must(t, w.Finish())
	sub, err := g.apply(git.Hash{}, []treeEdit{{"x", file("4")}})
	must(t, err)
	for _, c := range []struct {
		changes []treeEdit
		want    string
	}{
		{nil, "a b/c d/e/f"},
		{[]treeEdit{{path: "b"}}, "a b/c d/e/f"},
		{[]treeEdit{{path: "a/x"}}, "a b/c d/e/f"},
		{[]treeEdit{{path: "none"}}, "a b/c d/e/f"},
		{[]treeEdit{{path: "d/e/f"}}, "a b/c"},
		{[]treeEdit{{"b", &git.Entry{Mode: git.FolderMode}}}, "a d/e/f"},
		{[]treeEdit{{"b", &git.Entry{Mode: git.FolderMode, ID: sub}}}, "a b/x d/e/f"},
		{[]treeEdit{{path: "a"}, {"a/x", file("4")}}, "a/x b/c d/e/f"},
		{[]treeEdit{{path: "b/c"}, {"b", file("4")}}, "a b d/e/f"},
	} {
		w := r.NewPack()
		g.add = w.Add
		_, err := w.Add(git.BlobKind, []byte("4"))
		must(t, err)
		_, err = w.Add(git.TreeKind, git.EncodeTree([]git.Entry{{Name: "x", Mode: git.FileMode, ID: file("4").ID}}))
		must(t, err)
		got, err := g.apply(base, c.changes)
		must(t, err)
		must(t, w.Finish())
		if got := strings.ReplaceAll(m.git("ls-tree", "-r", "--name-only", got.String()), "\n", " "); got != c.want {
			t.Errorf("%s: the tree has %s, want %s", fmt.Sprint(c.changes), got, c.want)
		}
	}
}
