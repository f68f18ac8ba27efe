package git

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// history makes a bare repository with branches, a merge and tags.
func history(t testing.TB) (*Repository, string) {
	t.Helper()
	r, dir := repository(t)
	main := []Hash{commit(t, r, "0")}
	for i := range 12 {
		main = append(main, commit(t, r, fmt.Sprint(i+1), main[i]))
	}
	topic := commit(t, r, "topic", main[3])
	merge := commit(t, r, "merge", main[12], topic)
	for ref, id := range map[string]Hash{
		"heads/main": merge, "heads/topic/deep": topic, "heads/dead": main[2], "heads/a": main[3], "heads/v1": main[4],
		"tags/light": main[5], "remotes/origin/main": main[6], "bisect/bad": main[7], "other/x": main[8],
	} {
		run(t, "", "git", "-C", dir, "update-ref", "refs/"+ref, id.String())
	}
	run(t, "", "git", "-C", dir, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
	run(t, "", "git", "-C", dir, "symbolic-ref", "refs/heads/alias", "refs/heads/a")
	for tag, of := range map[string]string{"v1": "main~3", "of-tree": "main^{tree}"} {
		run(t, "", "git", "-C", dir, "-c", "user.name=A", "-c", "user.email=a@b", "tag", "-a", "-m", "x", tag, of)
	}
	run(t, "", "git", "-C", dir, "-c", "user.name=A", "-c", "user.email=a@b", "tag", "-a", "-m", "x", "v2", "refs/tags/v1")
	must(t, os.WriteFile(filepath.Join(dir, "FETCH_HEAD"), []byte(topic.String()+"\t\tbranch 'x' of y\n"), 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "ORIG_HEAD"), []byte(main[1].String()+"\n"), 0o644))
	return r, dir
}

func TestResolve(t *testing.T) {
	r, dir := history(t)
	head := run(t, "", "git", "-C", dir, "rev-parse", "HEAD")
	tag := run(t, "", "git", "-C", dir, "rev-parse", "refs/tags/v2")
	revs := []string{"HEAD", "@", "@~1", "main", "heads/main", "refs/heads/main", "topic/deep", "tags/v1", "v2^{}", "v2^{commit}", "v2^0", "v2~0",
		"v1", "heads/v1", "light", "origin", "origin/HEAD", "origin/main", "alias", "bisect/bad", "other/x", "FETCH_HEAD", "ORIG_HEAD",
		"HEAD~1", "HEAD^", "HEAD~", "HEAD^2", "HEAD^2~2", "HEAD^1~3", "HEAD~4", "main~2~1", "HEAD^^^", "a", "dead",
		head, head[:12], head[:7], strings.ToUpper(head[:9]), tag[:10], "v1-14-g" + head[:8]}
	clone := filepath.Join(t.TempDir(), "clone")
	run(t, "", "git", "clone", "-q", "--shared", dir, clone)
	run(t, "", "git", "-C", clone, "remote", "rename", "origin", "upstream")
	linked := filepath.Join(t.TempDir(), "linked")
	check := func(t *testing.T, dir string, r *Repository, revs ...string) {
		t.Helper()
		for _, rev := range revs {
			want := run(t, "", "git", "-c", "core.warnAmbiguousRefs=false", "-C", dir, "rev-parse", "--verify", rev+"^{commit}")
			if got, err := r.Resolve(rev); err != nil || got.String() != want {
				t.Errorf("%s is %s, and git says %s: %v", rev, got, want, err)
			}
		}
	}
	check(t, dir, r, revs...)
	t.Run("alternates", func(t *testing.T) {
		check(t, clone, opened(t, clone), "HEAD", "upstream/a", "upstream", "v2", head[:7], "HEAD~2^0")
	})
	t.Run("linked work tree", func(t *testing.T) {
		run(t, "", "git", "-C", dir, "worktree", "add", "-q", "--detach", linked, "dead")
		run(t, "", "git", "-C", linked, "update-ref", "refs/worktree/own", "HEAD^")
		run(t, "", "git", "-C", linked, "update-ref", "refs/bisect/bad", "HEAD")
		check(t, linked, opened(t, linked), "HEAD", "@^", "main", "worktree/own", "bisect/bad", "v2")
	})
	t.Run("packed", func(t *testing.T) {
		run(t, "", "git", "-C", dir, "pack-refs", "--all", "--prune")
		run(t, "", "git", "-C", dir, "repack", "-qad")
		check(t, dir, r, revs...)
		check(t, dir, opened(t, dir), revs...)
	})
	t.Run("HEAD that is a link", func(t *testing.T) {
		must(t, os.Remove(filepath.Join(dir, "HEAD")))
		must(t, os.Symlink("refs/heads/a", filepath.Join(dir, "HEAD")))
		check(t, dir, r, "HEAD")
	})
	t.Run("loose", func(t *testing.T) {
		packs, err := filepath.Glob(filepath.Join(dir, "objects/pack/*.pack"))
		must(t, err)
		other, otherDir := repository(t)
		for _, p := range packs {
			data, err := os.ReadFile(p)
			must(t, err)
			run(t, string(data), "git", "-C", otherDir, "unpack-objects", "-q")
		}
		check(t, otherDir, other, head, head[:7], tag[:9], head[:8]+"^2")
	})
}

