package kalypso_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rhysd/actionlint"
	"go.yaml.in/yaml/v3"

	"github.com/kalypso-io/kalypso"
)

// uses is how workflows use the action of this repository.
var uses = regexp.MustCompile(`kalypso-io/kalypso@([^\s,}]+)`)

// pinned is a use of another's action, by a commit, with the version that it is; other is any use
// of one.
var (
	pinned = regexp.MustCompile(`uses: ([\w./-]+)@([0-9a-f]{40}) # (v[0-9]+)[0-9.]*`)
	other  = regexp.MustCompile(`uses: ([\w-]+/[\w./-]+)@.*`)
)

// TestPins: the actions of others are used by their commits, since a tag can be moved, and each by
// the same one everywhere.
func TestPins(t *testing.T) {
	texts := blocks(t)
	for _, pattern := range []string{".github/workflows/*", "action.yml", "internal/starter/github/dot-github/workflows/*"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("there is no %s: %v", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			texts[file] = string(text)
		}
	}
	first := map[string]string{}
	for at, text := range texts {
		for _, m := range other.FindAllStringSubmatch(text, -1) {
			switch use := strings.TrimSpace(m[0]); {
			case m[1] == "kalypso-io/kalypso":
			case !pinned.MatchString(use):
				t.Errorf("%s: %s has no commit with its version in a comment", at, use)
			case first[m[1]] == "":
				first[m[1]] = use
			case first[m[1]] != use:
				t.Errorf("%s: %s is not %s, as elsewhere", at, use, first[m[1]])
			}
		}
	}
	if len(first) < 5 {
		t.Errorf("there are only %d actions", len(first))
	}
}

