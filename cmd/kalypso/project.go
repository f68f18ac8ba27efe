package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/compiler/application"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

func newProject(g author) *cobra.Command {
	var o application.Output
	var output, failOn *string
	var withStats bool
	cmd := &cobra.Command{
		Use:   "project [ENVIRONMENT...]",
		Short: "Render an application's manifests for all of its targets",
		Long: `project works in the repository of an application, where kalypso.yaml says which
chart or overlay is rendered. There is no platform and no cluster. Each folder
environments/<environment>/<target> is a target: its values are those of its
values.yaml over those of the folders above it, and must satisfy what their
values.cue say.

With --to it writes the application's GitOps tree, <environment>/<target>, of which
a deployment target of a platform then names a folder. What is gone is removed; a
target with an error keeps its last good folder, and the exit code is then 3.
Without --to nothing is written.

What was rendered before is reused, as in kalypso build; --stats tells how much.

A chart of elsewhere is pinned by kalypso.lock: see kalypso lock.`,
		Example: `  kalypso project --to ../gitops        # every target
  kalypso project dev --to ../gitops    # those of one environment
  kalypso project                       # only look for errors`,
		RunE: func(cmd *cobra.Command, environments []string) error {
			o.Dir = g.path(o.Dir)
			if o.Dir == "" && (o.Strict || o.Adopt) {
				return usagef("--adopt and --strict say how to write: they need --to DIR")
			}
			return g.withCache(func(c *cache.Cache) error {
				return g.project(cmd, environments, o, c, withStats, *output, *failOn)
			})
		},
	}
	output, failOn = outputFlag(cmd), failOnFlag(cmd)
	cmd.Flags().StringVar(&o.Dir, "to", "", "write the tree to `DIR`/<environment>/<target>")
	cmd.Flags().BoolVar(&o.Strict, "strict", false, "write nothing at all if there is any error")
	cmd.Flags().BoolVar(&o.Adopt, "adopt", false, "take over files that kalypso did not write")
	cmd.Flags().BoolVar(&withStats, "stats", false, "tell what was rendered, and what was reused")
	return cmd
}

func (g author) project(cmd *cobra.Command, environments []string, o application.Output,
	c *cache.Cache, withStats bool, output, failOn string) (err error) {
	r := application.Request{Dir: g.dir, Environments: environments, Cache: c, Workers: g.workers,
		Supervisor: g.supervisor}
	var a *application.Application
	var changes map[string]*tree.Changes
	if o.Dir == "" {
		a, err = application.Project(cmd.Context(), r)
	} else {
		a, changes, err = application.Write(cmd.Context(), r, o)
	}
	if err != nil {
		return err
	}
	if err := g.report(g.err, a.Diagnostics); err != nil {
		return err
	}
	out := projectedTargets{list[projectedTarget]{apiVersion, "ProjectedTargetList",
		[]projectedTarget{}}, nil}
	for _, t := range a.Targets {
		out.Items = append(out.Items, targetOf(t, changes[t.Environment]))
	}
	if withStats {
		out.Stats = &a.Stats
	}
	if err := g.print(output, out, func(w *tabwriter.Writer) {
		fmt.Fprintln(w, "ENVIRONMENT\tTARGET\tSTATUS")
		for _, item := range out.Items {
			fmt.Fprintf(w, "%s\t%s\t%s\n", item.Environment, item.Target, item.Status)
		}
		if withStats {
			stats(w, a.Stats)
		}
	}); err != nil {
		return err
	}
	if o.Dir != "" {
		fmt.Fprintf(g.err, "the tree is in %s\n", o.Dir)
	} else {
		fmt.Fprintln(g.err, "nothing is written: name a folder with --to DIR")
	}
	for _, name := range removedTargets(changes) {
		fmt.Fprintf(g.err, "removed %s\n", name)
	}
	if a.Failed() || failsOn(failOn, a.Diagnostics) {
		return errPlatform
	}
	return nil
}

// projectedTargets are the results of all targets.
type projectedTargets struct {
	list[projectedTarget]
	Stats *engine.Stats `json:"stats,omitempty"`
}

// projectedTarget is the result of a target.
type projectedTarget struct {
	Environment string `json:"environment"`
	Target      string `json:"target"`
	// Status is rendered, written, unchanged or failed.
	Status string `json:"status"`
}

func targetOf(t application.Target, c *tree.Changes) projectedTarget {
	out := projectedTarget{t.Environment, t.Name, "rendered"}
	switch {
	case t.Failed:
		out.Status = "failed"
	case c != nil:
		out.Status = "unchanged"
		for _, file := range c.Written {
			if strings.HasPrefix(file, t.Name+"/") {
				out.Status = "written"
			}
		}
	}
	return out
}

// removedTargets are the files that were removed, by environment.
func removedTargets(changes map[string]*tree.Changes) []string {
	var out []string
	for environment, c := range changes {
		for _, file := range c.Removed {
			out = append(out, environment+"/"+file)
		}
	}
	slices.Sort(out)
	return out
}
