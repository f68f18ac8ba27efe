package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/compare"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/compiler/query"
	"github.com/kalypso-io/kalypso/compiler/supervisor"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/again"
)

// buildOptions are the flags of build.
type buildOptions struct {
	compiler.Output
	shard  string
	since  string
	at     string
	stats  bool
	output *string
	failOn *string

	allowRemovals bool
	allowEmpty    []string
}

func newBuild(g builder) *cobra.Command {
	o := &buildOptions{}
	cmd := &cobra.Command{
		Use:   "build [ENVIRONMENT...]",
		Short: "Compile environments into their GitOps trees",
		Long: `build compiles the environments, or all, and writes their trees: below --to, or
as commits to branches of a git repository, which needs no work tree. Each goes to
the branch and the folder that its gitops names; --branch names one for those that
have no gitops, and an environment whose gitops says otherwise is refused, because
its own objects would not point there. Where nothing differs there is no commit,
and a branch that is checked out is refused. Without either build writes nothing,
and prints what it would build.

An assignment with an error keeps its last good folder, and everything else is
written; the exit code is then 3. --strict writes nothing at all on any error.
Only files that kalypso wrote are changed or removed. A selector that selects nothing,
and selected something before, is an error, and what it had selected stays, unless
--allow-empty names it; an environment that would lose more than a part of its
assignments stays whole, unless --allow-removals is given.

What was built before is reused: a build takes as long as what changed. The cache
never changes what is built; --stats tells what it was good for.

--at builds a git revision of the platform instead of what is in its folder, straight
from git's objects, and records its commits. --since prints what differs from a git
revision of the platform, and builds no more than that. --shard i/n builds the i-th
of n parts of the cluster types, for n machines that together build them all.`,
		Example: `  kalypso build --to out                  # every environment, in out/<environment>
  kalypso build dev --to out              # one
  kalypso build dev --flat --to tree      # one, straight into tree
  kalypso build --git gitops.git          # each where its gitops says
  kalypso build --git gitops.git --branch deploy
  kalypso build --to out --shard 2/4      # the second of four parts
  kalypso build --since origin/main       # what a change of the platform affects`,
		RunE: func(cmd *cobra.Command, environments []string) error {
			if err := o.check(cmd, environments); err != nil {
				return err
			}
			return g.withCache(func(c *cache.Cache) error { return g.build(cmd, environments, o, c) })
		},
	}
	o.output, o.failOn = outputFlag(cmd), failOnFlag(cmd)
	cmd.Flags().StringVar(&o.Dir, "to", "", "write the trees to `DIR`/<environment>")
	cmd.Flags().StringVar(&o.Git, "git", "", "write the trees to the git repository in `DIR`, bare "+
		"or not, where each environment's gitops says")
	cmd.Flags().StringVar(&o.Branch, "branch", "", "the `BRANCH` of the repository that gets a "+
		"commit with <environment>/..., for environments without gitops")
	cmd.Flags().BoolVar(&o.TreeOnly, "tree", false, "write the tree that BRANCH would have, tell "+
		"its id, and leave BRANCH as it is")
	cmd.Flags().BoolVar(&o.Flat, "flat", false,
		"write the one environment straight into DIR, or the root of BRANCH")
	cmd.Flags().BoolVar(&o.Strict, "strict", false, "write nothing at all if there is any error")
	cmd.Flags().BoolVar(&o.Adopt, "adopt", false, "take over files that kalypso did not write")
	cmd.Flags().BoolVar(&o.allowRemovals, "allow-removals", false, "remove more assignments than "+
		"removals.max of an environment, or all")
	cmd.Flags().StringArrayVar(&o.allowEmpty, "allow-empty", nil, "let the selectors of the policy, "+
		"config or config schema `NAME` select nothing any more")
	completeFlag(cmd, "allow-empty", g.complete().selecting())
	cmd.Flags().BoolVar(&o.Verify, "verify", false,
		"read every file of DIR again, whatever its size and time say")
	cmd.Flags().StringVar(&o.shard, "shard", "",
		"build only the part `i/n` of the cluster types, such as 1/4")
	cmd.Flags().StringVar(&o.at, "at", "",
		"build the platform as it is at the git revision `REV`, and record the commits")
	cmd.Flags().StringVar(&o.since, "since", "",
		"print what differs from the platform's git revision `REV`")
	cmd.Flags().BoolVar(&o.stats, "stats", false, "tell what was computed, and what was reused")
	return cmd
}