func TestResolveFails(t *testing.T) {
	r, dir := history(t)
	first := run(t, "", "git", "-C", dir, "rev-parse", "main~13")
	tree := run(t, "", "git", "-C", dir, "rev-parse", "main^{tree}")
	run(t, "", "git", "-C", dir, "symbolic-ref", "refs/heads/loop", "refs/heads/loop2")
	run(t, "", "git", "-C", dir, "symbolic-ref", "refs/heads/loop2", "refs/heads/loop")
	must(t, os.WriteFile(filepath.Join(dir, "refs/heads/broken"), []byte("x\n"), 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "refs/heads/outside"), []byte("ref: ../refs/heads/main\n"), 0o644))
	for rev, want := range map[string]string{
		"":                          "not a form of revision",
		"HEAD@{1}":                  "not a form of revision",
		"@{yesterday}":              "not a form of revision",
		":/merge":                   "not a form of revision",
		"HEAD:p":                    "not a form of revision",
		"HEAD^{tree}":               "not a form of revision",
		"HEAD^{/x}":                 "not a form of revision",
		"HEAD^2{":                   "not a form of revision",
		"HEAD~99999999999999999999": "not a form of revision",
		"mian":                      "did you mean main?",
		"nothing-like-it":           "there are, among others: a, alias, broken, dead, light, loop, loop2, main, of-tree, ",
		"../config":                 "no branch, tag or commit",
		"config":                    "no branch, tag or commit",
		"topic":                     "no branch, tag or commit topic",
		"broken":                    "no branch, tag or commit broken",
		"outside":                   "no branch, tag or commit outside",
		"loop":                      "no branch, tag or commit loop",
		first[:11] + "g":            "no branch, tag or commit",
		"HEAD~99":                   "commit " + first[:12] + " is the first one",
		"HEAD^3":                    "has only 2 parents",
		"of-tree":                   "of-tree is a tree and not a commit",
		tree:                        "is a tree and not a commit",
		strings.Repeat("0", 40):     "git fsck",
	} {
		if _, err := r.Resolve(rev); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want one with %q", rev, err, want)
		}
	}
	empty, _ := repository(t)
	if _, err := empty.Resolve("HEAD"); err == nil || !strings.Contains(err.Error(), "no commits yet") {
		t.Errorf("no commits: %v", err)
	}
}

func TestShortNames(t *testing.T) {
	for _, packed := range []bool{false, true} {
		r, dir := history(t)
		if packed {
			run(t, "", "git", "-C", dir, "pack-refs", "--all", "--prune")
		}
		must(t, os.WriteFile(filepath.Join(dir, "refs/heads/a.lock"), nil, 0o644))
		got, err := r.refs.shortNames()
		const want = "a alias dead light main of-tree origin/HEAD origin/main topic/deep v1 v2"
		if strings.Join(got, " ") != want || err != nil {
			t.Errorf("packed %v: names are %s, want %s: %v", packed, got, want, err)
		}
	}
}

// Among objects whose ids begin alike, only commits count, and there must be one.
func TestAbbreviations(t *testing.T) {
	r, dir := repository(t)
	w := r.NewPack()
	tree, err := w.Add(TreeKind, nil)
	must(t, err)
	commits, blobs := map[string][]Hash{}, map[string]int{}
	for i := range 1500 {
		message := fmt.Sprint(i)
		id, err := w.Add(CommitKind, Commit{Tree: tree, Author: somebody, Committer: somebody, Message: message}.Encode())
		must(t, err)
		commits[id.String()[:4]] = append(commits[id.String()[:4]], id)
		id, err = w.Add(BlobKind, []byte(message))
		must(t, err)
		blobs[id.String()[:4]]++
	}
	must(t, w.Finish())
	one, many := "", ""
	for digits, ids := range commits {
		if len(ids) == 1 && blobs[digits] > 0 {
			one = digits
		}
		if len(ids) == 2 {
			many = digits
		}
		got, err := r.Resolve(digits)
		if len(ids) == 1 && (err != nil || got != ids[0]) || len(ids) > 1 && (err == nil || !strings.Contains(err.Error(), "write more digits")) {
			t.Errorf("%s is %s, of %v: %v", digits, got, ids, err)
		}
	}
	if got := run(t, "", "git", "-C", dir, "rev-parse", one+"^{commit}"); got != commits[one][0].String() {
		t.Errorf("git says that %s is %s", one, got)
	}
	if out, err := try("", "git", "-C", dir, "rev-parse", many+"^{commit}"); err == nil {
		t.Errorf("git says that %s is %s", many, out)
	}
}

// FuzzResolve checks that any revision is either an error or has the same result as in git.
//
// Slow: each input is looked for in files of a repository.
func FuzzResolve(f *testing.F) {
	r, dir := history(f)
	for _, rev := range []string{"HEAD", "main~2^2", "v1^{}~1", "@{1}", "HEAD^{/x}", "dead", "a^0", "HEAD~99", "v1-2-g1234", "refs/heads/main", "../HEAD", "^", "~", "HEAD^^2~0", "origin", "FETCH_HEAD"} {
		f.Add(rev)
	}
	f.Fuzz(func(t *testing.T, rev string) {
		got, err := r.Resolve(rev)
		if err != nil || strings.HasPrefix(rev, "-") || strings.Contains(rev, "\x00") {
			return
		}
		if want := run(t, "", "git", "-c", "core.warnAmbiguousRefs=false", "-C", dir, "rev-parse", "--verify", rev+"^{commit}"); got.String() != want {
			t.Errorf("%q is %s, and git says %s", rev, got, want)
		}
	})
}
