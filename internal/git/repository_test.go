package git

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestOpen(t *testing.T) {
	isolate(t)
	at := realPath(t, t.TempDir())
	git := func(args ...string) {
		t.Helper()
		run(t, "", "git", append([]string{"-c", "protocol.file.allow=always", "-c", "user.name=A", "-c", "user.email=a@b", "-C", at}, args...)...)
	}
	git("init", "-q", "-b", "main", "w")
	git("-C", "w", "commit", "-q", "--allow-empty", "-m", "x")
	git("-C", "w", "worktree", "add", "-q", "-b", "linked", filepath.Join(at, "linked"))
	git("clone", "-q", "--bare", "w", "bare")
	git("-C", "bare", "worktree", "add", "-q", "-b", "other", filepath.Join(at, "of-bare"))
	git("-C", "w", "submodule", "add", "-q", filepath.Join(at, "bare"), "sub")
	git("init", "-q", "-b", "main", "--separate-git-dir", filepath.Join(at, "apart.git"), "apart")
	for _, c := range []struct{ dir, common, branch, checkedOut string }{
		{"w", "w/.git", "main", "w"},
		{"w/.git", "w/.git", "main", "w"},
		{"w", "w/.git", "linked", "linked"},
		{"w", "w/.git", "none", ""},
		{"linked", "w/.git", "main", "w"},
		{"linked", "w/.git", "linked", "linked"},
		{"bare", "bare", "main", ""},
		{"bare", "bare", "other", "of-bare"},
		{"of-bare", "bare", "main", ""},
		{"w/sub", "w/.git/modules/sub", "main", "w/.git/modules/sub"},
		{"apart", "apart.git", "main", "apart.git"},
	} {
		r, err := Open(filepath.Join(at, c.dir))
		must(t, err)
		got, err := r.CheckedOut("refs/heads/" + c.branch)
		want := c.checkedOut
		if want != "" {
			want = filepath.Join(at, want)
		}
		if r.Dir() != filepath.Join(at, c.common) || got != want || err != nil {
			t.Errorf("%s: %s, and %s is checked out in %q, want %q: %v", c.dir, r.Dir(), c.branch, got, want, err)
		}
		must(t, r.Close())
	}
}

func TestHeadThatIsALink(t *testing.T) {
	isolate(t)
	dir := filepath.Join(t.TempDir(), "w")
	run(t, "", "git", "init", "-q", "-b", "main", dir)
	must(t, os.Remove(filepath.Join(dir, ".git/HEAD")))
	must(t, os.Symlink("refs/heads/main", filepath.Join(dir, ".git/HEAD")))
	if got, err := opened(t, dir).CheckedOut("refs/heads/main"); got != dir || err != nil {
		t.Errorf("checked out in %q: %v", got, err)
	}
}

func TestRepositoriesThatAreRefused(t *testing.T) {
	for _, c := range []struct{ name, config, want string }{
		{"SHA-256", "[core]\nrepositoryformatversion = 1\n[extensions]\nobjectFormat = sha256\n", "it is a SHA-256 repository"},
		{"reftable", "[core]\nrepositoryformatversion = 1\n[extensions]\nrefStorage = reftable\n", "refStorage is reftable"},
		{"unknown", "[core]\nrepositoryformatversion = 1\n[extensions]\nfuture = x\n", "extensions.future"},
		{"version", "[core]\nrepositoryformatversion = 2\n", "version 2"},
		{"no config", "[core", "config"},
	} {
		_, dir := repository(t)
		must(t, os.WriteFile(filepath.Join(dir, "config"), []byte(c.config), 0o644))
		_, err := Open(dir)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", c.name, err)
		}
		var format *FormatError
		if errors.As(err, &format) != (c.name != "no config") {
			t.Errorf("%s: the error is a %T", c.name, err)
		}
	}
	_, dir := repository(t)
	for _, config := range []string{
		"[core]\nrepositoryformatversion = 1\n[extensions]\nobjectFormat = sha1\nworktreeConfig\n",
		"[core]\nrepositoryformatversion = 0\n[extensions]\nfuture = x\n", // which git passes over
	} {
		must(t, os.WriteFile(filepath.Join(dir, "config"), []byte(config), 0o644))
		run(t, "", "git", "-C", dir, "for-each-ref")
		opened(t, dir)
	}

	empty := t.TempDir()
	for _, dir := range []string{empty, filepath.Join(empty, "none")} {
		if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "git init") {
			t.Errorf("%s: %v", dir, err)
		}
	}
	must(t, os.WriteFile(filepath.Join(empty, ".git"), []byte("something"), 0o644))
	if _, err := Open(empty); err == nil {
		t.Error("a .git that is no pointer was followed")
	}
}