// check returns an error if the flags are wrong or do not fit together.
func (o *buildOptions) check(cmd *cobra.Command, environments []string) error {
	for _, name := range []string{"to", "git", "branch", "shard", "since", "at"} {
		if cmd.Flags().Changed(name) && cmd.Flags().Lookup(name).Value.String() == "" {
			return usagef("--%s needs a value, and is empty", name)
		}
	}
	writes := o.Dir != "" || o.Git != ""
	switch {
	case o.Dir != "" && o.Git != "":
		return usagef("--to writes to a folder and --git to a repository: choose one")
	case o.Git == "" && o.Branch != "":
		return usagef("--branch is one of a git repository: name it with --git DIR")
	case o.Git != "" && o.Branch == "" && (o.Flat || o.TreeOnly):
		return usagef("--flat and --tree are about one branch: name it with --branch")
	case o.Flat && (len(environments) != 1 || !writes):
		return usagef("--flat writes one environment straight into --to DIR, or the root of --branch: " +
			"name the environment and where")
	case (o.allowRemovals || len(o.allowEmpty) > 0) && !writes:
		return usagef("--allow-removals and --allow-empty say what a build may take out of a tree: " +
			"they need --to DIR, or --git DIR --branch BRANCH")
	case (o.Adopt || o.Strict) && !writes:
		return usagef("--adopt and --strict say how to write: they need --to DIR, or --git DIR")
	case o.TreeOnly && o.Git == "":
		return usagef("--tree writes to a git repository: it needs --git DIR --branch BRANCH")
	case o.Verify && o.Dir == "":
		return usagef("--verify reads the files of --to DIR: name it")
	case o.since != "" && o.at != "":
		return usagef(
			"--since compares with the platform as it is in its folder, and --at builds another: choose one")
	case o.since != "" && writes:
		return usagef(
			"--since prints what differs: leave out --to and --git, which write only what differs anyway")
	}
	return nil
}

func (g builder) build(cmd *cobra.Command, environments []string, o *buildOptions,
	c *cache.Cache) error {
	o.Dir, o.Git = g.path(o.Dir), g.path(o.Git)
	r := g.request(environments, c)
	r.Revision, r.AllowRemovals, r.AllowEmpty = o.at, o.allowRemovals, o.allowEmpty
	if o.shard != "" {
		shard, err := engine.ParseShard(o.shard)
		if err != nil {
			return usageError{err}
		}
		r.Shard = shard
	}
	if o.since != "" {
		return g.buildSince(cmd, r, o)
	}
	if g.supervisor.Trial() != "" {
		return g.try(cmd.Context(), r)
	}
	stop := g.showProgress(cmd.Context(), &r)
	b, written, err := g.write(cmd.Context(), r, o.Output)
	stop()
	if err != nil {
		return err
	}
	defer b.Close() //nolint:errcheck // a temporary folder is left
	if err := g.report(g.err, b.Diagnostics); err != nil {
		return err
	}
	if o.stats {
		c.Flush()
		b.Recount()
	}
	if err := g.print(*o.output, document[builtPlatform]{apiVersion, "Build",
		builtOf(b, written, o.stats)}, func(w *tabwriter.Writer) {
		summary(w, b, written)
		if o.stats {
			stats(w, b.Stats)
		}
	}); err != nil {
		return err
	}
	if *o.output == "table" {
		const lines = 20
		for _, e := range query.InOrder(b) {
			if e.Effect != nil && e.Tree != nil {
				if err := compare.WriteEnds(g.out, e.Name, compare.OfEffect(e.Name, e.Effect),
					lines); err != nil {
					return err
				}
			}
		}
	}
	for _, c := range written.Commits {
		fmt.Fprintf(g.err, "commit %s on %s\n", c.Commit, c.Branch)
	}
	if o.TreeOnly && written.Tree != "" {
		fmt.Fprintf(g.err, "tree %s\n", written.Tree)
	}
	if o.Dir == "" && o.Git == "" {
		fmt.Fprintln(g.err,
			"nothing is written: name a folder with --to DIR, or a git repository with --git DIR")
	}
	if b.Failed() || failsOn(*o.failOn, b.Diagnostics) {
		return errPlatform
	}
	return nil
}

// path returns the path that an argument means: -C changes the folder that paths start at, as in
// git and cue. It returns "" for "".
func (g *console) path(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(g.dir, path)
}

// builtPlatform is the document of a build.
type builtPlatform struct {
	Environments []builtEnvironment `json:"environments"`
	// Commit is the new commit and Tree the tree of the whole branch, if the build writes one
	// branch. Commits are the new commits of several branches.
	Commit  tree.ID           `json:"commit,omitempty"`
	Tree    tree.ID           `json:"tree,omitempty"`
	Commits []compiler.Commit `json:"commits,omitempty"`
	Stats   *engine.Stats     `json:"stats,omitempty"`
}

// builtEnvironment is the result of an environment.
type builtEnvironment struct {
	Name string `json:"name"`
	// Readable is false if errors prevent reading the environment. Its output then stays as it is.
	Readable bool `json:"readable"`
	engine.Counts
	// Change is the set of deployment targets that the build removes from clusters and adds there,
	// by the record of the output; nil if nothing changes.
	Change *builtChange `json:"change,omitempty"`
	// Of an environment that was written.
	FilesWritten *int `json:"filesWritten,omitempty"`
	FilesRemoved *int `json:"filesRemoved,omitempty"`
}

