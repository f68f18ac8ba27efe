package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/cmd/kalypso/internal/watch"
	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// watchOptions are the flags of watch.
type watchOptions struct {
	compiler.Output
	poll bool
}

func newWatch(g builder) *cobra.Command {
	o := &watchOptions{}
	cmd := &cobra.Command{
		Use:   "watch [ENVIRONMENT...]",
		Short: "Build whenever a file of the platform changes",
		Long: `watch builds the environments, or all, and builds them again whenever a file of
the platform changes, until it is interrupted; the exit code is then 130. It
writes like build: below --to, or nothing.

After each build it prints how long that took, what it built, which assignments
it changed in --to, and what is wrong. On a terminal that takes the place of what
was there; elsewhere it is added, and ends with an empty line. With another
--diagnostics than text, stdout has nothing but those, and the rest is on stderr.

Files that count are all of the platform's folder and what they link to, and
modules that cue.mod/local-module.cue replaces; not the output, version control,
and the backups, swap and lock files of editors. What an editor or git changes at
once is built once. An error, also of reading a file, ends nothing; only when the
platform's folder goes does watch end, with 2.

Network, virtual and shared file systems may tell nothing of changes: --poll looks
for them twice a second.`,
		Example: `  kalypso watch                         # what is wrong, while you write
  kalypso watch dev --to out            # and what comes of it, in out/dev
  kalypso watch --poll -C /mnt/platform # a shared folder`,
		RunE: func(cmd *cobra.Command, environments []string) error {
			if err := o.check(g.console, cmd, environments); err != nil {
				return err
			}
			return g.withCache(
				func(c *cache.Cache) error { return g.watch(cmd.Context(), environments, o, c) })
		},
	}
	cmd.Flags().StringVar(&o.Dir, "to", "", "write the trees to `DIR`/<environment>")
	cmd.Flags().BoolVar(&o.Flat, "flat", false, "write the one environment straight into DIR")
	cmd.Flags().BoolVar(&o.Strict, "strict", false, "write nothing at all while there is any error")
	cmd.Flags().BoolVar(&o.Adopt, "adopt", false, "take over files that kalypso did not write")
	cmd.Flags().BoolVar(&o.poll, "poll", false,
		"look for changes, instead of asking the system to tell of them")
	return cmd
}

// check returns an error if the flags are wrong, and resolves their paths.
func (o *watchOptions) check(g *console, cmd *cobra.Command, environments []string) error {
	switch {
	case cmd.Flags().Changed("to") && o.Dir == "":
		return usagef("--to needs a value, and is empty")
	case o.Flat && (len(environments) != 1 || o.Dir == ""):
		return usagef(
			"--flat writes one environment straight into --to DIR: name the environment and DIR")
	case (o.Adopt || o.Strict) && o.Dir == "":
		return usagef("--adopt and --strict say how to write: they need --to DIR")
	}
	o.Dir = g.path(o.Dir)
	return nil
}

// watch builds whenever something changes. It returns only with an error.
func (g builder) watch(ctx context.Context, environments []string, o *watchOptions,
	c *cache.Cache) error {
	root, err := source.Root(g.dir)
	if err != nil {
		return err
	}
	except, err := o.except(root)
	if err != nil {
		return err
	}
	s := g.newScreen(root)
	w, err := watchPlatform(root, except, o.poll, s.warn)
	if err != nil {
		return err
	}
	defer w.Close()
	for first := true; ; first = false {
		r := g.request(environments, c)
		r.Dir = root
		begin := time.Now()
		stop := g.showProgress(ctx, &r)
		b, written, err := compiler.Write(ctx, r, o.Output)
		stop()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		// One that was there may come back; one that never was is misspelt.
		var unknown *compiler.UnknownEnvironmentError
		if first && errors.As(err, &unknown) {
			return err
		}
		err = s.show(buildResult{b, written, err, time.Since(begin)})
		if err := errors.Join(err, b.Close()); err != nil {
			return err
		}
		g.supervisor.MayBeginAgain(true) // all is printed of this build
		// There is time now, and little of it once this is interrupted.
		c.Flush()
		if err := w.Next(ctx); err != nil {
			return err
		}
	}
}

// watchPlatform watches the files of a platform.
func watchPlatform(root string, except []string, poll bool, warn func(error)) (*watch.Watcher,
	error) {
	return watch.Open(watch.Options{
		Root: root, Except: except, Poll: poll, Warn: warn,
		Outside: func() []string { return source.Outside(root) },
		Follow: func(folder string) bool {
			rel, inside := fromRoot(root, folder)
			return inside && source.IsEnvironmentFolder(rel)
		},
	})
}

// except returns the folders whose changes do not count, because a build causes them.
func (o *watchOptions) except(root string) (out []string, err error) {
	if dir, err := cache.DefaultDir(); err == nil {
		dir = resolved(dir)
		if rel, inside := fromRoot(root, dir); inside && rel != "." {
			out = append(out, dir)
		}
	}
	if o.Dir == "" {
		return out, nil
	}
	to := resolved(o.Dir)
	rel, inside := fromRoot(root, to)
	switch {
	case !inside:
		return out, nil
	case rel == ".", rel == source.Environments, strings.HasPrefix(rel, source.Environments+"/"):
		return nil, usagef("--to %s is a folder of the platform itself, whose changes would not be "+
			"told from those of a build: name another", o.Dir)
	}
	return append(out, to), nil
}

