package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kalypso-io/kalypso/compiler/dependency"
)

// serverCommands are the commands of scripts that start servers on loopback, or make the files
// that servers serve. The servers stop at the end of the script.
var serverCommands = map[string]func(*testscript.TestScript, bool, []string){
	"apiserver": apiserverCommand,
	"archive":   archiveCommand,
	"charts":    chartsCommand,
	"gitserve":  gitserveCommand,
	"expand":    expandCommand,
	"damage":    damageCommand,
	"endless":   endlessCommand,
	"hub":       hubCommand,
	"huge":      hugeCommand,
	"private":   privateCommand,
	"push":      pushCommand,
	"many":      manyCommand,
	"repeat":    repeatCommand,
	"silent":    silentCommand,
}

// chartsCommand is `charts VAR PATH...`. It starts a chart repository and sets VAR to its URL.
// Each folder in the arguments is a chart, named <name>-<version>. Each archive
// <name>-<version>.tgz is served unchanged.
func chartsCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: charts VAR PATH...")
	}
	served := map[string][]byte{}
	versions := map[string]string{} // the entries of the index
	for _, path := range args[1:] {
		data := packed(ts, path, true)
		base := strings.TrimSuffix(filepath.Base(path), ".tgz")
		cut := strings.LastIndex(base, "-")
		served["/"+base+".tgz"] = data
		versions[base[:cut]] += fmt.Sprintf("  - {apiVersion: v2, name: %s, version: %s, urls: [%s.tgz], digest: %s}\n",
			base[:cut], base[cut+1:], base, strings.TrimPrefix(string(dependency.DigestOf(data)), "sha256:"))
	}
	index := "apiVersion: v1\nentries:\n"
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		index += "  " + name + ":\n" + versions[name]
	}
	served["/index.yaml"] = []byte(index)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, ok := served[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(data)
	}))
	ts.Defer(server.Close)
	ts.Setenv(args[0], server.URL)
}

// gitserveCommand is `gitserve VAR DIR`: git's own server has the repositories in
// the folder, and VAR is its URL. It redirects /to/URL to that URL.
func gitserveCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: gitserve VAR DIR")
	}
	git, err := exec.LookPath("git")
	ts.Check(err)
	backend := &cgi.Handler{
		Path: git, Args: []string{"http-backend"}, Dir: ts.MkAbs(args[1]),
		Env: []string{"GIT_PROJECT_ROOT=" + ts.MkAbs(args[1]), "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1", "HOME=" + ts.MkAbs(args[1])},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if to, ok := strings.CutPrefix(r.RequestURI, "/to/http:/"); ok {
			http.Redirect(w, r, "http://"+strings.TrimPrefix(to, "/"), http.StatusFound)
			return
		}
		backend.ServeHTTP(w, r)
	}))
	ts.Defer(server.Close)
	ts.Setenv(args[0], server.URL)
}

// expandCommand is `expand FILE...`. In the files, it replaces ${NAME} with the value of the
// script's variable NAME.
func expandCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: expand FILE...")
	}
	for _, name := range args {
		file := ts.MkAbs(name)
		data, err := os.ReadFile(file)
		ts.Check(err)
		ts.Check(os.WriteFile(file, []byte(os.Expand(string(data), func(v string) string {
			if value := ts.Getenv(v); value != "" {
				return value
			}
			return "${" + v + "}"
		})), 0o666))
	}
}

// damageCommand is `damage DIR`: each file in the folder gets another last byte.
func damageCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: damage DIR")
	}
	ts.Check(filepath.WalkDir(ts.MkAbs(args[0]), func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil || len(data) == 0 {
			return err
		}
		data[len(data)-1] ^= 1
		return errors.Join(os.Chmod(name, 0o666), os.WriteFile(name, data, 0o666))
	}))
}

// endlessCommand is `endless VAR`. It starts a server that answers each request with a gibibyte
// of zeros, and sets VAR to its URL.
func endlessCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: endless VAR")
	}
	zeros := make([]byte, 1<<20)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range 1 << 10 {
			if _, err := w.Write(zeros); err != nil {
				return
			}
		}
	}))
	ts.Defer(server.Close)
	ts.Setenv(args[0], server.URL)
}

// silentCommand is `silent VAR`. It starts a server that accepts requests and answers none, and
// sets VAR to its URL.
func silentCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: silent VAR")
	}
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	server := httptest.NewServer(http.HandlerFunc(hang))
	ts.Defer(server.Close)
	ts.Setenv(args[0], server.URL)
}

// hugeCommand is `huge FILE`. It makes a file of a hundred mebibytes that needs no space on the
// disk.
func hugeCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: huge FILE")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), nil, 0o666))
	ts.Check(os.Truncate(ts.MkAbs(args[0]), 100<<20))
}

// privateCommand is `private VAR`. It starts a server that requires credentials, and rejects all
// of them. It sets VAR to its URL.
func privateCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: private VAR")
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Basic realm="example"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	ts.Defer(server.Close)
	ts.Setenv(args[0], server.URL)
}

// manyCommand is `many FILE N`: the file is a lock with N sources.
func manyCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: many FILE N")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	var entries []dependency.Entry
	for i := range n {
		entries = append(entries, dependency.Entry{
			Source:   dependency.Source{Kind: dependency.Git, URL: fmt.Sprintf("https://git.example.com/app-%d", i), Branch: "main"},
			Revision: strings.Repeat("a", 40), Content: dependency.DigestOf(fmt.Append(nil, i)), Size: 1,
		})
	}
	ts.Check(dependency.NewLock(entries).Write(filepath.Dir(ts.MkAbs(args[0]))))
}

// repeatCommand is `repeat FILE N TEXT`: the text N times, with its number for each %d, and a
// new line are added to the file.
func repeatCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: repeat FILE N TEXT")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	f, err := os.OpenFile(ts.MkAbs(args[0]), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o666)
	ts.Check(err)
	w := bufio.NewWriter(f)
	for i := range n {
		_, err = w.WriteString(strings.ReplaceAll(args[2], "%d", strconv.Itoa(i)))
		ts.Check(err)
	}
	ts.Check(w.WriteByte('\n'))
	ts.Check(errors.Join(w.Flush(), f.Close()))
}

// apiserverCommand is `apiserver FILE`. It starts an API server with the lists of the file, by
// path and selector of labels. The server forbids access to the lists that are null.
// $WORK/apiserver.yaml is a kubeconfig with the context hub for it.
func apiserverCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: apiserver FILE")
	}
	lists := map[string][]any{}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &lists))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.Path
		if selector := r.URL.Query().Get("labelSelector"); selector != "" {
			path += "?" + selector
		}
		answer, code := map[string]any{"apiVersion": "v1", "kind": "List", "items": lists[path]}, http.StatusOK
		if items, there := lists[path]; items == nil {
			reason := metav1.StatusReasonNotFound
			if code = http.StatusNotFound; there {
				code, reason = http.StatusForbidden, metav1.StatusReasonForbidden
			}
			answer = map[string]any{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": reason, "code": code}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(answer)
	}))
	ts.Defer(server.Close)
	ts.Check(os.WriteFile(filepath.Join(ts.Getenv("WORK"), "apiserver.yaml"), []byte(`apiVersion: v1
kind: Config
current-context: hub
clusters:
- {name: hub, cluster: {server: "`+server.URL+`"}}
contexts:
- {name: hub, context: {cluster: hub, user: me}}
users:
- {name: me, user: {token: s3cret}}
`), 0o600))
}
