package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/compiler/application"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/git/remote"
	"github.com/kalypso-io/kalypso/promotion"
	"github.com/kalypso-io/kalypso/promotion/plan"
	"github.com/kalypso-io/kalypso/promotion/rollout/hub"
	"github.com/kalypso-io/kalypso/promotion/rollout/kubernetes"
	"github.com/kalypso-io/kalypso/promotion/rollout/report"
	"github.com/kalypso-io/kalypso/promotion/session"
	"github.com/kalypso-io/kalypso/promotion/signature"
)

// promotionOptions are the flags of all commands that read or write the positions of commits.
type promotionOptions struct {
	environments []string
	ring         string
	all          bool

	repository, from, path string
	forge                  string
	gitBackend             string
	reports, kubeconfigs   []string
	hub                    hubOptions
	sign                   string
	by                     string
	former                 bool // environments that the policy does not have any more count as well
	local                  bool // the checked out commit counts, and not origin's
	output                 *string
	folder                 workFolder
	noted                  bool // noteUnreported has printed its note

	// Options of promote only.
	overwrite, adopt bool
}

// flags adds the flags that all commands of promotion have.
func (o *promotionOptions) flags(g *platform, cmd *cobra.Command) {
	f := cmd.PersistentFlags()
	f.StringSliceVar(&o.environments, "env", nil, "the `ENVIRONMENT`; again for more")
	f.StringVar(&o.ring, "ring", "", "only this `RING` of the environment")
	f.StringVar(&o.repository, "repo", "", "the git repository of the platform, or of the "+
		"application, a `URL` or a folder (default: that of the folder, or what its remote origin is)")
	f.StringVar(&o.from, "from", "",
		"the `BRANCH` of that repository to promote from (default: the repository's own)")
	f.StringVar(&o.path, "path", "", "the `FOLDER` of the platform, or of the application, in the "+
		"repository (default: that of the folder)")
	f.StringVar(&o.forge, "forge", "", "what hosts the repositories: github, gitlab, gitea, or none "+
		"(default: by their URLs)")
	f.StringVar(&o.gitBackend, "git-backend", "", "how to speak git: native, or git for the command "+
		"(default: native where that can)")
	f.StringSliceVar(&o.reports, "report", nil, "count the rollout reports in a `FILE` or folder")
	f.StringSliceVar(&o.kubeconfigs, "kubeconfig", nil, "count what Flux and Argo CD say on the "+
		"clusters of a kubeconfig `FILE`")
	o.hub.flags(f, "hub-token-file", "count what a hub knows of the clusters")
	completeFlag(cmd, "repo", g.complete().folders)
	completeFlag(cmd, "path", g.complete().repositoryFolders)
	completeFlag(cmd, "forge", values("github", "gitlab", "gitea", "none"))
	completeFlag(cmd, "git-backend", values("native", "git"))
	f.StringVar(&o.sign, "sign", "", "sign commits with the `KEY`: a file with an SSH key, or "+
		"gpg:FILE with an exported one")
}

// decisionFlags adds who decides, and why.
func (o *promotionOptions) decisionFlags(cmd *cobra.Command, d *decisionOptions) {
	cmd.Flags().StringVarP(&d.reason, "reason", "m", "", "the `REASON`, for those who ask later")
	cmd.Flags().StringVar(&o.by, "by", "",
		"`WHO` decides this (default: git's user.name and user.email)")
}

// decisionOptions are the flags of commands that people give.
type decisionOptions struct {
	reason string
	until  string
}

// decision reads them.
func (d *decisionOptions) decision(now time.Time) (plan.Decision, error) {
	if d.reason == "" {
		return plan.Decision{}, usagef("say why, with --reason: it is what others see")
	}
	out := plan.Decision{Reason: d.reason}
	if d.until == "" {
		return out, nil
	}
	until, err := readUntil(d.until, now)
	if err != nil {
		return out, err
	}
	if !until.After(now) {
		return out, usagef("--until %s: %s is past", d.until, until.UTC().Format(time.RFC3339))
	}
	out.Until = until
	return out, nil
}