func TestSignatures(t *testing.T) {
	fallback := Signature{Name: "kalypso", Email: "kalypso@localhost", When: time.Unix(42, 0).UTC()}
	for _, c := range []struct {
		name              string
		env               map[string]string
		own, users        string // configs
		given             Signature
		author, committer string
	}{
		{name: "nothing", author: "kalypso <kalypso@localhost> 42 +0000"},
		{name: "user's config", users: "[user]\nname = U\nemail = u@x\n", author: "U <u@x> 42 +0000"},
		{name: "the repository's is stronger", users: "[user]\nname = U\nemail = u@x\n", own: "[user]\nname = R\n", author: "R <u@x> 42 +0000"},
		{name: "roles", own: "[user]\nname = U\nemail = u@x\n[author]\nname = A\n[committer]\nemail = c@x\n", author: "A <u@x> 42 +0000", committer: "U <c@x> 42 +0000"},
		{name: "given", own: "[user]\nname = U\n", given: Signature{Name: "G", Email: "g@x", When: time.Unix(7, 0).In(time.FixedZone("", -5400))}, author: "G <g@x> 7 -0130"},
		{name: "environment", env: map[string]string{
			"GIT_AUTHOR_NAME": "E", "GIT_AUTHOR_EMAIL": "e@x", "GIT_AUTHOR_DATE": "@9 +0200",
			"GIT_COMMITTER_NAME": "F", "GIT_COMMITTER_EMAIL": "f@x", "GIT_COMMITTER_DATE": "2001-09-09T01:46:40Z",
		}, author: "E <e@x> 9 +0200", committer: "F <f@x> 1000000000 +0000"},
		{name: "given is stronger", env: map[string]string{"GIT_AUTHOR_NAME": "E", "GIT_COMMITTER_EMAIL": "f@x", "GIT_AUTHOR_DATE": "@9 +0200"},
			given: Signature{Name: "G", When: time.Unix(7, 0).UTC()}, author: "G <kalypso@localhost> 7 +0000", committer: "G <f@x> 7 +0000"},
		{name: "epoch", env: map[string]string{"SOURCE_DATE_EPOCH": "99"}, author: "kalypso <kalypso@localhost> 99 +0000"},
		{name: "what breaks the line", given: Signature{Name: " <A\nB>.", Email: "a>@x"}, author: "AB <a@x> 42 +0000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, dir := repository(t)
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			f, err := os.OpenFile(filepath.Join(dir, "config"), os.O_APPEND|os.O_WRONLY, 0)
			must(t, err)
			_, err = f.WriteString(c.own)
			must(t, err)
			must(t, f.Close())
			must(t, os.WriteFile(filepath.Join(os.Getenv("HOME"), ".gitconfig"), []byte(c.users), 0o644))
			if c.committer == "" {
				c.committer = c.author
			}
			author, committer, err := opened(t, dir).Signatures(c.given, fallback)
			if err != nil || author.String() != c.author || committer.String() != c.committer {
				t.Errorf("author %s\ncommitter %s\n%v", author, committer, err)
			}
			// git prints the same if it knows all of it.
			if c.given == (Signature{}) && c.env["GIT_AUTHOR_DATE"] != "" {
				if got := run(t, "", "git", "-C", dir, "var", "GIT_AUTHOR_IDENT"); got != c.author {
					t.Errorf("git says %s", got)
				}
			}
		})
	}
}

func TestSignaturesThatAreImpossible(t *testing.T) {
	r, _ := repository(t)
	for k, v := range map[string]string{"GIT_AUTHOR_DATE": "yesterday", "SOURCE_DATE_EPOCH": "x", "GIT_COMMITTER_DATE": "1950-01-01T00:00:00Z"} {
		t.Run(k, func(t *testing.T) {
			t.Setenv(k, v)
			if _, _, err := r.Signatures(Signature{}, somebody); err == nil {
				t.Error("there is no error")
			}
		})
	}
}

func TestDates(t *testing.T) {
	for s, want := range map[string]string{
		"1112911993 -0700":                "1112911993 -0700",
		"@1112911993":                     "1112911993 +0000",
		"2005-04-07T22:13:13Z":            "1112911993 +0000",
		"2005-04-07T22:13:13+02:00":       "1112904793 +0200",
		"Thu, 07 Apr 2005 22:13:13 +0200": "1112904793 +0200",
		"Thu, 7 Apr 2005 22:13:13 +0200":  "1112904793 +0200",
		"2005-04-07 22:13:13 +0000":       "1112911993 +0000",
	} {
		got, err := parseDate(s)
		if got := (Signature{When: got}).String(); err != nil || !strings.HasSuffix(got, "> "+want) {
			t.Errorf("%s is %s, want %s: %v", s, got, want, err)
		}
		t.Setenv("GIT_AUTHOR_DATE", s)
		if s[0] != '@' {
			if git := run(t, "", "git", "-c", "user.name=a", "-c", "user.email=a@b", "var", "GIT_AUTHOR_IDENT"); !strings.HasSuffix(git, "> "+want) {
				t.Errorf("git reads %s as %s", s, git)
			}
		}
	}
}
