package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/application"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/compiler/dependency/fetch"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/internal/spelling"
)

// lockOptions are the flags of lock.
type lockOptions struct {
	update    []string
	updateAll bool
	timeout   time.Duration
	output    *string
}

// sourceTimeoutFlag adds the flag of commands that fetch sources.
func sourceTimeoutFlag(cmd *cobra.Command, timeout *time.Duration) {
	cmd.Flags().DurationVar(timeout, "source-timeout", fetch.Timeout,
		"how much `TIME` one source may take, with all its requests")
}

// newFetcher returns a fetcher of sources with a timeout.
func newFetcher(timeout time.Duration) (*fetch.Fetcher, error) {
	if timeout <= 0 {
		return nil, usagef("--source-timeout %s: it is more than nothing, such as 5m", timeout)
	}
	return fetch.New(fetch.Options{Timeout: timeout})
}

func newLock(g author) *cobra.Command {
	o := &lockOptions{}
	cmd := &cobra.Command{
		Use:   "lock",
		Short: "Pin what the platform takes from elsewhere, and fetch it",
		Long: `lock resolves the registrations of the platform, and the charts, overlays and
artifacts that are rendered, and pins each to a commit, a version or a digest, with
the digest of its content, in kalypso.lock. The content goes into the store of this
machine ($KALYPSO_STORE_DIR), from which builds read: no other command reaches for
these sources. Commit kalypso.lock: a commit of the platform then always means the
same.

A source that is not there after --source-timeout fails, and the others are locked.

What is pinned stays as it is, and is fetched if the store does not have it.
--update resolves again what a registration, a deployment target, a workload or a
chart of that name uses; --update-all does so with everything. What nobody uses any
more is removed.

Credentials are those of git, helm and docker. In the folder of an application, lock
pins what ` + "`kalypso project`" + ` renders.`,
		Example: `  kalypso lock                       # pin what is new, fetch what is missing
  kalypso lock --update hello-world  # take the newest of one`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return g.lock(cmd.Context(), o) },
	}
	cmd.Flags().StringArrayVar(&o.update, "update", nil,
		"resolve again what `NAME` uses; may be given several times")
	completeFlag(cmd, "update", g.complete().evaluated(func(b *compiler.Build) (names []string) {
		for _, u := range b.Uses() {
			names = append(names, namesOf(u)...)
		}
		return names
	}))
	cmd.Flags().BoolVar(&o.updateAll, "update-all", false, "resolve everything again")
	sourceTimeoutFlag(cmd, &o.timeout)
	o.output = outputFlag(cmd)
	return cmd
}

func (g author) lock(ctx context.Context, o *lockOptions) error {
	fetcher, err := newFetcher(o.timeout)
	if err != nil {
		return err
	}
	defer fetcher.Close()
	renewed := map[string]bool{}
	renew := func(u dependency.Use) bool {
		if o.updateAll {
			return true
		}
		names := namesOf(u)
		for _, name := range o.update {
			if slices.Contains(names, name) {
				renewed[name] = true
				return true
			}
		}
		return false
	}
	var known []string // names that an argument could use
	sources, ds, err := g.lockFolder(ctx, fetcher, func(u dependency.Use) bool {
		known = append(known, namesOf(u)...)
		return renew(u)
	})
	if err != nil {
		return err
	}
	if err := g.report(g.err, ds); err != nil {
		return err
	}
	if len(dependency.UnreadableLock(ds)) > 0 {
		return errPlatform // nothing was done
	}
	if err := g.printSources(*o.output, sources); err != nil {
		return err
	}
	for _, name := range o.update {
		if !renewed[name] {
			slices.Sort(known)
			known = slices.Compact(known)
			return usagef("nothing that is locked is used by %s; %s", name, spelling.DidYouMean(name, known))
		}
	}
	if err := g.failures(sources); err != nil {
		return err
	}
	if diag.Errors(ds) {
		return errPlatform
	}
	return nil
}

// namesOf returns the names of a source on the command line: the names of its users, the workload
// of a deployment target, and the name of the chart.
func namesOf(u dependency.Use) []string {
	out := slices.Clone(u.Also)
	for _, by := range u.By {
		out = append(out, strings.TrimPrefix(by, "registration "))
	}
	if u.Source.Chart != "" {
		out = append(out, u.Source.Chart)
	}
	return out
}