// readUntil reads a time, or a duration from now.
func readUntil(text string, now time.Time) (time.Time, error) {
	if span, err := time.ParseDuration(text); err == nil {
		return now.Add(span).UTC().Truncate(time.Second), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{},
		usagef("--until %s: write a time as 2026-01-02T15:04Z, a day, or how long, as 8h", text)
}

// nowEnv is the environment variable with the current time, for tests and rehearsals with
// repositories on the machine.
const nowEnv = "KALYPSO_NOW"

// clockAnywhere lets tests set the clock for servers of theirs.
var clockAnywhere bool

func clock() (func() time.Time, error) {
	text := os.Getenv(nowEnv)
	if text == "" {
		return time.Now, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil, usagef("%s=%s: write a time as 2026-01-02T15:04:05Z", nowEnv, text)
	}
	return func() time.Time { return t }, nil
}

// named takes environments from the arguments as well as from --env.
func (o *promotionOptions) named(args []string) error {
	o.environments = append(o.environments, args...)
	if o.all && len(o.environments) > 0 {
		return usagef("--all is every environment: leave out %v, or --all", o.environments)
	}
	slices.Sort(o.environments)
	o.environments = slices.Compact(o.environments)
	return nil
}

// needsSome prevents that somebody promotes everything by accident.
func (o *promotionOptions) needsSome(what string) error {
	if len(o.environments) == 0 && !o.all {
		return usagef("%s what? name environments with --env, or all of them with --all", what)
	}
	return nil
}

// promotionRequest returns the request to open a session.
func (g promoter) promotionRequest(o *promotionOptions, c *cache.Cache) (promotion.Request, error) {
	if !slices.Contains([]string{"", "native", "git"}, o.gitBackend) {
		return promotion.Request{}, usagef("--git-backend %s: there are native and git", o.gitBackend)
	}
	now, err := clock()
	if err != nil {
		return promotion.Request{}, err
	}
	clockSet := os.Getenv(nowEnv) != "" && !clockAnywhere
	r := promotion.NewRequest(promotion.Access{
		Compiler: g.request(nil, c), Applications: true, Forge: o.forge, Now: now,
		Git: remote.Options{Backend: o.gitBackend, Local: clockSet,
			Pushing: func() { g.supervisor.MayBeginAgain(false) }},
	})
	r.Environments, r.Ring, r.By, r.ClockSet = o.environments, o.ring, o.by, clockSet
	r.Overwrite, r.Adopt, r.Former = o.overwrite, o.adopt, o.former
	if err := g.findPlatform(o, &r); err != nil {
		return r, err
	}
	open := r.Remote
	r.Remote = func(ctx context.Context, url string) (*remote.Remote, error) {
		opened, err := open(ctx, url)
		if errors.Is(err, remote.ErrNotLocal) {
			return nil, usagef("%s sets the clock for repositories on this machine alone: %w", nowEnv, err)
		}
		return opened, err
	}
	if o.sign != "" {
		if r.Signer, err = signature.Open(o.sign); err != nil {
			return r, err
		}
	}
	for _, file := range o.reports {
		if _, err := os.Stat(g.path(file)); err != nil {
			return r, fmt.Errorf("--report: %w", err)
		}
		r.Sources = append(r.Sources, session.Source{Kind: "report", Source: report.New(g.path(file))})
	}
	for _, file := range o.kubeconfigs {
		clusters, err := kubernetes.New(kubernetes.Options{Kubeconfig: g.path(file)})
		if err != nil {
			return r, err
		}
		r.Sources = append(r.Sources, session.Source{Kind: "kubernetes", Source: clusters})
	}
	if o.hub.given() != "" {
		client, err := o.hub.client(g.console)
		if err != nil {
			return r, err
		}
		r.Sources = append(r.Sources,
			session.Source{Kind: "hub", Source: hub.New(client, o.hub.given(), r.Now)})
	}
	return r, nil
}

// findPlatform finds the repository of the folder, and the path of the platform or the
// application in it.
func (g promoter) findPlatform(o *promotionOptions, r *promotion.Request) error {
	r.Branch, r.Path, r.Repository = o.from, cmp.Or(o.path, "."), o.repository
	if r.Repository != "" {
		if info, err := os.Stat(g.path(r.Repository)); err == nil && info.IsDir() {
			if r.Repository, err = filepath.Abs(g.path(r.Repository)); err != nil {
				return err
			}
		}
		if r.By == "" {
			r.By = userOf(".")
		}
		return nil
	}
	root, err := promotedFolder(g.dir)
	if err != nil {
		return err
	}
	repo, err := git.Discover(root)
	if errors.Is(err, git.ErrNoRepository) {
		return fmt.Errorf("%s is not in a git repository, and commits are what is promoted: run git "+
			"init and commit it, or name a repository with --repo", root)
	}
	if err != nil {
		return err
	}
	defer repo.Close()
	if o.path == "" {
		rel, err := filepath.Rel(repo.WorkTree(), root)
		if err != nil {
			return err
		}
		r.Path = filepath.ToSlash(rel)
	}
	r.Repository = cmp.Or(repo.RemoteURL("origin"), repo.WorkTree())
	if head, err := repo.Resolve("HEAD"); err == nil {
		o.folder.head = head
	}
	o.folder.path, o.folder.pushes = root, repo.RemoteURL("origin") != ""
	if o.local {
		r.Repository = repo.WorkTree()
		if r.Head, err = repo.Resolve("HEAD"); err != nil {
			return fmt.Errorf("reading the commit that is checked out: %w", err)
		}
	}
	if r.By == "" {
		r.By = userOf(repo.WorkTree())
	}
	return nil
}

// promotedFolder returns the folder of the platform, or of the application, that the command
// works in.
func promotedFolder(dir string) (string, error) {
	if application.Is(dir) {
		return filepath.Abs(dir)
	}
	root, err := source.Root(dir)
	if err != nil {
		return "", fmt.Errorf(
			"%w; or name the repository of a platform, or of an application, with --repo", err)
	}
	return root, nil
}

// userOf returns the user of a repository, by git's configuration. It returns "" if git has no
// user.
func userOf(dir string) string {
	repo, err := git.Discover(dir)
	if err != nil {
		return ""
	}
	defer repo.Close()
	_, by, err := repo.Signatures(git.Signature{}, git.Signature{When: time.Now()})
	if err != nil || by.Name == "" {
		return ""
	}
	return by.Name + " <" + by.Email + ">"
}

// maxRaces is the number of times that a run starts over because somebody else was faster.
const maxRaces = 5

// withSession opens a session and calls a function with it. If somebody else moves a branch that
// the session depends on, withSession starts over.
func (g promoter) withSession(cmd *cobra.Command, o *promotionOptions,
	use func(context.Context, *promotion.Session) error) error {
	return g.withCache(func(c *cache.Cache) error {
		r, err := g.promotionRequest(o, c)
		if err != nil {
			return err
		}
		for attempt := 1; ; attempt++ {
			err = g.once(cmd.Context(), r, use)
			if !errors.Is(err, git.ErrLostRace) || errors.Is(err, plan.ErrMoved) || attempt == maxRaces {
				return err
			}
			if err := pause(cmd.Context(), attempt); err != nil {
				return err
			}
		}
	})
}

func (g promoter) once(ctx context.Context, r promotion.Request,
	use func(context.Context, *promotion.Session) error) (err error) {
	s, err := promotion.Open(ctx, r)
	if broken := (*session.PlatformError)(nil); errors.As(err, &broken) {
		if err := g.report(g.err, broken.Diagnostics); err != nil {
			return err
		}
		fmt.Fprintf(g.err, "kalypso: %v\n", broken)
		return errPlatform
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := g.report(g.err, s.Lacks()); err != nil {
		return err
	}
	return use(ctx, s)
}

// reportErrorsOf reports the errors of steps: files that block a write, and mistakes in the
// candidates. The result of the command already shows that there are errors.
func (g promoter) reportErrorsOf(stages []*plan.StageStatus) error {
	var errs []diag.Diagnostic
	for _, s := range stages {
		for _, d := range s.Diagnostics() {
			// errors, and further steps for the user
			if d.Severity == diag.Error || d.Code == diag.TreeMoved {
				errs = append(errs, d)
			}
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return g.report(g.err, errs)
}
