package kalypso_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

// tagged makes a git repository of the checkout, in a folder, with a commit and a tag. All
// of one tag have the same commit.
func tagged(t *testing.T, dir, tag string) {
	t.Helper()
	for _, file := range checkout(t) {
		info, err := file.Lstat()
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(file.Path())
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, file.Path())
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, data, info.Mode()); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch", "main"},
		{"add", "--all"},
		{"commit", "--quiet", "--message", "A release"},
		{"tag", tag},
		{"remote", "add", "origin", "https://github.com/kalypso-io/kalypso"}, // GoReleaser asks for its name
	} {
		cmd := exec.Command("git", append([]string{"-c", "user.name=A", "-c", "user.email=a@example.com"}, args...)...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_AUTHOR_DATE=2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", args, err, out)
		}
	}
}

// TestSlowRelease makes a release twice, in two folders. All bytes must be the same, and the
// program must print its version. make test-long makes the whole release except the parts that
// need a network. Otherwise the test makes the program for this system, with the flags in
// .goreleaser.yaml.
func TestSlowRelease(t *testing.T) {
	isolated.Slow(t, "it links kalypso twice, and with KALYPSO_LONG=1 compiles it for six systems")
	make, tag := buildProgram, "v0.98.7" // go accepts no v2 of this module
	if os.Getenv("KALYPSO_LONG") != "" {
		make = goreleaser
	}
	var dirs [2]string
	var digests [2]map[string]string
	for i := range dirs {
		dirs[i] = filepath.Join(t.TempDir(), strings.Repeat("deeper/", i)+"kalypso")
		tagged(t, dirs[i], tag)
		digests[i] = make(t, dirs[i])
	}
	for name, digest := range digests[0] {
		if digests[1][name] != digest {
			t.Errorf("%s differs", name)
		}
	}
	if len(digests[0]) != len(digests[1]) || len(digests[0]) == 0 {
		t.Errorf("%v\n%v", digests[0], digests[1])
	}
	if os.Getenv("KALYPSO_LONG") != "" {
		checkRelease(t, filepath.Join(dirs[0], "dist"), tag)
	} else {
		checkVersion(t, filepath.Join(dirs[0], "dist", "kalypso"), tag)
	}
}

// configuration is the part of .goreleaser.yaml that the tests read.
type configuration struct {
	Builds []struct {
		ID, Main          string
		Env, Goos, Goarch []string
		Flags, Ldflags    []string
	}
}

// buildProgram builds the program for this system, and returns its digest by its name.
func buildProgram(t *testing.T, dir string) map[string]string {
	t.Helper()
	var c configuration
	text, err := os.ReadFile(filepath.Join(dir, ".goreleaser.yaml"))
	if err == nil {
		err = yaml.Unmarshal(text, &c)
	}
	if err != nil || len(c.Builds) == 0 || c.Builds[0].ID != "kalypso" {
		t.Fatal(err, c)
	}
	program := filepath.Join(dir, "dist", "kalypso")
	cmd := exec.Command("go", slices.Concat([]string{"build"}, c.Builds[0].Flags, []string{"-ldflags", strings.Join(c.Builds[0].Ldflags, " "), "-o", program, c.Builds[0].Main})...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), c.Builds[0].Env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return map[string]string{"kalypso": digest(t, program)}
}

func digest(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(data))
}

// checkVersion checks the version that a program prints.
func checkVersion(t *testing.T, program, tag string) {
	t.Helper()
	if said := command(t, t.TempDir(), program, "version"); !strings.HasPrefix(said, "kalypso  "+tag+"\n") {
		t.Errorf("it says\n%s", said)
	}
}

// goreleaser makes a release, except the steps that need other servers. It returns the digests of
// all files of the release, by name.
func goreleaser(t *testing.T, dir string) map[string]string {
	t.Helper()
	for _, args := range [][]string{{"check"}, {"release", "--clean", "--skip=publish,announce,sign,docker", "--parallelism=1"}} {
		cmd := exec.Command(filepath.Join(dir, ".ci", "goreleaser"), args...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", args, err, out)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "dist", "*"))
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, filepath.Join(dir, "dist", "homebrew", "Casks", "kalypso.rb"))
	out := map[string]string{}
	for _, file := range files {
		switch name := filepath.Base(file); {
		case path.Ext(name) == ".gz", path.Ext(name) == ".zip", path.Ext(name) == ".rb", name == "checksums.txt", strings.HasSuffix(name, ".cdx.json"):
			out[name] = digest(t, file)
		}
	}
	return out
}

// checkRelease checks the files of a release, and installs it.
func checkRelease(t *testing.T, dist, tag string) {
	sums, err := os.ReadFile(filepath.Join(dist, "checksums.txt"))
	if err != nil {
		t.Fatal(err)
	}
	listed := func(name string) {
		if file := filepath.Join(dist, name); !strings.Contains(string(sums), digest(t, file)+"  "+name+"\n") {
			t.Errorf("checksums.txt does not have %s", name)
		}
	}
	for _, system := range []string{"linux", "darwin", "windows"} {
		for _, processor := range []string{"amd64", "arm64"} {
			name := "kalypso_" + system + "_" + processor
			archive, program := name+".tar.gz", "kalypso"
			if system == "windows" {
				archive, program = name+".zip", "kalypso.exe"
			}
			listed(archive)
			listed(name + ".cdx.json")
			has := contents(t, filepath.Join(dist, archive))
			for _, want := range []string{program, "LICENSE", "README.md", "completions/kalypso.bash", "completions/_kalypso", "completions/kalypso.fish", "completions/kalypso.ps1", "man/kalypso.1", "man/kalypso-build.1"} {
				if !slices.Contains(has, want) {
					t.Errorf("%s has no %s: %s", archive, want, has)
				}
			}
			bom, err := os.ReadFile(filepath.Join(dist, name+".cdx.json"))
			if err != nil || !bytes.Contains(bom, []byte("pkg:golang/cuelang.org/go@")) || !bytes.Contains(bom, []byte(tag)) {
				t.Errorf("%s.cdx.json: %v", name, err)
			}
		}
	}
	for _, system := range []string{"linux", "darwin"} {
		for _, processor := range []string{"amd64", "arm64"} {
			name := "kalypso-hub_" + system + "_" + processor
			listed(name + ".tar.gz")
			listed(name + ".cdx.json")
			if has := contents(t, filepath.Join(dist, name+".tar.gz")); !slices.Contains(has, "kalypso-hub") || !slices.Contains(has, "LICENSE") {
				t.Errorf("%s.tar.gz has %s", name, has)
			}
		}
	}
	cask, err := os.ReadFile(filepath.Join(dist, "homebrew", "Casks", "kalypso.rb"))
	if err != nil || !bytes.Contains(cask, []byte(digest(t, filepath.Join(dist, "kalypso_darwin_arm64.tar.gz")))) {
		t.Errorf("%v: %s", err, cask)
	}
	files := http.StripPrefix("/download/"+tag, http.FileServer(http.Dir(dist)))
	server := httptest.NewServer(files)
	defer server.Close()
	cmd := exec.Command("sh", "install.sh", tag)
	folder := t.TempDir()
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "KALYPSO_INSTALL_DIR=" + folder, "KALYPSO_DOWNLOADS=" + server.URL}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	checkVersion(t, filepath.Join(folder, "kalypso"), tag)
}

