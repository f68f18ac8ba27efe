package fetch

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/internal/archive"
	"github.com/kalypso-io/kalypso/internal/httpclient"
)

// object writes a git object, sound or not, and returns its id.
func (w *workTree) object(kind, content string) string {
	w.Helper()
	cmd := exec.Command("git", "-C", w.dir, "hash-object", "-w", "-t", kind, "--literally", "--stdin")
	cmd.Stdin = strings.NewReader(content)
	out, err := cmd.Output()
	must(w, err)
	return strings.TrimSpace(string(out))
}

// treeEntry is an entry of a tree object: a mode, a name and an id.
func treeEntry(mode, name, id string) string {
	raw := make([]byte, 20)
	_, err := fmt.Sscanf(id, "%x", &raw)
	if err != nil {
		panic(err)
	}
	return mode + " " + name + "\x00" + string(raw)
}

// point makes the branch main a commit with a tree.
func (w *workTree) point(tree string) {
	w.Helper()
	w.git("update-ref", "refs/heads/main", w.git("commit-tree", "-m", "a commit", tree))
}

// Trees of a commit that no working tree could have.
func TestGitHostileTrees(t *testing.T) {
	h, w := gitHost(t)
	w.commit("a", "1")
	source := dependency.Source{Kind: dependency.Git, URL: h.URL + "/app.git", Branch: "main"}
	blob := w.object("blob", "1")
	link := w.object("blob", "../../../etc/passwd")

	for name, want := range map[string]string{
		"..": `??.! has ".." in it`, ".git": "?.git! is in a folder of git's own", ".GIT": "?.GIT! is in a folder of git's own",
		"a\\b": "a?b! has a backslash or an invisible character in it", "a\x1b": "a?! has a backslash or an invisible character in it",
	} {
		w.point(w.object("tree", treeEntry("100644", name, blob)))
		_, data, err := quick(t).Resolve(t.Context(), source)
		must(t, err)
		if got := files(t, data); len(got) != 1 || !strings.HasSuffix(got[0], strings.TrimPrefix(want, "??.")) && got[0] != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}

	w.point(w.object("tree", treeEntry("120000", "l", link)))
	_, data := resolving(t, source)
	wantFiles(t, data, `l! is a link to "../../../etc/passwd", which leaves the tree`)

	// The same name twice.
	w.point(w.object("tree", treeEntry("100644", "a", blob)+treeEntry("100644", "a", blob)))
	_, _, err := quick(t).Resolve(t.Context(), source)
	wantError[*Error](t, err, `"a" is there twice`)

	// Ten folders that each contain the next ten times, with a file and without.
	for _, leaf := range []string{treeEntry("100644", "f", blob), ""} {
		tree := w.object("tree", leaf)
		for range 10 {
			text := ""
			for i := range 10 {
				text += treeEntry("40000", fmt.Sprint(i), tree)
			}
			tree = w.object("tree", text)
		}
		w.point(tree)
		_, _, err := quick(t).Resolve(t.Context(), source)
		wantError[*Error](t, err, fmt.Sprintf("at most %d entries", archive.DefaultLimits.Entries))
	}

	// A folder that is as deep as it can be, and more.
	tree := w.object("tree", treeEntry("100644", "f", blob))
	for range archive.DefaultLimits.Depth {
		tree = w.object("tree", treeEntry("40000", "d", tree))
	}
	w.point(tree)
	_, _, err = quick(t).Resolve(t.Context(), source)
	wantError[*Error](t, err, "paths of at most")

	// A tag of an object that is not a commit.
	w.git("tag", "text", blob)
	source.Branch, source.Tag = "", "text"
	if _, _, err := quick(t).Resolve(t.Context(), source); err == nil {
		t.Error("a blob is taken for a commit")
	}
}

// Whatever answers at the URL, there is an error, and soon.
func TestGitLiars(t *testing.T) {
	isolate(t)
	for name, answer := range map[string]http.HandlerFunc{
		"a page":       text("<p>Welcome"),
		"nothing":      text(""),
		"half a line":  text("001e# service=git-upl"),
		"endless":      endless,
		"endless refs": endlessRefs,
		"an error":     text("001e# service=git-upload-pack\n0000" + "0015ERR \x1b[31mgo away\n"),
		"escapes":      func(w http.ResponseWriter, r *http.Request) { http.Error(w, "\x1b[31m\n"+password, http.StatusTeapot) },
	} {
		t.Run(name, func(t *testing.T) {
			h := serve(t, answer)
			_, _, err := quick(t).Resolve(t.Context(), dependency.Source{Kind: dependency.Git, URL: h.URL + "/a", Branch: "main"})
			wantError[*Error](t, err, "")
			if name == "endless refs" && !errors.As(err, new(*httpclient.TooLongError)) {
				t.Error(err)
			}
		})
	}
}

func endlessRefs(w http.ResponseWriter, r *http.Request) {
	_, _ = io.WriteString(w, "001e# service=git-upload-pack\n0000")
	line := func(end string) string {
		text := strings.Repeat("0", 39) + "1 refs/heads/a-branch-with-a-name" + end + "\n"
		return fmt.Sprintf("%04x%s", len(text)+4, text)
	}
	_, _ = io.WriteString(w, line("\x00shallow"))
	chunk := strings.Repeat(line(""), 1<<14)
	for r.Context().Err() == nil {
		if _, err := io.WriteString(w, chunk); err != nil {
			return
		}
	}
}

// A server that hangs costs the time that is allowed.
func TestTimeout(t *testing.T) {
	isolate(t)
	h := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	f, err := New(Options{Timeout: 20 * time.Millisecond, wait: time.Millisecond})
	must(t, err)
	for _, s := range []dependency.Source{
		{Kind: dependency.Git, URL: h.URL + "/a", Branch: "main"},
		podinfo(h.URL, "1.2.0"),
		{Kind: dependency.OCI, URL: "oci://" + h.Listener.Addr().String() + "/a", Tag: "1"},
	} {
		_, _, err := f.Resolve(t.Context(), s)
		wantError[*Error](t, err, "it takes longer than 20ms")
	}
}
