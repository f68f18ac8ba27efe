package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kalypso-io/kalypso/internal/testing/remotetest"
)

// fleetCommands are commands of scripts that promote. All of them are about a platform
// in the folder p, whose repository and whose GitOps repository a server on loopback
// has.
func fleetCommands(repository string) map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"fleet": func(ts *testscript.TestScript, neg bool, args []string) {
			fleetCommand(ts, neg, args, filepath.Join(repository, "testdata", "fleet"))
		},
		"server":  serverCommand,
		"at":      atCommand,
		"commit":  commitCommand,
		"release": releaseCommand,
		"own":     ownCommand,
		"rollout": rolloutCommand,
		"named":   namedCommand,
		"board":   boardCommand,
	}
}

// scriptTB adapts a script to testing.TB, for helpers that run until the end of the script.
type scriptTB struct {
	testing.TB
	ts *testscript.TestScript
}

func (s scriptTB) Helper()                   {}
func (s scriptTB) Fatal(args ...any)         { s.ts.Fatalf("%s", fmt.Sprint(args...)) }
func (s scriptTB) Fatalf(f string, a ...any) { s.ts.Fatalf(f, a...) }
func (s scriptTB) Cleanup(f func())          { s.ts.Defer(f) }

// serverKey is the key of a script's server among its values.
type serverKey struct{}

// hosted is the server of a script.
type hosted struct{ http *remotetest.Server }

// fleetCommand is `fleet [ssh]`. It starts a server with the empty repositories $PLATFORM and
// $GITOPS, in the folder git, and creates p, a work tree of the platform without commits. The
// server speaks HTTP or SSH.
func fleetCommand(ts *testscript.TestScript, neg bool, args []string, from string) {
	if neg || len(args) > 1 || len(args) == 1 && args[0] != "ssh" {
		ts.Fatalf("usage: fleet [ssh]")
	}
	root := at(ts, "git")
	for _, name := range []string{"platform", "gitops"} {
		dir := filepath.Join(root, name)
		program(ts, "git", "init", "-q", "--bare", dir)
		program(ts, "git", "-C", dir, "config", "http.receivepack", "true")
	}
	tb := scriptTB{ts: ts}
	base := ""
	if len(args) == 1 {
		server := remotetest.ServeSSH(tb)
		login(ts, server)
		base = "ssh://git@" + server.Address + (&url.URL{Path: filepath.ToSlash(root)}).EscapedPath()
	} else {
		server := remotetest.ServeFolder(tb, root)
		ts.Value(serverKey{}).(*hosted).http = server
		base = server.URL
	}
	ts.Setenv("PLATFORM", base+"/platform")
	ts.Setenv("GITOPS", base+"/gitops")
	ts.Setenv("KALYPSO_CACHE_DIR", at(ts, ".cache/kalypso"))
	p := at(ts, "p")
	ts.Check(os.CopyFS(p, os.DirFS(from)))
	expandCommand(ts, false, []string{at(ts, "p/platform.cue")})
	program(ts, "git", "init", "-q", p)
	program(ts, "git", "-C", p, "remote", "add", "origin", base+"/platform")
	atCommand(ts, false, []string{"2026-11-20T10:00:00Z"})
}

// login lets the script's ssh know the server, and the server the script. ssh ignores $HOME, so
// login installs an ssh that gets the paths of its files as options.
func login(ts *testscript.TestScript, server *remotetest.SSHServer) {
	home := filepath.Join(ts.Getenv("HOME"), ".ssh")
	known, key := filepath.Join(home, "known_hosts"), filepath.Join(home, "id_ed25519")
	ts.Check(os.MkdirAll(home, 0o700))
	ts.Check(os.WriteFile(known, []byte(server.KnownHost(server.Key)), 0o600))
	ts.Check(os.WriteFile(key, []byte(remotetest.PEM(scriptTB{ts: ts}, server.Client, "")), 0o600))
	ssh, err := exec.LookPath("ssh")
	if err != nil {
		return // kalypso looks in $HOME
	}
	bin := at(ts, ".ssh-bin")
	ts.Check(os.Mkdir(bin, 0o700))
	script := fmt.Sprintf("#!/bin/sh\nexec %q -F none -o UserKnownHostsFile='%q' -o GlobalKnownHostsFile=none -o IdentitiesOnly=yes -o IdentityFile='%q' \"$@\"\n", ssh, known, key)
	ts.Check(os.WriteFile(filepath.Join(bin, "ssh"), []byte(script), 0o700))
	ts.Setenv("PATH", bin+string(os.PathListSeparator)+ts.Getenv("PATH"))
}