// lint returns the errors in a workflow. It checks the workflow's inputs for the action of this
// repository against action.yml.
func lint(t *testing.T, name, text string) (wrong []string) {
	t.Helper()
	project, err := actionlint.NewProject(".")
	if err != nil {
		t.Fatal(err)
	}
	linter, err := actionlint.NewLinter(new(bytes.Buffer), &actionlint.LinterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	text = pinned.ReplaceAllString(uses.ReplaceAllString(text, "./"), "uses: $1@$3") // actionlint knows inputs by versions
	found, err := linter.Lint(name, []byte(text), project)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range found {
		wrong = append(wrong, fmt.Sprintf("%s:%d:%d: %s", name, e.Line, e.Column, e.Message))
	}
	return wrong
}

// yamlBlock is a block of a page that is YAML.
var yamlBlock = regexp.MustCompile("(?s)\n```yaml\n(.*?)\n```")

// blocks are the blocks of YAML of the docs, by "page:line".
func blocks(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, pattern := range []string{"README.md", "docs/*.md", "docs/*/*.md", "examples/*/README.md"} {
		pages, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range pages {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range yamlBlock.FindAllSubmatchIndex(text, -1) {
				out[fmt.Sprintf("%s:%d", page, bytes.Count(text[:at[2]], []byte("\n"))+1)] = string(text[at[2]:at[3]]) + "\n"
			}
		}
	}
	return out
}

// TestRunEndsWithUnchecked checks the last line of .ci/run. If vulnerabilities could not be
// looked up, it reports that, whether the tests pass or fail.
func TestRunEndsWithUnchecked(t *testing.T) {
	run, err := os.ReadFile(".ci/run")
	if err != nil {
		t.Fatal(err)
	}
	const unchecked = "vulnerabilities: NOT LOOKED FOR, there is no database here: govulncheck: no route"
	for _, test := range []struct{ vulnerabilities, tests, last string }{
		{"echo looking; echo '" + unchecked + "' >&2", "exit 0", unchecked},
		{"echo looking; echo '" + unchecked + "' >&2", "exit 1", unchecked},
		{"echo No vulnerabilities found.", "exit 0", "tested test-all"},
		{"echo Vulnerability 1; exit 3", "exit 0", "Vulnerability 1"},
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{
			".ci/run": string(run), ".ci/vulnerabilities": "#!/bin/sh\n" + test.vulnerabilities + "\n",
			"bin/make": "#!/bin/sh\necho tested $1\n[ $1 != test ] || " + test.tests + "\n",
		} {
			file := filepath.Join(dir, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command("bash", filepath.Join(dir, ".ci", "run"))
		cmd.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"), "TMPDIR="+dir)
		out, err := cmd.CombinedOutput()
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		fails := strings.Contains(test.vulnerabilities, "exit") || test.tests != "exit 0"
		if lines[len(lines)-1] != test.last || (err != nil) != fails {
			t.Errorf("%q and %q end with %v, and\n%s", test.vulnerabilities, test.tests, err, out)
		}
	}
}

// TestWorkflows checks that the workflows of this repository, and of the docs, are valid.
func TestWorkflows(t *testing.T) {
	own, err := filepath.Glob(".github/workflows/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range own {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, wrong := range lint(t, file, string(text)) {
			t.Error(wrong)
		}
	}
	n := 0
	for at, text := range blocks(t) {
		for _, m := range uses.FindAllStringSubmatch(text, -1) {
			if m[1] != kalypso.ModuleVersion {
				t.Errorf("%s: the action is used at %s, and not at %s", at, m[1], kalypso.ModuleVersion)
			}
		}
		if !strings.Contains(text, "runs-on:") {
			continue
		}
		if n++; !regexp.MustCompile(`(?m)^on:`).MatchString(text) {
			text = "on: push\n" + text // of a workflow that is shown elsewhere
		}
		for _, wrong := range lint(t, at, text) {
			t.Error(wrong)
		}
	}
	if n < 8 {
		t.Errorf("the docs have %d workflows", n)
	}
	const workflow = `on: push
jobs:
  a:
    runs-on: ubuntu-latest
    steps:
      - {id: a, uses: kalypso-io/kalypso@v0.1.0, with: {%s: v0.1.0}}
      - run: echo ${{ steps.a.outputs.%s }}
`
	for _, c := range []struct {
		input, output string
		ok            bool
	}{{"version", "version", true}, {"verzion", "version", false}, {"version", "verzion", false}} {
		if wrong := lint(t, "w.yaml", fmt.Sprintf(workflow, c.input, c.output)); (wrong == nil) != c.ok {
			t.Errorf("%s, %s: %s", c.input, c.output, wrong)
		}
	}
}

// step returns the script of a step of action.yml.
func step(t *testing.T, id string) string {
	t.Helper()
	var action struct {
		Runs struct{ Steps []struct{ ID, Run string } }
	}
	text, err := os.ReadFile("action.yml")
	if err == nil {
		err = yaml.Unmarshal(text, &action)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range action.Runs.Steps {
		if s.ID == id {
			return s.Run
		}
	}
	t.Fatalf("action.yml has no step %s", id)
	return ""
}

// runStep runs a step as GitHub does. It returns the step's output variables, and the text that
// it prints.
func runStep(t *testing.T, id string, env ...string) (output, printed string, err error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "output")
	cmd := exec.Command("bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step(t, id))
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GITHUB_OUTPUT=" + file, "RUNNER_TOOL_CACHE=/tools", "RUNNER_ARCH=X64"}, env...)
	out, err := cmd.CombinedOutput()
	text, _ := os.ReadFile(file)
	return string(text), string(out), err
}

// TestActionVersion: the action installs the release that it is used at.
func TestActionVersion(t *testing.T) {
	repository := t.TempDir()
	git := func(args ...string) string {
		return strings.TrimSpace(command(t, repository, "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...))
	}
	git("init", "--quiet")
	commit := func() string {
		git("commit", "--quiet", "--allow-empty", "--message", "a")
		return git("rev-parse", "HEAD")
	}
	plain := commit()
	git("tag", "v0.1.0")
	annotated := commit()
	git("tag", "--annotate", "--message", "a", "v0.2.0")
	untagged := commit()
	for _, c := range []struct{ version, ref, want string }{
		{"", "v0.1.0", "v0.1.0"},
		{"v0.3.0", "v0.1.0", "v0.3.0"},
		{"0.3.0", "main", "0.3.0"},
		{"latest", "main", "latest"},
		{"", plain, "v0.1.0"},
		{"", annotated, "v0.2.0"},
		{"", untagged, ""},
		{"", "main", ""},
		{"", "", ""}, // uses: ./
		{"v1.2.3-rc.1+build.5", "main", "v1.2.3-rc.1+build.5"},
		{"v1", "main", ""},
		{"v1.2.3/../../../evil", "main", ""},
		{"v1.2.3\nfolder=/evil", "main", ""},
		{"v1.2.3$(id)", "main", ""},
		{"v01.2.3", "main", ""},
		{"latest ", "main", ""},
		{"", "v1.2.3/../../evil", ""},
	} {
		output, printed, err := runStep(t, "version", "VERSION="+c.version, "REF="+c.ref, "REPOSITORY="+repository)
		if c.want == "" {
			if err == nil || !strings.HasPrefix(printed, "::error") || strings.Count(printed, "\n") != 1 || output != "" {
				t.Errorf("%+v: %v %s%s", c, err, printed, output)
			}
		} else if want := "version=" + c.want + "\nfolder=/tools/kalypso/" + c.want + "/X64\n"; err != nil || output != want {
			t.Errorf("%+v: %v %s%s", c, err, printed, output)
		}
	}
}

// TestActionInstalls checks that the installed program is in PATH, and that a cached program is
// not downloaded.
func TestActionInstalls(t *testing.T) {
	server := mirror(t)
	root, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	folder, path := filepath.Join(t.TempDir(), "tools"), filepath.Join(t.TempDir(), "path")
	env := []string{"KALYPSO_INSTALL_DIR=" + folder, "GITHUB_ACTION_PATH=" + root, "GITHUB_PATH=" + path}
	for _, c := range []struct {
		version, from, output string
	}{
		{"v9.9.9", server.URL, ""},
		{"v0.1.0", server.URL, "version=v0.1.0\n"},
		{"v0.1.0", "http://127.0.0.1:1", "version=v0.1.0\n"},
		{"latest", server.URL, "version=v0.2.0\n"},
		{"latest", "http://127.0.0.1:1", ""},
	} {
		output, printed, err := runStep(t, "install", append(env, "VERSION="+c.version, "KALYPSO_DOWNLOADS="+c.from, "KALYPSO_OS=Linux", "KALYPSO_ARCH=amd64")...)
		if output != c.output || (err == nil) != (c.output != "") {
			t.Errorf("%+v: %v\n%s%s", c, err, printed, output)
		}
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != strings.Repeat(folder+"\n", 3) {
		t.Errorf("%v: PATH gets\n%s", err, text)
	}
}

// component is templates/setup-kalypso.yml as GitLab has it.
type component struct {
	Spec struct {
		Inputs map[string]struct{ Default, Regex string }
	}
	Jobs map[string]struct {
		Variables map[string]string
		Script    []string `yaml:"before_script"`
	}
}

// input matches an input in the component.
var input = regexp.MustCompile(`\$\[\[ inputs\.(\w+) \]\]`)

// readComponent reads the component with inputs.
func readComponent(t *testing.T, with map[string]string) (c component) {
	t.Helper()
	text, err := os.ReadFile("templates/setup-kalypso.yml")
	if err != nil {
		t.Fatal(err)
	}
	spec, jobs, ok := bytes.Cut(text, []byte("\n---\n"))
	if !ok {
		t.Fatal("no spec")
	}
	if err := yaml.Unmarshal(spec, &c); err != nil {
		t.Fatal(err)
	}
	jobs = input.ReplaceAllFunc(jobs, func(use []byte) []byte {
		name := string(input.FindSubmatch(use)[1])
		declared, ok := c.Spec.Inputs[name]
		value, given := with[name]
		if !ok || !given && declared.Default == "" {
			t.Errorf("the input %s is not there", name)
		}
		if !given {
			value = declared.Default
		}
		return []byte(value)
	})
	if err := yaml.Unmarshal(jobs, &c.Jobs); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestComponent checks that the docs include the component with existing inputs, and that its
// script installs kalypso in a job.
func TestComponent(t *testing.T) {
	c := readComponent(t, map[string]string{"version": "v0.1.0"})
	n := 0
	for at, text := range blocks(t) {
		var pipeline struct {
			Include []struct {
				Remote string
				Inputs map[string]string
			}
		}
		if !strings.Contains(text, "setup-kalypso") {
			continue
		}
		if n++; yaml.Unmarshal([]byte(text), &pipeline) != nil || len(pipeline.Include) != 1 {
			t.Errorf("%s: not one include", at)
			continue
		}
		include := pipeline.Include[0]
		if want := "https://raw.githubusercontent.com/kalypso-io/kalypso/" + kalypso.ModuleVersion + "/templates/setup-kalypso.yml"; include.Remote != want || include.Inputs["version"] != kalypso.ModuleVersion {
			t.Errorf("%s: %+v", at, include)
		}
		for name := range include.Inputs {
			if _, ok := c.Spec.Inputs[name]; !ok {
				t.Errorf("%s: the component has no input %s", at, name)
			}
		}
	}
	if n < 4 {
		t.Errorf("the docs include it %d times", n)
	}

	version := regexp.MustCompile(c.Spec.Inputs["version"].Regex)
	for text, want := range map[string]bool{"v0.1.0": true, "v1.2.3-rc.1+b": true, "v1": false, "v0.1.0/../x": false, "v0.1.0; id": false} {
		if version.MatchString(text) != want {
			t.Errorf("%s: not %t", text, want)
		}
	}
	server := mirror(t)
	job := readComponent(t, map[string]string{"version": "v0.1.0", "downloads": server.URL}).Jobs[".install-kalypso"]
	dir := t.TempDir()
	cmd := exec.Command("sh", "-e", "-c", strings.Join(append(slices.Clone(job.Script), "kalypso version"), "\n"))
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "KALYPSO_OS=linux", "KALYPSO_ARCH=amd64"}
	for name, value := range job.Variables {
		cmd.Env = append(cmd.Env, name+"="+strings.ReplaceAll(value, "$CI_PROJECT_DIR", dir))
	}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "kalypso  v0.1.0\n") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestInstallPage runs the commands about install.sh in the docs, with a server of this machine
// in place of GitHub.
func TestInstallPage(t *testing.T) {
	server := mirror(t)
	n := 0
	for _, page := range []string{"README.md", "docs/install.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(line, "curl -fsSL ") || !strings.Contains(line, "install.sh") {
				continue
			}
			n++
			home := t.TempDir()
			cmd := exec.Command("sh", "-c", strings.ReplaceAll(line, "https://github.com/kalypso-io/kalypso/releases", server.URL))
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "KALYPSO_DOWNLOADS=" + server.URL, "KALYPSO_OS=linux", "KALYPSO_ARCH=amd64"}
			out, err := cmd.CombinedOutput()
			found, _ := filepath.Glob(filepath.Join(home, "*", "kalypso"))
			local, _ := filepath.Glob(filepath.Join(home, ".local", "bin", "kalypso"))
			if err != nil || len(found)+len(local) != 1 {
				t.Errorf("%s: %s%v\n%s", page, line, err, out)
			}
		}
	}
	if n != 3 {
		t.Errorf("the docs run install.sh %d times", n)
	}
}

// TestHooks: the hooks of pre-commit are commands of kalypso, and the docs name them.
func TestHooks(t *testing.T) {
	var hooks []struct{ ID, Name, Entry, Language, Files string }
	text, err := os.ReadFile(".pre-commit-hooks.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &hooks)
	}
	if err != nil || len(hooks) == 0 {
		t.Fatal(err, hooks)
	}
	page, err := os.ReadFile("docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hooks {
		name, ok := strings.CutPrefix(h.Entry, "kalypso ")
		if _, err := os.Stat(filepath.Join("cmd", "kalypso", name+".go")); !ok || err != nil || h.Name == "" || h.Language != "system" || h.ID != "kalypso-"+name {
			t.Errorf("%+v: %v", h, err)
		}
		if _, err := regexp.Compile(h.Files); err != nil {
			t.Error(err)
		}
		if !strings.Contains(string(page), "- id: "+h.ID+"\n") {
			t.Errorf("docs/install.md does not name %s", h.ID)
		}
	}
}
