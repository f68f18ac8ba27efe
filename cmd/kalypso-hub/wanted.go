package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/worker"
	"github.com/kalypso-io/kalypso/hub/follow"
	"github.com/kalypso-io/kalypso/internal/git/remote"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/detect"
	"github.com/kalypso-io/kalypso/promotion/forge/forges"
	"github.com/kalypso-io/kalypso/promotion/session"
	"github.com/kalypso-io/kalypso/promotion/subject"
)

// platform says where a platform is.
type platform struct {
	repository, branch, path, forge string
	costs                           costs
}

func (p *platform) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&p.repository, "repo", "", "the git repository of the platform, a `URL` or a folder")
	f.StringVar(&p.branch, "from", "", "the `BRANCH` of that repository (default: the repository's own)")
	f.StringVar(&p.path, "path", ".", "the `FOLDER` of the platform in the repository")
	p.costs.flags(f)
	f.StringVar(&p.forge, "forge", "", "what hosts the repositories: github, gitlab, gitea, or none "+
		"(default: by their URLs)")
}

// locate finds the repository where it is in a folder.
func (p *platform) locate() error {
	if kinds := []string{"", detect.GitHub, detect.GitLab, detect.Gitea, detect.None}; !slices.Contains(kinds, p.forge) {
		return fmt.Errorf("--forge %s: there are github, gitlab, gitea and none", p.forge)
	}
	info, err := os.Stat(p.repository)
	switch {
	case p.repository == "":
		return errors.New("--repo is missing: give the repository of the platform, a URL or a folder")
	case err == nil && info.IsDir():
		if p.repository, err = filepath.Abs(p.repository); err != nil {
			return err
		}
		if !isThere(p.repository, ".git") && !isThere(p.repository, "HEAD") {
			return fmt.Errorf("--repo %s: this folder is no git repository; where the platform is in a "+
				"folder of one, give the repository, and that folder with --path", p.repository)
		}
	case !strings.Contains(p.repository, ":"): // as every URL has
		return fmt.Errorf("--repo %s: there is no such folder, and a URL begins with https:// or ssh://", p.repository)
	}
	return nil
}

func isThere(dir, name string) bool {
	_, err := os.Lstat(filepath.Join(dir, name))
	return err == nil
}

// args are those of a process that reads the platform.
func (p *platform) args(command string) []string {
	return append([]string{command, "--repo", p.repository, "--from", p.branch, "--path", p.path,
		"--forge", p.forge}, p.costs.args()...)
}

// process returns the process that reads what the platform wants.
func (p *platform) process(ctx context.Context) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return exec.CommandContext(ctx, self, p.args("wanted")...), nil
}

func (p *platform) remote(ctx context.Context, url string) (*remote.Remote, error) {
	return remote.Open(ctx, url, remote.Options{Store: remote.DefaultStore()})
}

func newWanted() *cobra.Command {
	var p platform
	cmd := &cobra.Command{
		Use: "wanted", Short: "Print what a platform's GitOps branches want, as the hub reads it", Args: cobra.NoArgs,
		Long: "wanted prints what a platform's GitOps branches want of clusters: a line of JSON for " +
			"each\nenvironment. serve runs it in a process of its own.",
		RunE: func(cmd *cobra.Command, _ []string) error { return p.wanted(cmd.Context()) },
	}
	p.flags(cmd)
	return cmd
}

func (p *platform) wanted(ctx context.Context) error {
	if err := p.locate(); err != nil {
		return err
	}
	s, err := p.costs.supervise("reading the platform and its GitOps branches")
	if err != nil {
		return err
	}
	workers := worker.NewPool(runtime.GOMAXPROCS(0), worker.Self(workerArgument))
	defer workers.Close()
	c, err := cache.Open(cache.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	return said(follow.Write(ctx, os.Stdout, p.request(compiler.Request{Cache: c, Workers: workers, Supervisor: s})))
}

// request is what a session is opened with.
func (p *platform) request(r compiler.Request) session.Request {
	return session.Request{
		Repository: p.repository, Branch: p.branch, Path: p.path, Now: time.Now,
		Subjects:   []subject.Subject{subject.Platform(r)},
		Supervisor: r.Supervisor,
		Remote:     p.remote,
		Forge:      func(ctx context.Context, url string) (forge.Forge, error) { return forges.Open(ctx, url, p.forge) },
	}
}

// said adds to the error of a platform's base what is wrong with it.
func said(err error) error {
	var base *session.PlatformError
	if !errors.As(err, &base) {
		return err
	}
	for _, d := range base.Diagnostics {
		if d.Severity == diag.Error {
			return fmt.Errorf("%w: %s", err, line(&d))
		}
	}
	return err
}

// line is a diagnostic in one line: where, what, and what to do.
func line(d *diag.Diagnostic) string {
	text := d.Message
	if i := slices.IndexFunc(d.Sites, func(s diag.Site) bool { return !s.Position.IsZero() }); i >= 0 {
		at := d.Sites[i].Position
		text = fmt.Sprintf("%s:%d:%d: %s", at.File, at.Line, at.Column, text)
	}
	if d.Hint != "" {
		text += "; " + d.Hint
	}
	return text
}