// at is a file of the script's own folder.
func at(ts *testscript.TestScript, name string) string {
	return filepath.Join(ts.Getenv("WORK"), filepath.FromSlash(name))
}

// program runs a program that has to succeed.
func program(ts *testscript.TestScript, args ...string) string {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = os.Environ()
	for _, name := range []string{"HOME", "GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	cmd.Env = append(cmd.Env, gitVariables[:4]...)
	for _, role := range []string{"AUTHOR", "COMMITTER"} {
		cmd.Env = append(cmd.Env, "GIT_"+role+"_NAME=Ada", "GIT_"+role+"_EMAIL=ada@example.com")
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		ts.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// serverCommand is `server down`, `server guard` or `server asked`. After down the server no
// longer answers. After guard it requires credentials. asked prints the requests since the
// previous `server asked`.
func serverCommand(ts *testscript.TestScript, neg bool, args []string) {
	host, _ := ts.Value(serverKey{}).(*hosted)
	switch {
	case neg || len(args) != 1 || host.http == nil:
		ts.Fatalf("usage: server down|guard|asked, after fleet")
	case args[0] == "down":
		host.http.Close()
	case args[0] == "guard":
		host.http.Guard()
	case args[0] == "asked":
		for _, r := range host.http.Asked() {
			fmt.Fprintf(ts.Stdout(), "%s %s\n", r.Method, r.Path)
		}
	default:
		ts.Fatalf("usage: server down|guard|asked")
	}
}

// atCommand is `at TIME`. It sets the time for kalypso and git from now on.
func atCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: at TIME")
	}
	for _, name := range []string{"KALYPSO_NOW", "GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"} {
		ts.Setenv(name, args[0])
	}
}

// commitCommand is `commit NAME`: the files of p are committed to main with that
// subject, and pushed.
func commitCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: commit NAME")
	}
	p := at(ts, "p")
	program(ts, "git", "-C", p, "add", "--all")
	program(ts, "git", "-C", p, "commit", "-q", "--allow-empty", "-m", args[0])
	program(ts, "git", "-C", p, "push", "-q", at(ts, "git/platform"), "+HEAD:main")
	ts.Setenv(args[0], program(ts, "git", "-C", p, "rev-parse", "HEAD"))
}

// releaseCommand is `release NAME`: a base commit of that subject gives each workload a
// value of that text.
func releaseCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: release NAME")
	}
	text := fmt.Sprintf("package platform\n\nconfigs: release: {match: {}, values: RELEASE: %q}\n", args[0])
	ts.Check(os.WriteFile(at(ts, "p/release.cue"), []byte(text), 0o666))
	commitCommand(ts, false, args)
}

// ownCommand is `own NAME`: a commit of that subject gives each workload of prod a value of that text,
// by prod's own files.
func ownCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: own NAME")
	}
	text := fmt.Sprintf("package platform\n\nconfigs: own: {match: {}, values: LEVEL: %q}\n", args[0])
	ts.Check(os.WriteFile(at(ts, "p/environments/prod/own.cue"), []byte(text), 0o666))
	commitCommand(ts, false, args)
}

