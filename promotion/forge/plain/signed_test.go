package plain_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/hiddeco/sshsig"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/plain"
)

const (
	digest = "sha256:4f2a9c1b77aa0129d01c0ffee"
	name   = "kalypso/approve/prod/4f2a9c1b77aa"
)

// tag makes the tag object and a ref to it, as git tag -s does.
func (b *bare) tag(k key, commit git.Hash, inside, ref, namespace string, at time.Time, spoil func(string) string) git.Hash {
	b.t.Helper()
	text := fmt.Sprintf("object %s\ntype commit\ntag %s\ntagger Ann <ann@example.com> %d +0000\n\nfine\n", commit, inside, at.Unix())
	signature, err := sshsig.Sign(strings.NewReader(text), k.signer, sshsig.HashSHA512, namespace)
	if err != nil {
		b.t.Fatal(err)
	}
	text += string(sshsig.Armor(signature))
	if spoil != nil {
		text = spoil(text)
	}
	pack := b.repo.NewPack()
	id, err := pack.Add(git.TagKind, []byte(text))
	if err == nil {
		err = pack.Finish()
	}
	if err == nil {
		err = pack.Abort()
	}
	if err != nil {
		b.t.Fatal(err)
	}
	// git update-ref looks into tags, and some of these are damaged.
	file := filepath.Join(b.dir, "refs", "tags", filepath.FromSlash(ref))
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(id.String()+"\n"), 0o666); err != nil {
		b.t.Fatal(err)
	}
	return id
}

// verifies reports whether git takes a tag, with ssh-keygen.
func (b *bare) verifies(tag, signers string) bool {
	file := filepath.Join(b.t.TempDir(), "allowed_signers")
	if err := os.WriteFile(file, []byte(signers), 0o600); err != nil {
		b.t.Fatal(err)
	}
	_, err := b.run("-c", "gpg.format=ssh", "-c", "gpg.ssh.allowedSignersFile="+file, "verify-tag", tag)
	return err == nil
}

func keygen() bool {
	_, err := exec.LookPath("ssh-keygen")
	return err == nil
}

// The allowed signers decide whose approvals count, and git agrees about the same tag.
func TestAllowedSigners(t *testing.T) {
	ann, bob := newKey(t, "ann"), newKey(t, "bob")
	b, c := newBare(t), &clock{now: start}
	commit := b.commit("one")
	b.tag(ann, commit, name, name, "git", start, nil)
	for signers, want := range map[string]string{
		"":                            "",
		"# nobody\n\n":                "",
		"ann@example.com " + ann.line: "ann@example.com",
		"  ann@example.com\t" + ann.line + "\r\n":                                                        "ann@example.com",
		"bob@example.com " + bob.line:                                                                    "",
		"bob@example.com " + bob.line + "\nann@example.com " + ann.line + " a comment\n":                 "ann@example.com",
		"ann,root " + ann.line:                                                                           "ann",
		"*@example.com " + ann.line:                                                                      "*@example.com",
		`ann namespaces="git" ` + ann.line:                                                               "ann",
		`ann namespaces="file,g?t" ` + ann.line:                                                          "ann",
		`ann namespaces="file" ` + ann.line:                                                              "",
		`ann namespaces="git,!g*" ` + ann.line:                                                           "",
		`ann valid-after="20261101Z",valid-before="20261103Z" ` + ann.line:                               "ann",
		`ann valid-before="20261101Z" ` + ann.line:                                                       "",
		`ann valid-after="20261102090001Z" ` + ann.line:                                                  "",
		`ann valid-after="202611020900Z",valid-before="20261102090001Z" ` + ann.line:                     "ann",
		`ann valid-before="20261102090000Z" ` + ann.line:                                                 "ann",
		`ann valid-before="20251101Z" ` + ann.line + "\nann-later valid-after=\"20260101Z\" " + ann.line: "ann-later",
		"ann cert-authority " + ann.line:                                                                 "",
	} {
		f := c.forge(t, b, "Kalypso", plain.Options{AllowedSigners: []byte(signers)})
		got, err := f.Approvals(t.Context(), "prod", digest)
		if err != nil {
			t.Fatal(err)
		}
		var all []forge.Review
		if want != "" {
			all = []forge.Review{{By: want, Approved: true, Commit: commit, At: start}}
		}
		expect(t, signers, got, all)
		if keygen() && b.verifies(name, signers) != (want != "") {
			t.Errorf("git has another opinion of %q", signers)
		}
	}
	for _, signers := range []string{
		"ann", "ann " + ann.line[:40], "ann ssh-ed25519 !!!", `"ann b" ` + ann.line, `ann sudo="yes" ` + ann.line,
		`ann valid-after="tomorrow" ` + ann.line, `ann valid-after="20261102",valid-before="20261102" ` + ann.line, "ok " + ann.line + "\n<<<<<<< HEAD", "," + " " + ann.line,
	} {
		if _, err := plain.New(b, plain.Options{AllowedSigners: []byte(signers)}); err == nil || !strings.Contains(err.Error(), "line") {
			t.Errorf("%q: %v", signers, err)
		}
	}
}