// fromRoot returns a path relative to the root, with slashes, and whether it is in
// the root.
func fromRoot(root, path string) (rel string, inside bool) {
	rel, err := filepath.Rel(root, path)
	return filepath.ToSlash(rel), err == nil && filepath.IsLocal(rel)
}

// resolved returns the absolute path, without links, of a file or folder that may not exist yet.
func resolved(name string) string {
	abs, err := filepath.Abs(name)
	if err != nil {
		return name
	}
	for dir, rest := abs, "."; ; dir, rest = filepath.Dir(dir),
		filepath.Join(filepath.Base(dir), rest) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if dir == filepath.Dir(dir) {
			return abs
		}
	}
}

// buildResult is the result of a build: an error, or the rest.
type buildResult struct {
	*compiler.Build
	written *compiler.WriteResult
	err     error
	took    time.Duration
}

// screen shows one build after the other.
type screen struct {
	*platform
	root string
	// talk gets all output that is not a diagnostic in a format for programs.
	talk io.Writer
	// redraws is true if talk is a terminal, on which a build replaces the one before.
	redraws bool
	warning string // that belongs to every build
}

func (g builder) newScreen(root string) *screen {
	s := &screen{platform: g.platform, root: root, talk: g.out}
	if g.diagnostics != "text" {
		s.talk = g.err
		return s
	}
	s.redraws = sizeOf(g.out) != nil
	return s
}

// warn keeps a warning if the screen is redrawn, and otherwise writes it.
func (s *screen) warn(err error) {
	if s.warning = fmt.Sprintf("kalypso: warning: %v; looking for changes twice a second instead\n",
		err); !s.redraws {
		fmt.Fprint(s.err, s.warning)
	}
}

// erased is the sequence that clears a terminal. It keeps the text above the screen.
const erased = "\x1b[H\x1b[2J"

// show shows a build in one write, so that a terminal does not flicker and a
// reader finds it whole.
func (s *screen) show(b buildResult) error {
	var page bytes.Buffer
	if s.redraws {
		page.WriteString(erased)
	}
	if b.err != nil {
		fmt.Fprintf(&page, "not built: %v\n", b.err)
	} else if err := s.page(&page, b); err != nil {
		return err
	}
	page.WriteString("\n")
	if s.redraws {
		fmt.Fprintf(&page, "%swaiting for changes of %s; Ctrl-C ends\n", s.warning, s.root)
	}
	_, err := s.talk.Write(page.Bytes())
	return err
}

// page writes the size of the build, the changes, and the problems.
func (s *screen) page(page *bytes.Buffer, b buildResult) error {
	fmt.Fprintf(page, "built in %.2f s, %s\n", b.took.Seconds(), counted(b.Diagnostics))
	w := tabwriter.NewWriter(page, 0, 0, 2, ' ', 0)
	summary(w, b.Build, b.written)
	if err := w.Flush(); err != nil {
		return err
	}
	changed(page, b)
	if s.diagnostics == "text" {
		return diag.WriteText(page, b.Diagnostics, emphasis(s.out))
	}
	return s.report(s.out, b.Diagnostics)
}

// counted returns the number of errors and warnings, as text.
func counted(ds []diag.Diagnostic) string {
	errs := 0
	for _, d := range ds {
		if d.Severity == diag.Error {
			errs++
		}
	}
	if len(ds) == 0 {
		return "no problems"
	}
	warnings := len(ds) - errs
	switch 0 {
	case warnings:
		return plural(errs, "error")
	case errs:
		return plural(warnings, "warning")
	}
	return plural(errs, "error") + " and " + plural(warnings, "warning")
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// maxChanged is the largest number of changed assignments to name.
const maxChanged = 10

// changed writes which assignments a build changed, and on which clusters, removals first.
func changed(page *bytes.Buffer, b buildResult) {
	var lines []string
	for _, e := range b.Environments {
		if c := b.written.Changes[e.Name]; c != nil {
			lines = append(lines, changesOf(e, c.Assignments)...)
		}
	}
	for _, line := range lines[:min(len(lines), maxChanged)] {
		fmt.Fprintln(page, line)
	}
	if left := len(lines) - maxChanged; left > 0 {
		fmt.Fprintf(page, "and %d more\n", left)
	}
}

// changesOf returns a line for each assignment that is removed, added or changed. The first build
// cannot be compared with an earlier one, so it adds everything that it wrote.
func changesOf(e *engine.Environment, written tree.AssignmentChanges) (lines []string) {
	if e.Effect == nil {
		for _, name := range written.Added {
			lines = append(lines, fmt.Sprintf("%-8s %s", "added", name))
		}
		return lines
	}
	clusters := map[[2]string][]string{} // by word and id
	for i := range e.Effect.Pairs {
		p := &e.Effect.Pairs[i]
		key := [2]string{"changed", e.Name + "/" + p.ClusterType() + "/" + p.DeploymentTarget()}
		if p.Removed() {
			key[0] = "removed"
		} else if p.Added() {
			key[0] = "added"
		}
		clusters[key] = append(clusters[key], p.Way.Clusters...)
	}
	for _, word := range []string{"removed", "added", "changed"} {
		for _, key := range slices.SortedFunc(maps.Keys(clusters),
			func(a, b [2]string) int { return strings.Compare(a[1], b[1]) }) {
			if key[0] != word {
				continue
			}
			line := fmt.Sprintf("%-8s %s", word, key[1])
			switch names := clusters[key]; len(names) {
			case 0:
			case 1:
				line += " on " + names[0]
			default:
				line += " on " + plural(len(names), "cluster")
			}
			lines = append(lines, line)
		}
	}
	return lines
}