// rolloutCommand is `rollout STATE ENVIRONMENT ASSIGNMENT...`. It writes a reconciler's report
// about the current contents of the environment's branch to reports.json.
func rolloutCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: rollout STATE ENVIRONMENT ASSIGNMENT...")
	}
	type report struct {
		Assignment string `json:"assignment"`
		State      string `json:"state"`
	}
	var reports []report
	for _, assignment := range args[2:] {
		reports = append(reports, report{assignment, args[0]})
	}
	data, err := json.Marshal(map[string]any{
		"apiVersion": apiVersion, "kind": "RolloutReport", "reports": reports,
		"commit": program(ts, "git", "-C", at(ts, "git/gitops"), "rev-parse", "refs/heads/"+args[1]),
	})
	ts.Check(err)
	ts.Check(os.WriteFile(at(ts, "reports.json"), data, 0o666))
}

// identifier is the id of an object of git, whole or cut.
var identifier = regexp.MustCompile(`\b(?:sha256:)?[0-9a-f]{12}(?:[0-9a-f]{28}|[0-9a-f]{52})?\b *`)

// port matches the port of a server on loopback.
var port = regexp.MustCompile(`(127\.0\.0\.1:|ssh -p )[0-9]+`)

// namedCommand is `named`. It prints the output of the last command, with ids that are the same
// in every run. A commit of the platform becomes its subject. A commit of the GitOps repository
// becomes BRANCH@N, the Nth of its branch, and other ids become ID.
func namedCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: named")
	}
	names := map[string]string{}
	learn := func(dir string, name func(branch, subject string, n int) string) {
		branches := strings.Fields(program(ts, "git", "-C", at(ts, dir), "for-each-ref", "--format=%(refname:short)", "refs/heads"))
		for _, branch := range branches {
			lines := strings.Split(program(ts, "git", "-C", at(ts, dir), "log", "--first-parent", "--reverse", "--format=%H %s", branch), "\n")
			for i, line := range lines {
				id, subject, _ := strings.Cut(line, " ")
				if names[id] == "" {
					names[id] = name(branch, subject, i+1)
					names[id[:12]] = names[id]
				}
			}
		}
	}
	learn("git/platform", func(_, subject string, _ int) string { return subject })
	learn("git/gitops", func(branch, _ string, n int) string { return fmt.Sprintf("%s@%d", branch, n) })
	said := ts.ReadFile("stdout") + ts.ReadFile("stderr")
	for _, name := range []string{"PLATFORM", "GITOPS", "WORK"} {
		if value := ts.Getenv(name); value != "" {
			said = strings.ReplaceAll(said, value, "$"+name)
		}
	}
	said = port.ReplaceAllString(said, "${1}PORT")
	said = identifier.ReplaceAllStringFunc(said, func(found string) string {
		id := strings.TrimRight(found, " ")
		name := names[id]
		if name == "" {
			name = "ID"
		}
		if len(id) == len(found) {
			return name
		}
		if len(found) == len(id)+1 { // of a sentence; more space is part of a table
			return name + " "
		}
		return fmt.Sprintf("%-*s", len(found), name)
	})
	lines := strings.Split(said, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	_, err := fmt.Fprint(ts.Stdout(), strings.Join(lines, "\n"))
	ts.Check(err)
}

// boardCommand is `board VAR FILE`. It starts a service that answers each request with the
// current contents of the file, and sets VAR to its URL. The service writes its last request to
// FILE.asked.
func boardCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: board VAR FILE")
	}
	file := ts.MkAbs(args[1])
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, err := os.Create(file + ".asked")
		if err == nil {
			_, _ = fmt.Fprintf(asked, "%s %s\n", r.Method, r.Header.Get("Authorization"))
			_, _ = asked.ReadFrom(r.Body)
			_ = asked.Close()
		}
		data, err := os.ReadFile(file)
		if err != nil {
			http.Error(w, "closed", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write(data)
	}))
	ts.Defer(server.Close)
	ts.Setenv(args[0], server.URL)
}