// TestWorkflowRights checks that each job of this repository's workflows has only the rights that
// its steps need. No job with more rights than contents: read runs foreign code.
func TestWorkflowRights(t *testing.T) {
	files, err := filepath.Glob(".github/workflows/*")
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		var workflow struct {
			Permissions map[string]string
			Jobs        map[string]struct {
				Permissions map[string]string
				Steps       []workflowStep
			}
		}
		text, err := os.ReadFile(file)
		if err == nil {
			err = yaml.Unmarshal(text, &workflow)
		}
		if err != nil || len(workflow.Jobs) == 0 || workflow.Permissions == nil || len(workflow.Permissions) > 0 {
			t.Fatal(file, err, workflow)
		}
		for name, job := range workflow.Jobs {
			if want := rightsOf(job.Steps); !maps.Equal(job.Permissions, want) {
				t.Errorf("%s: %s has the permissions %v, and its steps need %v", file, name, job.Permissions, want)
			}
			for _, s := range job.Steps {
				runs := strings.HasPrefix(s.Run, "make ") || strings.Contains(s.Run, ".ci/upgrade")
				if runs && !maps.Equal(job.Permissions, map[string]string{"contents": "read"}) {
					t.Errorf("%s: %s runs %q with more than contents: read", file, name, s.Run)
				}
			}
		}
	}
}

// workflowStep is a step of a job of a workflow.
type workflowStep struct{ Uses, Run string }

// rightsOf returns the rights that the steps of a job need.
func rightsOf(steps []workflowStep) map[string]string {
	want := map[string]string{}
	for _, s := range steps {
		switch uses, _, _ := strings.Cut(s.Uses, "@"); {
		case uses == "actions/checkout" && want["contents"] == "":
			want["contents"] = "read"
		case uses == "docker/login-action":
			want["packages"] = "write"
		case uses == "actions/attest":
			want["id-token"], want["attestations"] = "write", "write"
		case strings.HasPrefix(s.Run, ".ci/goreleaser release"):
			want["contents"], want["id-token"] = "write", "write" // the release, and cosign
		}
		if strings.Contains(s.Run, "git push ") {
			want["contents"] = "write"
		}
		if strings.Contains(s.Run, "gh pr ") {
			want["pull-requests"] = "write"
		}
	}
	return want
}

// TestBaseImages: images are built on others by their digests, since a tag can be moved, and all
// on the same one.
func TestBaseImages(t *testing.T) {
	files, err := filepath.Glob("Dockerfile*")
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	pinned := regexp.MustCompile(`^alpine:[0-9]+\.[0-9]+@sha256:[0-9a-f]{64}$`)
	first := ""
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		from := regexp.MustCompile(`(?m)^FROM (.*)$`).FindAllStringSubmatch(string(text), -1)
		for _, m := range from {
			if first = cmp.Or(first, m[1]); !pinned.MatchString(m[1]) || m[1] != first {
				t.Errorf("%s is built on %s", file, m[1])
			}
		}
		if len(from) == 0 {
			t.Errorf("%s is built on nothing", file)
		}
	}
}

// contents are the names in an archive.
func contents(t *testing.T, archive string) (names []string) {
	t.Helper()
	if path.Ext(archive) == ".zip" {
		r, err := zip.OpenReader(archive)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		for _, f := range r.File {
			names = append(names, f.Name)
		}
		return names
	}
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
	}
}

// TestSlowSystems compiles kalypso for the systems that it is released for.
func TestSlowSystems(t *testing.T) {
	isolated.Slow(t, "it compiles kalypso for other systems")
	for _, system := range []string{"darwin", "windows"} {
		cmd := exec.Command("go", "build", "-o", os.DevNull, "./cmd/kalypso")
		cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+runtime.GOARCH, "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("for %s: %v\n%s", system, err, out)
		}
	}
}
