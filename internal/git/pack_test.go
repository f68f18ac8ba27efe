package git

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Ids are looked up in parts of the index that are read at once, so there are
// more of one first byte.
func TestSearch(t *testing.T) {
	var entries []packEntry
	for i := range 500 {
		entries = append(entries, packEntry{int64(i), 0, Hash{7, byte(i / 128), byte(i * 2)}})
	}
	entries = append(entries, packEntry{500, 0, Hash{9}})
	p := &pack{path: filepath.Join(t.TempDir(), "pack")}
	var b bytes.Buffer
	must(t, writeIndex(&b, slices.Clone(entries), Hash{}))
	b.Write(make([]byte, 20))
	must(t, os.WriteFile(p.path+".idx", b.Bytes(), 0o600))
	for _, e := range entries {
		if offset, found, err := p.find(e.id); err != nil || !found || offset != e.offset {
			t.Errorf("%s is at %d, want %d: %v", e.id, offset, e.offset, err)
		}
		other := e.id
		other[19] = 1
		if _, found, err := p.find(other); err != nil || found {
			t.Errorf("%s was found: %v", other, err)
		}
	}
	for digits, want := range map[string]int{"07": 500, "0700": 128, "07000": 8, "070002": 1, "070003": 0, "0703": 116, "0704": 0, "09": 1, "0a": 0, "ff": 0} {
		ids := map[Hash]bool{}
		must(t, p.beginning(digits, ids))
		if len(ids) != want {
			t.Errorf("%d ids begin with %s, want %d", len(ids), digits, want)
		}
		for id := range ids {
			if !strings.HasPrefix(id.String(), digits) {
				t.Errorf("%s does not begin with %s", id, digits)
			}
		}
	}
	must(t, p.close())
}

// A file is not read if it is larger than the limit, however it is stored.
func TestBlobWithin(t *testing.T) {
	r, dir := repository(t)
	w := r.NewPack()
	var ids []Hash
	var contents [][]byte
	for i := range 20 {
		data := bytes.Repeat([]byte("configuration: value\n"), 100+i)
		id, err := w.Add(BlobKind, fmt.Appendf(data, "%d\n", i))
		must(t, err)
		ids, contents = append(ids, id), append(contents, fmt.Appendf(data, "%d\n", i))
	}
	must(t, w.Finish())
	check := func(t *testing.T, r *Repository) {
		t.Helper()
		for range 2 { // the second time some are cached
			for i, id := range ids {
				size := int64(len(contents[i]))
				if _, err := r.BlobWithin(id, size-1); !errors.Is(err, ErrTooLarge) {
					t.Errorf("one byte too many: %v", err)
				}
				got, err := r.BlobWithin(id, size)
				if err != nil || !bytes.Equal(got, contents[i]) {
					t.Errorf("%s is %d bytes, want %d: %v", id, len(got), size, err)
				}
				clear(got) // which must change nothing
			}
		}
	}
	check(t, r)
	t.Run("loose", func(t *testing.T) {
		other, otherDir := repository(t)
		packs, err := filepath.Glob(filepath.Join(dir, "objects/pack/*.pack"))
		must(t, err)
		data, err := os.ReadFile(packs[0])
		must(t, err)
		run(t, string(data), "git", "-C", otherDir, "unpack-objects", "-q")
		check(t, other)
	})
	t.Run("differences", func(t *testing.T) {
		var list strings.Builder
		for _, id := range ids {
			fmt.Fprintln(&list, id, "file")
		}
		run(t, list.String(), "git", "-C", dir, "pack-objects", "-q", "--depth=50", "--no-reuse-delta", filepath.Join(dir, "objects/pack/pack"))
		packs, err := filepath.Glob(filepath.Join(dir, "objects/pack/*.pack"))
		must(t, err)
		for _, p := range packs {
			if data, err := os.ReadFile(p); err != nil || int64(len(data)) > w.Size() {
				must(t, err)
				must(t, os.Remove(p))
				must(t, os.Remove(strings.TrimSuffix(p, "pack")+"idx"))
			}
		}
		r := opened(t, dir)
		check(t, r)
		if r.objects.bases.cache.Len() == 0 {
			t.Error("no object was a difference to another")
		}
	})
}

func TestBasesAreBounded(t *testing.T) {
	var b bases
	p := &pack{}
	large := make([]byte, maxBases/4-baseCost)
	for i := range 10 {
		b.add(place{p, int64(i)}, Object{BlobKind, large})
		b.add(place{p, int64(i)}, Object{BlobKind, large})
		if _, held := b.get(place{p, 0}); !held {
			t.Errorf("what is used is not held after %d others", i)
		}
	}
	b.add(place{p, 99}, Object{BlobKind, make([]byte, maxBases)})
	if sum := b.cache.Len() * (len(large) + baseCost); b.size != sum || sum > maxBases || b.cache.Len() != 4 {
		t.Errorf("%d objects of %d bytes are held, counted as %d", b.cache.Len(), sum, b.size)
	}
}

// While git repack removes one pack after the other, removed packs do not hide the objects of
// others.
func TestPacksThatAreGone(t *testing.T) {
	r, _ := repository(t)
	id := commit(t, r, "content")
	for i := range maxLooks + 2 {
		must(t, os.Symlink("gone", filepath.Join(r.dir, "objects", "pack", fmt.Sprintf("pack-%040d.idx", i))))
	}
	other := opened(t, r.dir)
	if _, err := other.Object(id); err != nil {
		t.Error(err)
	}
	if absent, err := other.Absent([]Hash{id}); err != nil || len(absent) > 0 {
		t.Errorf("absent are %v, %v", absent, err)
	}
}