// builtChange is the change of a build on clusters. It has the deployment targets that the build
// removes and adds there, and the targets whose namespace it replaces, with everything in it.
type builtChange struct {
	Removed  []compare.Entry `json:"removed"`
	Added    []compare.Entry `json:"added"`
	Replaced []compare.Entry `json:"replaced"`
	// Total counts each of them on each cluster.
	Total struct {
		Removed  int `json:"removed"`
		Added    int `json:"added"`
		Replaced int `json:"replaced"`
	} `json:"total"`
	Emptied     []string            `json:"emptied,omitempty"` // ids of empty clusters
	ClusterSets map[string][]string `json:"clusterSets,omitempty"`
}

// changeOf returns the changes of a build on clusters. It returns nil if nothing changes.
func changeOf(e *engine.Environment) *builtChange {
	if e.Effect == nil || e.Tree == nil {
		return nil
	}
	r := compare.OfEffect(e.Name, e.Effect)
	if r.Total == (compare.Total{}) {
		return nil
	}
	out := &builtChange{Removed: r.Removed, Added: r.Added, Replaced: r.Changed,
		ClusterSets: r.ClusterSets}
	out.Total.Removed, out.Total.Added, out.Total.Replaced = r.Total.Removed, r.Total.Added,
		r.Total.Changed
	if r.Clusters != nil {
		out.Emptied = r.Clusters.Emptied
	}
	return out
}

func builtOf(b *compiler.Build, written *compiler.WriteResult, withStats bool) builtPlatform {
	out := builtPlatform{Environments: []builtEnvironment{}}
	switch len(written.Commits) {
	case 0:
		out.Tree = written.Tree
	case 1:
		out.Tree, out.Commit = written.Tree, written.Commits[0].Commit
	default:
		out.Commits = written.Commits
	}
	for _, e := range query.InOrder(b) {
		item := builtEnvironment{Name: e.Name, Readable: e.Tree != nil, Counts: e.Counts,
			Change: changeOf(e)}
		if c := written.Changes[e.Name]; c != nil {
			files, removed := len(c.Written), len(c.Removed)
			item.FilesWritten, item.FilesRemoved = &files, &removed
		}
		out.Environments = append(out.Environments, item)
	}
	if withStats {
		out.Stats = &b.Stats
	}
	return out
}

// summary prints the result of a build, an environment a line.
func summary(w *tabwriter.Writer, b *compiler.Build, written *compiler.WriteResult) {
	fmt.Fprintln(w, "ENVIRONMENT\tCLUSTER TYPES\tASSIGNMENTS\tKEPT\tFAILED\tFILES WRITTEN\tREMOVED")
	for _, e := range query.InOrder(b) {
		s := e.Counts
		files, removed := "-", "-"
		if c := written.Changes[e.Name]; c != nil {
			files, removed = fmt.Sprint(len(c.Written)), fmt.Sprint(len(c.Removed))
		}
		if e.Tree == nil { // an error hides the environment: its output stays as it is
			fmt.Fprintf(w, "%s\t-\t-\tall\t-\t-\t-\n", e.Name)
			continue
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%s\t%s\n", e.Name, s.ClusterTypes, s.Assignments, s.Kept,
			s.Failed, files, removed)
	}
}

// stats prints the computed and reused parts, a level a line.
func stats(w *tabwriter.Writer, s engine.Stats) {
	fmt.Fprintln(w, "\nLEVEL\tCOMPUTED\tREUSED\tSECONDS\tREAD\tWRITTEN")
	for _, l := range s.Levels {
		fmt.Fprintf(w, "%s\t%d\t%d\t%.2f\t%s\t%s\n", l.Level, l.Computed, l.Reused, l.Seconds,
			bytesText(l.ReadBytes), bytesText(l.WrittenBytes))
	}
}

// sinceReport is the effect of a platform's change on clusters: the pairs of compare.Report,
// without the differences of their files.
type sinceReport struct {
	Since        string              `json:"since"`
	Removed      []compare.Entry     `json:"removed"`
	Added        []compare.Entry     `json:"added"`
	Changed      []compare.Entry     `json:"changed"`
	Total        compare.Total       `json:"total"`
	Assignments  compare.Folders     `json:"assignments"`
	ClusterTypes compare.Folders     `json:"clusterTypes"`
	Clusters     *compare.Clusters   `json:"clusters,omitempty"`
	ClusterSets  map[string][]string `json:"clusterSets,omitempty"`
	LeftOut      []string            `json:"leftOut,omitempty"`
	Stats        *engine.Stats       `json:"stats,omitempty"`
}