// The conditions for a tag to count as an approval.
func TestApprovals(t *testing.T) {
	ann, bob := newKey(t, "ann"), newKey(t, "bob")
	b, c := newBare(t), &clock{now: start}
	one, two := b.commit("one"), b.commit("two")
	f := c.forge(t, b, "Kalypso", plain.Options{AllowedSigners: []byte("ann " + ann.line + "\nbob " + bob.line + "\n")})
	replace := func(old, by string) func(string) string {
		return func(s string) string { return strings.Replace(s, old, by, 1) }
	}
	for what, make := range map[string]func(){
		"another name inside": func() { b.tag(ann, one, "kalypso/approve/dev/4f2a9c1b77aa", name, "git", start, nil) },
		"another environment": func() {
			b.tag(ann, one, "kalypso/approve/dev/4f2a9c1b77aa", "kalypso/approve/dev/4f2a9c1b77aa", "git", start, nil)
		},
		"a ring": func() {
			b.tag(ann, one, "kalypso/approve/prod/eu/4f2a9c1b77aa", "kalypso/approve/prod/eu/4f2a9c1b77aa", "git", start, nil)
		},
		"another digest": func() {
			b.tag(ann, one, "kalypso/approve/prod/4f2a9c1b77ab", "kalypso/approve/prod/4f2a9c1b77ab", "git", start, nil)
		},
		"a longer name":           func() { b.tag(ann, one, name+"9", name+"9", "git", start, nil) },
		"another namespace":       func() { b.tag(ann, one, name, name, "file", start, nil) },
		"a changed commit":        func() { b.tag(ann, one, name, name, "git", start, replace(one.String(), two.String())) },
		"a changed message":       func() { b.tag(ann, one, name, name, "git", start, replace("fine", "Fine")) },
		"a second header":         func() { b.tag(ann, one, name, name, "git", start, replace("type", "object "+two.String()+"\ntype")) },
		"a second, signed header": func() { b.tag(ann, one, name+"\nobject "+two.String(), name, "git", start, nil) },
		"a second signature": func() {
			b.tag(ann, one, name, name, "git", start, func(s string) string { return s + s[strings.Index(s, "-----BEGIN"):] })
		},
		"a PGP signature": func() {
			b.tag(ann, one, name, name, "git", start, func(s string) string { return s + "-----BEGIN PGP SIGNATURE-----\n" })
		},
		"a broken signature":    func() { b.tag(ann, one, name, name, "git", start, replace("U1NIU0lH", "U1NIU0lI")) },
		"no signature":          func() { b.git("tag", "-a", "-m", "x", "-f", name, one.String()) },
		"a lightweight tag":     func() { b.git("tag", "-f", name, one.String()) },
		"a tag of a tree":       func() { b.git("tag", "-f", name, one.String()+"^{tree}") },
		"a branch of that name": func() { b.git("update-ref", "refs/heads/"+name, one.String()) },
	} {
		for line := range strings.Lines(b.git("for-each-ref", "--format=%(refname)")) {
			b.git("update-ref", "-d", strings.TrimSpace(line))
		}
		make()
		if got, err := f.Approvals(t.Context(), "prod", digest); len(got) > 0 || err != nil {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
	b.tag(bob, one, name, name, "git", start, nil)
	b.tag(ann, one, name+"-ann", name+"-ann", "git", start, nil)
	b.tag(ann, two, name+"-ann-again", name+"-ann-again", "git", start.Add(time.Hour), nil)
	b.tag(ann, one, name+"-before", name+"-before", "git", start, nil)
	got, err := f.Approvals(t.Context(), "prod", strings.TrimPrefix(digest, "sha256:"))
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "approvals", got, []forge.Review{
		{By: "ann", Approved: true, Commit: two, At: start.Add(time.Hour)}, {By: "bob", Approved: true, Commit: one, At: start},
	})
	for _, wrong := range [][2]string{{"prod", "4f2a"}, {"prod", "../../heads/x"}, {"pr..od", digest}, {"", digest}} {
		if got, err := f.Approvals(t.Context(), wrong[0], wrong[1]); err == nil {
			t.Errorf("%v: %+v", wrong, got)
		}
	}
}

// The documented command makes a tag that counts.
func TestGitTag(t *testing.T) {
	if !keygen() {
		t.Skip("ssh-keygen is not installed, which make test-all does")
	}
	ann := newKey(t, "ann")
	b, c := newBare(t), &clock{now: start}
	one := b.commit("one")
	tag, err := plain.ApprovalTag("prod/eu", digest)
	if err != nil {
		t.Fatal(err)
	}
	b.git("-c", "gpg.format=ssh", "-c", "user.signingkey="+ann.file, "tag", "-s", "-m", "fine", tag, one.String())
	f := c.forge(t, b, "Kalypso", plain.Options{AllowedSigners: []byte("ann " + ann.line)})
	got, err := f.Approvals(t.Context(), "prod/eu", digest)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "approvals", got, []forge.Review{{By: "ann", Approved: true, Commit: one, At: start}})
}