// lockFolder locks the platform, or the application, that the command works in.
func (g author) lockFolder(ctx context.Context, f dependency.Fetcher,
	renew func(dependency.Use) bool) (sources []dependency.Result, ds []diag.Diagnostic, err error) {
	if application.Is(g.dir) {
		return application.Lock(ctx, application.Request{Dir: g.dir, Supervisor: g.supervisor}, f, renew)
	}
	err = g.withCache(func(c *cache.Cache) error {
		locked, err := compiler.Lock(ctx, g.request(nil, c), f, renew)
		if err == nil {
			sources = locked.Sources
			// Errors may hide sources. The result of a source already shows that it is not locked.
			ds = diag.Sort(
				slices.DeleteFunc(blocking(locked.Build.Diagnostics), func(d diag.Diagnostic) bool {
					return d.Code == diag.NotLocked || d.Code == diag.MissingContent
				}))
		}
		return err
	})
	return sources, ds, err
}

// lockedSource is the result of a source.
type lockedSource struct {
	dependency.Entry
	Status   dependency.Status `json:"status"`
	Previous string            `json:"previousRevision,omitempty"`
	UsedBy   []string          `json:"usedBy"`
	Error    string            `json:"error,omitempty"`
}

func (g author) printSources(output string, sources []dependency.Result) error {
	items := []lockedSource{}
	for _, s := range sources {
		item := lockedSource{Entry: s.Entry, Status: s.Status, UsedBy: append([]string{}, s.By...)}
		if s.Before != s.Revision {
			item.Previous = s.Before
		}
		if s.Err != nil {
			item.Error = s.Err.Error()
		}
		items = append(items, item)
	}
	return g.print(output, list[lockedSource]{apiVersion, "LockedSourceList", items},
		func(w *tabwriter.Writer) {
			fmt.Fprintln(w, "SOURCE\tREVISION\tSTATUS\tUSED BY")
			for _, item := range items {
				revision := item.Revision
				if revision == "" {
					revision = "-"
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", item.Source, shortRevision(revision), item.Status,
					strings.Join(item.UsedBy, ", "))
			}
		})
}

// shortRevision cuts commits and digests for people.
func shortRevision(revision string) string {
	if hex, isDigest := strings.CutPrefix(revision, "sha256:"); isDigest {
		return "sha256:" + hex[:min(12, len(hex))]
	}
	if len(revision) >= 40 {
		return revision[:12]
	}
	return revision
}

// hintFor returns the steps to take for a source that failed. It returns "" if no steps are
// known.
func hintFor(err error) string {
	var unauthorized *fetch.AuthError
	var damaged *dependency.DamagedError
	var size *dependency.SizeError
	var changed *fetch.ChangedError
	var failed *fetch.Error
	switch {
	case errors.As(err, &unauthorized):
		return unauthorized.Hint
	case errors.As(err, &damaged):
		return damaged.Hint()
	case errors.As(err, &size):
		return size.Hint()
	case errors.As(err, new(*fetch.NotFoundError)):
		return "ask for what is there, or put it there"
	case errors.As(err, &changed):
		return "find out who replaced it; `kalypso lock --update NAME` takes what is there now"
	case errors.As(err, &failed):
		return failed.Hint
	}
	return ""
}

// failures prints the sources that could not be locked, with hints. It returns an error if there
// are any.
func (g author) failures(sources []dependency.Result) error {
	var failed error
	for _, s := range sources {
		if s.Err == nil {
			continue
		}
		fmt.Fprintf(g.err, "kalypso: %v\n  needed by %s\n", s.Err, strings.Join(s.By, ", "))
		var unauthorized *fetch.AuthError
		for _, at := range s.At {
			fmt.Fprintf(g.err, "  %s:%d:%d\n", at.File, at.Line, at.Column)
		}
		errors.As(s.Err, &unauthorized)
		if hint := hintFor(s.Err); hint != "" {
			fmt.Fprintf(g.err, "  hint: %s\n", hint)
		}
		if failed == nil || unauthorized != nil {
			failed = s.Err
		}
	}
	if failed == nil {
		return nil
	}
	return printedError{failed}
}
