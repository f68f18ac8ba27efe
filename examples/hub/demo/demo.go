package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/internal/testing/gitserver"
)

// options are the options of the demonstration.
type options struct {
	out io.Writer
	end bool // after the last command
	// broken, unless nil, is called while the release is broken, with the address of the hub.
	broken func(hub string)
}

// demo is a demonstration while it runs. Everything is in one folder.
type demo struct {
	options
	dir    string
	env    []string // of all programs
	pushed chan struct{}
	hub    *hubProcess
	fleet  *fleet
}

// run runs the demonstration. All that it started has ended when it returns, and the folder is
// gone.
func run(ctx context.Context, o options) (err error) {
	dir, err := os.MkdirTemp("", "kalypso-hub-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	d := &demo{options: o, dir: dir, pushed: make(chan struct{}, 1)}
	fmt.Fprintln(d.out, "# Build kalypso and kalypso-hub")
	root, err := d.build(ctx)
	if err != nil {
		return err
	}
	closeServer, err := d.serveGit()
	if err != nil {
		return err
	}
	defer closeServer()
	if err := d.commitPlatform(ctx, root); err != nil {
		return err
	}
	fmt.Fprintln(d.out, "$ kalypso-hub serve --local --repo "+platformURL)
	if d.hub, err = d.startHub(ctx); err != nil {
		return err
	}
	defer d.hub.stop()
	d.env = append(d.env, "KALYPSO_HUB="+d.hub.address)
	client, err := api.NewClient(d.hub.address, "")
	if err != nil {
		return err
	}
	if d.fleet, err = newFleet(client, d.path("platform"),
		d.path("server", "chain", "gitops")); err != nil {
		return err
	}
	defer d.fleet.wait()
	defer stop()
	d.fleet.start(ctx)
	if err := d.story(ctx); err != nil || d.end {
		return err
	}
	return d.stay(ctx)
}

// The platform's URLs of its repositories. git's configuration redirects them to the server
// on this machine.
const (
	server      = "https://git.example.com/"
	platformURL = server + "chain/platform"
)

func (d *demo) path(parts ...string) string {
	return filepath.Join(append([]string{d.dir}, parts...)...)
}

// build builds the programs, and returns the folder of kalypso's repository.
func (d *demo) build(ctx context.Context) (root string, err error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Path}} {{.Dir}}").Output()
	root, found := strings.CutPrefix(strings.TrimSpace(string(out)), "github.com/kalypso-io/kalypso ")
	if err != nil || !found {
		return "", errors.Join(errors.New("run it in the repository of kalypso, which it builds"), err)
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", d.path("bin")+string(filepath.Separator),
		"./cmd/kalypso", "./cmd/kalypso-hub")
	cmd.Dir = root
	return root, output(cmd)
}

// output runs a command. The error includes the command's output.
func output(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}

// serveGit serves the repositories, and sets the environment of all programs. They do not
// read the user's settings, and write only to the folder.
func (d *demo) serveGit() (closeServer func(), err error) {
	handler, err := gitserver.New(d.path("server"), "demo")
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &http.Server{ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			handler.ServeHTTP(w, r)
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/git-receive-pack") {
				select {
				case d.pushed <- struct{}{}:
				default:
				}
			}
		})}
	go func() { _ = s.Serve(listener) }()
	config := fmt.Sprintf("[user]\n\tname = Ada\n\temail = ada@example.com\n[init]\n\tdefaultBranch "+
		"= main\n[url %q]\n\tinsteadOf = %s\n", "http://"+listener.Addr().String()+"/", server)
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, "GIT_") && !strings.HasPrefix(name, "KALYPSO_") &&
			!strings.HasSuffix(strings.ToLower(name), "_proxy") {
			d.env = append(d.env, kv)
		}
	}
	d.env = append(d.env,
		"PATH="+d.path("bin")+string(filepath.ListSeparator)+os.Getenv("PATH"), "HOME="+d.path("home"),
		"XDG_CACHE_HOME="+d.path("cache"),
		"KALYPSO_CACHE_DIR="+d.path("cache", "kalypso"), "KALYPSO_GIT_DIR="+d.path("cache", "git"),
		"CUE_CACHE_DIR="+d.path("cache", "cue"), "CUE_REGISTRY=none",
		"GIT_CONFIG_GLOBAL="+d.path("gitconfig"), "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"NO_COLOR=1", "LC_ALL=C")
	return func() { _ = s.Close() }, os.WriteFile(d.path("gitconfig"), []byte(config), 0o600)
}

// commitPlatform makes the repositories. That of the platform has the example, without this
// program.
func (d *demo) commitPlatform(ctx context.Context, root string) error {
	example, platform := os.DirFS(filepath.Join(root, "examples", "hub")), d.path("platform")
	err := fs.WalkDir(example, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == "demo":
			return fs.SkipDir
		case entry.IsDir():
			return os.MkdirAll(filepath.Join(platform, name), 0o700)
		}
		text, err := fs.ReadFile(example, name)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(platform, name), text, 0o600)
	})
	if err != nil {
		return err
	}
	for _, name := range []string{"platform", "gitops"} {
		repository := d.path("server", "chain", name)
		if err := errors.Join(d.git(ctx, d.dir, "init", "-q", "--bare", repository),
			d.git(ctx, repository, "config", "http.receivepack", "true")); err != nil {
			return err
		}
	}
	for _, args := range [][]string{
		{"init", "-q"}, {"remote", "add", "origin", platformURL}, {"add", "."},
		{"commit", "-q", "-m", "A platform with 180 sites"}, {"push", "-q", "origin", "main"},
	} {
		if err := d.git(ctx, platform, args...); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) git(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Env = dir, d.env
	return output(cmd)
}

// stay delivers every push to the hub and the clusters, until the context ends.
func (d *demo) stay(ctx context.Context) error {
	fmt.Fprintf(d.out, `
# The pages are at %s
# In another terminal, kalypso works with all of it after
export PATH=%s:"$PATH" KALYPSO_HUB=%s GIT_CONFIG_GLOBAL=%s
cd %s
# Interrupt this program, and nothing is left.
`, d.hub.address, d.path("bin"), d.hub.address, d.path("gitconfig"), d.path("platform"))
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-d.hub.ended:
			return d.hub.problem()
		case <-d.pushed:
			if err := d.deliver(ctx); err != nil && ctx.Err() == nil {
				fmt.Fprintln(d.out, "#", err)
			}
		}
	}
}