// The owner of the key is the author of a signed status, whatever the committer is. Nobody else
// can use the owner's name.
func TestSignedStatuses(t *testing.T) {
	bot, stranger := newKey(t, "bot"), newKey(t, "stranger")
	b, c := newBare(t), &clock{now: start}
	one := b.commit("one")
	allowed := []byte("kalypso-bot " + bot.line)
	signed := c.forge(t, b, "Bot", plain.Options{Signer: bot.signer, AllowedSigners: allowed})
	other := c.forge(t, b, "Bot", plain.Options{Signer: stranger.signer, AllowedSigners: allowed})
	set(t, signed, one, "a", forge.Success, "")
	commit := b.git("rev-parse", "refs/notes/kalypso")
	set(t, signed, one, "a", forge.Success, "")
	expect(t, "the tip after the same again", b.git("rev-parse", "refs/notes/kalypso"), commit)
	set(t, other, one, "a", forge.Success, "")
	// A signature that is moved to another commit does not count.
	text := b.git("cat-file", "commit", commit) + "\n"
	forged := plumbing.NewHash(b.git("hash-object", "-t", "commit", "-w", b.file(strings.Replace(text, "success", "failure", 1))))
	expect(t, "statuses", said(t, signed, one), []string{"kalypso-bot a success ", "Bot <bot@example.com> a success "})
	b.git("update-ref", "refs/notes/kalypso", forged.String())
	expect(t, "forged", said(t, signed, one), []string{"Bot <bot@example.com> a success "})
	for f, want := range map[*plain.Forge]string{signed: "kalypso-bot", other: "Bot <bot@example.com>"} {
		if got, _ := f.Viewer(t.Context()); got != want {
			t.Error(got)
		}
	}
	if !keygen() {
		return
	}
	file := b.file(string(allowed))
	if out, err := b.run("-c", "gpg.format=ssh", "-c", "gpg.ssh.allowedSignersFile="+file, "verify-commit", commit); err != nil {
		t.Error(out)
	}
}

func (b *bare) file(content string) string {
	b.t.Helper()
	file := filepath.Join(b.t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return file
}

func TestUnsupported(t *testing.T) {
	f := (&clock{}).forge(t, newBare(t), "Kalypso", plain.Options{})
	_, find := f.FindChange(t.Context(), "a", "b")
	_, save := f.SaveChange(t.Context(), forge.ChangeSpec{})
	_, merge := f.Merge(t.Context(), 1, git.Hash{}, forge.MergeOptions{})
	_, reviews := f.Reviews(t.Context(), 1)
	for _, err := range []error{find, save, merge, reviews, f.CloseChange(t.Context(), 1, ""), f.CancelMerge(t.Context(), 1), f.Comment(t.Context(), 1, ""), f.Deploy(t.Context(), forge.Deployment{})} {
		if !isUnsupported(err) {
			t.Error(err)
		}
	}
}
