package ansible_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends/ansible"
	"github.com/kalypso-io/kalypso/compiler/origin"
	bt "github.com/kalypso-io/kalypso/internal/testing/backendtest"
	"github.com/kalypso-io/kalypso/promotion/rollout"
	"github.com/kalypso-io/kalypso/promotion/rollout/report"
)

// reporting is the end of a run whose assignments have all kinds of outcomes.
const reporting = `
- name: Report
  hosts: all
  gather_facts: false
  tasks:
    - name: Take these for the outcomes
      ansible.builtin.set_fact:
        kalypso_records: {}
        kalypso_outcomes:
          a: {id: dev/large/a, outcome: succeeded, values: "", version: ""}
          b: {id: dev/large/b, outcome: failed, reason: Install the "packages"}
          c: {id: dev/large/c, outcome: skipped, reason: depends on b}
    - name: Report, and fail as an assignment did
      block:
        - name: End
          ansible.builtin.include_role: {name: kalypso, tasks_from: end}
      rescue:
        - name: It is to fail
          ansible.builtin.debug: {msg: it did}
`

// TestSlowReport checks that the reader of reports understands the role's reports. They contain the
// commit of the repository or, if there is no repository, the given commit.
func TestSlowReport(t *testing.T) {
	needTools(t)
	dir := t.TempDir()
	repository, reports := filepath.Join(dir, "repository"), filepath.Join(dir, "reports")
	tree := filepath.Join(repository, "live", "large")
	writeTree(t, tree, bt.Build(t, ansible.New(), bt.Platform{Options: strings.Replace(defaults, "/var/lib/kalypso", dir+"/state", 1)}))
	for name, text := range map[string]string{"report.yml": "---" + reporting, "hosts.yml": "all: {hosts: {edge-7: {ansible_connection: local}}}\n"} {
		if err := os.WriteFile(filepath.Join(tree, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(reports, 0o755); err != nil {
		t.Fatal(err)
	}
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = tree
		cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	run("git", "init", "--quiet", "-b", "dev", repository)
	run("git", "remote", "add", "origin", "https://me:secret@git.example/ops.git")
	run("git", "-c", "user.name=x", "-c", "user.email=x@example.test", "commit", "--quiet", "--allow-empty", "--message", "x")
	given := strings.Repeat("1", 40)
	for _, commit := range []string{run("git", "rev-parse", "HEAD"), given} {
		args := []string{"ansible-playbook", "--inventory", "hosts.yml", "report.yml", "--extra-vars", "kalypso_report=" + reports}
		if commit == given {
			run("rm", "-r", repository+"/.git")
			args = append(args, "--extra-vars", "kalypso_commit="+commit)
		}
		if os.Geteuid() != 0 { // the role's files are root's
			args = append([]string{"sudo", "--non-interactive"}, args...)
		}
		run("mkdir", "-p", dir+"/state/dev/large")
		run(args[0], args[1:]...)
		data := readFile(t, filepath.Join(reports, "edge-7.json"))
		f, err := report.Parse("edge-7.json", []byte(data))
		if err != nil {
			t.Fatalf("%v\n%s", err, data)
		}
		if f.Cluster != "edge-7" || f.Commit.String() != commit || len(f.Reports) != 3 || f.Reports[0].At.IsZero() {
			t.Fatalf("got %+v", f)
		}
		from := origin.Origin{Repository: "https://git.example/ops.git", Branch: "dev", Path: "live/large/" + origin.Any}
		if commit == given { // the origin of a given commit is not known
			from = origin.Origin{}
		}
		if f.Origin != from {
			t.Errorf("it is taken from %+v, want %+v", f.Origin, from)
		}
		for i, want := range []report.Entry{
			{Assignment: "dev/large/a", State: rollout.Healthy},
			{Assignment: "dev/large/b", State: rollout.Failed, Message: `Install the "packages"`},
			{Assignment: "dev/large/c", State: rollout.Progressing, Message: "depends on b"},
		} {
			want.At = f.Reports[i].At
			if f.Reports[i] != want {
				t.Errorf("got %+v, want %+v", f.Reports[i], want)
			}
		}
	}
}