// buildSince is `build --since`. It builds the differences from a revision of the platform, and prints
// them.
func (g builder) buildSince(cmd *cobra.Command, r compiler.Request, o *buildOptions) error {
	stop := g.showProgress(cmd.Context(), &r)
	d, err := compiler.Compare(cmd.Context(), r, compiler.Side{Revision: o.since}, compiler.Side{},
		compiler.Output{})
	stop()
	if err != nil {
		return err
	}
	if err := g.reportDifference(d); err != nil {
		return err
	}
	f := d.Report
	item := sinceReport{Since: o.since, Removed: f.Removed, Added: f.Added, Changed: f.Changed,
		Total: f.Total, Assignments: f.Assignments, ClusterTypes: f.ClusterTypes, Clusters: f.Clusters,
		ClusterSets: f.ClusterSets, LeftOut: f.LeftOut}
	if o.stats {
		r.Cache.Flush()
		d.After.Recount()
		item.Stats = &d.After.Stats
	}
	if *o.output == "table" {
		if err := compare.WriteList(g.out, d.Report); err != nil {
			return err
		}
		err = g.print(*o.output, nil, func(w *tabwriter.Writer) {
			if o.stats {
				stats(w, d.After.Stats)
			}
		})
	} else {
		err = g.printDocument(*o.output, document[sinceReport]{apiVersion, "Affected", item})
	}
	if err != nil {
		return err
	}
	if d.After.Failed() {
		return errPlatform
	}
	return nil
}

// write compiles environments and writes them. It postpones environments that take long, and
// writes the others first. A child process tries each of the late environments before write
// continues with it. An environment that exceeds a bound ends its process, and this process still
// has results to print.
func (g builder) write(
	ctx context.Context, r compiler.Request, o compiler.Output,
) (*compiler.Build, *compiler.WriteResult, error) {
	if o.Dir == "" && o.Git == "" || o.Strict || o.TreeOnly || o.Flat {
		return compiler.Write(ctx, r, o) // of all at once, or of one
	}
	g.supervisor.Defer(true)
	late := g.supervisor.Late()
	r.Except = late
	b, written, err := compiler.Write(ctx, r, o)
	if err != nil {
		return nil, nil, err
	}
	r.Except = nil
	l := &lateWrite{g.supervisor, r, o, b, written}
	// One of several environments may have been postponed because another used up the bounds.
	// Small ones go first.
	if len(late) > 1 {
		late, err = l.write(ctx, late, true)
	}
	if err == nil {
		_, err = l.write(ctx, late, false)
	}
	if err != nil {
		return nil, nil, errors.Join(err, b.Close())
	}
	return b, written, nil
}

// lateWrite writes environments that were postponed, and adds them to the build and its output.
type lateWrite struct {
	supervisor *supervisor.Supervisor
	request    compiler.Request
	output     compiler.Output
	build      *compiler.Build
	written    *compiler.WriteResult
}

// write tries environments, each within a small part of its bounds or within all of them. It adds
// the environments that it writes to the build. It returns the environments that need more than
// the small part.
func (l *lateWrite) write(ctx context.Context, late []string, little bool) (beyond []string,
	err error) {
	for _, name := range late {
		trips, err := l.trial(ctx, name, little)
		if err != nil {
			return nil, err
		}
		if little && len(trips) > len(l.supervisor.Trips()) {
			beyond = append(beyond, name)
			continue
		}
		l.supervisor.Learn(trips)
		r := l.request
		r.Environments = []string{name}
		b, written, err := compiler.Write(ctx, r, l.output)
		if err != nil {
			return nil, err
		}
		l.build.Join(b)
		maps.Copy(l.written.Changes, written.Changes)
		l.written.Commits = append(l.written.Commits, written.Commits...)
		l.written.Tree = written.Tree
	}
	return beyond, nil
}

// trial compiles an environment in a child process, and returns all trips, old and new.
func (l *lateWrite) trial(ctx context.Context, environment string,
	little bool) (trips []supervisor.Trip, err error) {
	out, err := again.Below(ctx, l.supervisor.TrialOf(environment, little))
	if err != nil {
		return nil, errors.Join(ctx.Err(), err)
	}
	return trips, json.Unmarshal(out, &trips)
}

// try compiles one environment in the child process, and prints its trips. It ends when the parent
// does. The parent finds other errors itself.
func (g builder) try(ctx context.Context, r compiler.Request) error {
	go func() {
		_, _ = io.Copy(io.Discard, g.in)
		os.Exit(int(exitFailure))
	}()
	r.Environments = []string{g.supervisor.Trial()}
	b, err := compiler.Compile(ctx, r)
	if err != nil {
		return err
	}
	trips := g.supervisor.Trips()
	return errors.Join(b.Close(), json.NewEncoder(g.streams.out).Encode(trips))
}
