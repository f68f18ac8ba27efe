package compiler_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/internal/testing/randplatform"
)

// same compares the outcome of a variant with that of a cold build.
func same(got, want outcome) string {
	if d := differs(got.said, want.said); d != "" {
		return d
	}
	return differs(got.files, want.files)
}

func openCache(t *testing.T, o cache.Options) *cache.Cache {
	t.Helper()
	c, err := cache.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func closeCache(t *testing.T, c *cache.Cache) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

// incremental builds into the folder of its last build, without a cache. It must not touch files
// that it does not report as written.
func incremental(t *testing.T, root string) follower {
	out := filepath.Join(root, "out")
	return follower{name: "incremental", step: func(s *step) string {
		before := stamps(t, out)
		got := compileTo(t, compiler.Request{Dir: s.platformDir}, out)
		if d := same(got, s.want); d != "" {
			return d
		}
		if d := misrecorded(s.before.files, got); d != "" {
			return d
		}
		var said, did []string
		for environment, c := range got.changes {
			for _, p := range c.Written {
				said = append(said, environment+"/"+p)
			}
		}
		for p, stamp := range stamps(t, out) {
			if !before[p].Equal(stamp) {
				did = append(did, p)
			}
		}
		return sameLists([]lists{{"files touched", said, did}})
	}}
}

// stamps returns the modification times of the files outside of .kalypso, by path.
func stamps(t *testing.T, dir string) map[string]time.Time {
	out := map[string]time.Time{}
	err := filepath.WalkDir(dir, func(at string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || entry.IsDir() || strings.Contains(at, ".kalypso") {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, at)
		out[filepath.ToSlash(rel)] = info.ModTime()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// cached builds with its own cache, as if another process had left the cache each time. It must
// not compute unchanged results again. At the end, all results in the cache must be correct.
func cached(t *testing.T, root string) follower {
	out, dir := filepath.Join(root, "out"), filepath.Join(root, "cache")
	once := func(s *step) outcome {
		c := openCache(t, cache.Options{Dir: dir})
		defer closeCache(t, c)
		return compileTo(t, compiler.Request{Dir: s.platformDir, Cache: c}, out)
	}
	var last outcome
	return follower{
		name: "cached",
		step: func(s *step) string {
			got := once(s)
			if d := same(got, s.want); d != "" {
				return d
			}
			before := last
			last = got
			return recomputed(s, before, got)
		},
		end: func(s *step) string {
			again := once(s)
			for _, level := range []cache.Level{cache.Model, cache.Tuple, cache.Projection, cache.Assignment} {
				if n := again.computed(level); n > 0 {
					return fmt.Sprintf("%d of level %s are computed once more, though nothing was edited", n, level)
				}
			}
			for environment, c := range again.changes {
				if !c.Empty() {
					return fmt.Sprintf("%s is written once more, though nothing was edited: %+v", environment, c)
				}
			}
			c := openCache(t, cache.Options{Dir: dir, Mode: cache.Verify})
			verified := compileTo(t, compiler.Request{Dir: s.platformDir, Cache: c}, out)
			closeCache(t, c)
			if lies := c.Lies(); len(lies) > 0 {
				return fmt.Sprintf("the cache lies: %q", lies)
			}
			return same(verified, again)
		},
	}
}

// recomputed describes unnecessary work after a cosmetic edit. It returns "" if the build did no
// such work. The text of its files identifies a function of the assignment, so an edit of these
// files may make it another function.
func recomputed(s *step, before, got outcome) string {
	if s.number == 0 || s.edit == randplatform.Meaning {
		return ""
	}
	levels := []cache.Level{cache.Tuple, cache.Projection, cache.Assignment}
	if s.edit == randplatform.Nothing {
		levels = append(levels, cache.Model)
	}
	for _, id := range slices.Sorted(maps.Keys(got.digests)) {
		if got.digests[id] == before.digests[id] {
			continue
		}
		if !got.functions[id] || s.edit == randplatform.Nothing {
			return id + " has another digest, though the edit changes nothing that the platform means"
		}
		return ""
	}
	for _, level := range levels {
		if n := got.computed(level); n > 0 {
			return fmt.Sprintf("%d of level %s are computed, though the edit changes nothing that the platform means", n, level)
		}
	}
	return ""
}

// sharing builds with a cache that all histories use at the same time.
func sharing(shared *cache.Cache) variant {
	return func(t *testing.T, root string) follower {
		out := filepath.Join(root, "out")
		return follower{name: "with a shared cache", step: func(s *step) string {
			return same(compileTo(t, compiler.Request{Dir: s.platformDir, Cache: shared}, out), s.want)
		}}
	}
}

// shardedTogether builds a random number of shards into one folder, in a random order.
func shardedTogether(shared *cache.Cache) variant {
	return func(t *testing.T, root string) follower {
		out := filepath.Join(root, "out")
		return follower{name: "in shards", step: func(s *step) string {
			n := 2 + s.r.IntN(3)
			failed := false
			for _, i := range s.r.Perm(n) {
				shard := engine.Shard{Index: i + 1, Of: n}
				was := outputFiles(t, out)
				got := compileTo(t, compiler.Request{Dir: s.platformDir, Cache: shared, Shard: shard}, out)
				failed = failed || !got.clean()
				if d := differs(outside(shard, got.files), outside(shard, was)); d != "" {
					return fmt.Sprintf("shard %s, which has nothing to do with it: %s", shard, d)
				}
			}
			if failed == s.want.clean() {
				return fmt.Sprintf("that one of %d shards fails is %t", n, failed)
			}
			if failed && s.want.hasEntries() {
				// Entries stay because of errors in folders, and a shard does not see the errors
				// of other shards.
				removeAll(t, out)
				writeFiles(t, out, s.want.files)
				return ""
			}
			return differs(outputFiles(t, out), s.want.files)
		}}
	}
}

// outside returns the files of cluster types outside a shard.
func outside(shard engine.Shard, files map[string]string) map[string]string {
	return without(files, func(p string) bool {
		parts := strings.Split(p, "/")
		name := parts[1]
		if name == ".kalypso" {
			name = strings.TrimSuffix(parts[len(parts)-1], ".json")
			if entries, is := strings.CutPrefix(name, "clusters."); is { // no generated cluster type has such a name
				name = "clusters/" + entries
			}
		} else if name == "clusters" {
			name += "/" + parts[2]
		}
		return shard.Has(name) || len(parts) == 3 && parts[1] == ".kalypso"
	})
}

// shardedApart builds each of several shards into its own folder. Together they must be the whole
// output.
func shardedApart(shared *cache.Cache) variant {
	return func(t *testing.T, root string) follower {
		of := 0
		ofAll := func(p string) bool {
			return strings.HasSuffix(p, ".kalypso/provenance.json") || strings.HasSuffix(p, ".kalypso/.gitignore")
		}
		return follower{name: "in shards apart", step: func(s *step) string {
			if of == 0 {
				of = 2 + s.r.IntN(3)
			}
			together := map[string]string{}
			for i := range of {
				got := compileTo(t, compiler.Request{Dir: s.platformDir, Cache: shared, Shard: engine.Shard{Index: i + 1, Of: of}}, filepath.Join(root, fmt.Sprint(i)))
				for p, text := range got.files {
					if _, there := together[p]; there && !ofAll(p) {
						return fmt.Sprintf("%s is of two of %d shards", p, of)
					}
					together[p] = text
				}
			}
			return differs(without(together, ofAll), without(s.want.files, ofAll))
		}}
	}
}
