package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/hub/compiled"
	"github.com/kalypso-io/kalypso/hub/follow"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
	"github.com/kalypso-io/kalypso/promotion"
	"github.com/kalypso-io/kalypso/promotion/plan"
)

// hostile is a platform with environments dev and prod that were promoted.
type hostile struct {
	*testing.T
	platform
	ops string
}

func newHostile(t *testing.T) *hostile {
	t.Helper()
	dir := t.TempDir()
	h := &hostile{t, platform{repository: filepath.Join(dir, "platform"), path: ".", forge: "none", bounds: boundFlags{memory: "192Mi"}}, filepath.Join(dir, "ops.git")}
	if err := os.CopyFS(h.repository, os.DirFS("../../testdata/platform")); err != nil {
		t.Fatal(err)
	}
	h.git(dir, "init", "-q", "--bare", h.ops)
	h.git(h.repository, "init", "-q", "-b", "main")
	h.write("gitops.cue", fmt.Sprintf(`package platform

environments: [N=_]: {gitops: {repo: %q, branch: N}, promotion: write: "push"}
`, "file://"+h.ops))
	h.commit()
	r := h.request(compiler.Request{})
	r.By = "Ada"
	s, err := promotion.Open(t.Context(), r)
	if err == nil {
		_, err = s.Apply(t.Context(), plan.Intent{}, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *hostile) git(dir string, args ...string) string {
	h.Helper()
	out, err := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=Ada", "-c", "user.email=ada@example.com"}, args...)...).CombinedOutput()
	if err != nil {
		h.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (h *hostile) write(name, text string) {
	h.Helper()
	if err := os.WriteFile(filepath.Join(h.repository, filepath.FromSlash(name)), []byte(text), 0o600); err != nil {
		h.Fatal(err)
	}
}

// commit commits the platform's files, and returns the commit.
func (h *hostile) commit() string {
	h.git(h.repository, "add", "-A")
	h.git(h.repository, "commit", "-qm", "Change")
	return h.git(h.repository, "rev-parse", "HEAD")
}

// wanted runs the process that reads the desired state. It returns the environments that it read,
// its last line, and its error messages if it fails.
func (h *hostile) wanted() (read []string, end *follow.End, failed string) {
	h.Helper()
	cmd, err := h.process(h.Context())
	if err != nil {
		h.Fatal(err)
	}
	var messages bytes.Buffer
	cmd.Stderr = &messages
	out, err := cmd.Output()
	if err != nil {
		return nil, nil, messages.String()
	}
	for lines := json.NewDecoder(bytes.NewReader(out)); ; {
		var l follow.Line
		if err := lines.Decode(&l); err != nil {
			h.Fatal(err)
		}
		if l.End != nil {
			return read, l.End, ""
		}
		read = append(read, l.Wanted.Environment)
	}
}

// double makes a string of gibibytes.
func double() string {
	var b strings.Builder
	b.WriteString("package platform\n\n_s0: \"0123456789abcdef\"\n")
	for i := range 14 {
		fmt.Fprintf(&b, "_s%d: _s%d + _s%[2]d + _s%[2]d + _s%[2]d\n", i+1, i)
	}
	return b.String()
}

// endless is a list that has no room anywhere.
const endless = "package platform\n\nimport \"list\"\n\n_x: len([for i in list.Range(0, 1000000000, 1) {i}])\n"

const beyondBound = "it needs more than 192 MiB of memory"

// TestWantedBeyond has an environment that needs more memory than its limit. The error names the
// environment, the limit and the flag that raises it. The other environments are read.
func TestWantedBeyond(t *testing.T) {
	h := newHostile(t)
	alone := func(what string) {
		t.Helper()
		read, end, failed := h.wanted()
		if failed != "" {
			t.Fatalf("%s: %s", what, failed)
		}
		if why := end.Unreadable["dev"]; len(end.Unreadable) != 1 || !slices.Equal(read, []string{"prod"}) || !strings.Contains(why, beyondBound) || !strings.Contains(why, "--evaluation-memory") {
			t.Errorf("%s: read %v, and %+v", what, read, end)
		}
	}
	if read, end, failed := h.wanted(); len(read) != 2 || len(end.Unreadable) != 0 {
		t.Fatalf("read %v, %+v: %s", read, end, failed)
	}
	bad := "environments/dev/bad.cue"
	h.write(bad, "// It names rings.\n"+double())
	h.commit()
	alone("a string that doubles")

	// If the mistake is in the base, policies are not known, and nothing can be read.
	h.git(h.repository, "mv", bad, "bad.cue")
	h.commit()
	if _, _, failed := h.wanted(); !strings.Contains(failed, "the platform's base cannot be evaluated: "+beyondBound+"; ") || strings.Count(failed, "\n") != 1 {
		t.Errorf("it says %s", failed)
	}
	h.git(h.repository, "rm", "-q", "bad.cue")
	h.commit()

	// Records are as hostile as their branch.
	branch := filepath.Join(t.TempDir(), "dev")
	h.git(".", "clone", "-q", "-b", "dev", h.ops, branch)
	record := filepath.Join(branch, ".kalypso", "provenance.json")
	data, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	var entries strings.Builder
	for i := range 400_000 {
		fmt.Fprintf(&entries, `{"name":"a%07d","tree":"%040d","digest":"%064d","assignments":1,"record":"%040d"},`, i, i, i, i)
	}
	before, after, found := bytes.Cut(data, []byte(`"clusterTypes": [`))
	if !found {
		t.Fatalf("the record is %s", data)
	}
	if err := os.WriteFile(record, slices.Concat(before, []byte(`"clusterTypes": [`+entries.String()), after), 0o600); err != nil {
		t.Fatal(err)
	}
	h.git(branch, "commit", "-qam", "Grow")
	h.git(branch, "push", "-q", "origin", "dev")
	alone("a record")
}

// TestSlowCompiledBeyond requests pages about commits that need too much memory. The page reports
// the limit, and the pages of another environment work.
func TestSlowCompiledBeyond(t *testing.T) {
	isolated.Slow(t, "a list takes long to grow")
	h := newHostile(t)
	pool := h.pool()
	defer pool.Close()
	good := h.git(h.repository, "rev-parse", "HEAD")
	ask := func(environment, commit string) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		d, err := pool.Diagnostics(ctx, compiled.At{Environment: environment, Base: commit, Own: commit})
		text, _ := json.Marshal(d)
		return string(text), err
	}
	for name, text := range map[string]string{"doubles": double(), "endless": endless} {
		h.write("environments/dev/bad.cue", text)
		bad := h.commit()
		if text, err := ask("dev", bad); err != nil || !strings.Contains(text, "environment dev cannot be evaluated: "+beyondBound) {
			t.Errorf("%s: %s, %v", name, text, err)
		}
		for environment, commit := range map[string]string{"dev": good, "prod": bad} {
			if text, err := ask(environment, commit); err != nil || strings.Contains(text, "needs more") {
				t.Errorf("%s: %s of %s: %s, %v", name, environment, commit, text, err)
			}
		}
	}
}

// TestCompiledBeyond has a process that has too little memory for anything.
func TestCompiledBeyond(t *testing.T) {
	h := newHostile(t)
	h.bounds.memory = "8Mi"
	pool := h.pool()
	defer pool.Close()
	commit := h.git(h.repository, "rev-parse", "HEAD")
	_, err := pool.Diagnostics(t.Context(), compiled.At{Environment: "dev", Base: commit, Own: commit})
	if err == nil || !strings.Contains(err.Error(), "environment dev cannot be compiled from commit "+commit+": ") || !strings.Contains(err.Error(), "it needs more than 8 MiB of memory; ") {
		t.Errorf("it says %v", err)
	}
}
