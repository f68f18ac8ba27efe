package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/cmd/kalypso/internal/watch"
	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/source"
)

// watchOptions are the flags of watch.
type watchOptions struct {
	compiler.Output
	poll bool
}

func newWatch(g *global) *cobra.Command {
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
			if err := o.check(g, cmd, environments); err != nil {
				return err
			}
			return g.withCache(func(c *cache.Cache) error { return g.watch(cmd.Context(), environments, o, c) })
		},
	}
	cmd.Flags().StringVar(&o.Dir, "to", "", "write the trees to `DIR`/<environment>")
	cmd.Flags().BoolVar(&o.Flat, "flat", false, "write the one environment straight into DIR")
	cmd.Flags().BoolVar(&o.Strict, "strict", false, "write nothing at all while there is any error")
	cmd.Flags().BoolVar(&o.Adopt, "adopt", false, "take over files that kalypso did not write")
	cmd.Flags().BoolVar(&o.poll, "poll", false, "look for changes, instead of asking the system to tell of them")
	return cmd
}

// check says what is wrong with the flags, and makes paths of them.
func (o *watchOptions) check(g *global, cmd *cobra.Command, environments []string) error {
	switch {
	case cmd.Flags().Changed("to") && o.Dir == "":
		return usagef("--to needs a value, and is empty")
	case o.Flat && (len(environments) != 1 || o.Dir == ""):
		return usagef("--flat writes one environment straight into --to DIR: name the environment and DIR")
	case (o.Adopt || o.Strict) && o.Dir == "":
		return usagef("--adopt and --strict say how to write: they need --to DIR")
	}
	o.Dir = g.path(o.Dir)
	return nil
}

// watch builds whenever something changes. It returns only with an error.
func (g *global) watch(ctx context.Context, environments []string, o *watchOptions, c *cache.Cache) error {
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
		err = s.show(built{b, written, err, time.Since(begin)})
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

// watchPlatform watches the files that a platform is made of.
func watchPlatform(root string, except []string, poll bool, warn func(error)) (*watch.Watcher, error) {
	return watch.Open(watch.Options{
		Root: root, Except: except, Poll: poll, Warn: warn,
		Outside: func() []string { return source.Outside(root) },
		Follow: func(folder string) bool {
			rel, inside := fromRoot(root, folder)
			return inside && source.IsEnvironmentFolder(rel)
		},
	})
}

// except returns the folders of which no change counts, since a build makes it.
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

// resolved returns the absolute path, without links, of what may not be there yet.
func resolved(name string) string {
	abs, err := filepath.Abs(name)
	if err != nil {
		return name
	}
	for dir, rest := abs, "."; ; dir, rest = filepath.Dir(dir), filepath.Join(filepath.Base(dir), rest) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if dir == filepath.Dir(dir) {
			return abs
		}
	}
}
