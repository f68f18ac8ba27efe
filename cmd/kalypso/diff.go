package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/compare"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/query"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/gate"
	"github.com/kalypso-io/kalypso/promotion/subject"
)

// diffOptions are the flags of diff.
type diffOptions struct {
	stat, all, exitCode, allowRemovals bool
	against                            string
	output                             string
}

func newDiff(g inspector) *cobra.Command {
	o := &diffOptions{}
	cmd := &cobra.Command{
		Use:   "diff [REV|DIR] [REV|DIR]",
		Short: "Show what a change does on clusters",
		Long: `diff compares two sides. A side is a git revision of the platform, which is
compiled, or a folder that a build wrote. The first side is HEAD and the second is
the platform in its folder, unless you pass others. diff changes neither the folder
nor the repository.

diff counts pairs of an assignment and a cluster: what is removed from which
clusters comes first, then what is added, and then the values and objects that
differ. A cluster type that lists no clusters counts as one cluster. Differences are
those of the YAML's content, not of its lines; equal ones are printed once. -o wide
adds details: classes that clusters move between, and changes of files that only list
or describe assignments. -o ndjson prints every pair.

The second side is built on the first one as a build is on the output that exists.
So diff reports what build and promote would report, fails with the same exit code
where a build would be refused, and keeps what a build would keep. --against takes
the records of another output instead: a folder, or a branch as REPOSITORY:BRANCH.
Assignments with errors on the first side are left out. Two folders are compared as
they are: diff does not know the bounds and policies of their platform.

If an environment has rings, diff says which rings a change goes through, and how long
it soaks there at least.

If a folder and a revision have the same name, write the folder with a slash, such as
./main.`,
		Example: `  kalypso diff                    # what the changes since the last commit do
  kalypso diff origin/main --stat
  kalypso diff v1.4.0 v1.5.0
  kalypso diff ./out              # what a build would change in out/
  kalypso diff --against gitops.git:prod`,
		Args: arity(0, 2, "diff compares two sides, and %d are given"),
		RunE: func(cmd *cobra.Command, args []string) error {
			saveMemory(240 << 20)
			before, after := compiler.Side{Revision: "HEAD"}, compiler.Side{}
			for n, s := range []*compiler.Side{&before, &after}[:len(args)] {
				if err := g.side(args[n], s); err != nil {
					return err
				}
			}
			against, err := g.readAgainst(o.against)
			if err != nil {
				return err
			}
			return g.withCache(func(c *cache.Cache) error {
				r := g.request(nil, c)
				r.AllowRemovals = o.allowRemovals
				return g.diff(cmd, r, before, after, against, o)
			})
		},
	}
	choiceFlag(cmd, cmd.Flags(), &o.output, "output", "o", "how to print the result", "table", "wide",
		"json", "yaml", "ndjson")
	cmd.Flags().BoolVar(&o.stat, "stat", false, "only count the assignments of each cluster type")
	cmd.Flags().BoolVar(&o.all, "all", false,
		"name all assignments and clusters, not only the first three")
	cmd.Flags().BoolVar(&o.allowRemovals, "allow-removals", false, "allow removals beyond "+
		"removals.max and removals.emptied of an environment")
	cmd.Flags().StringVar(&o.against, "against", "", "build the second side on the records of the "+
		"output in `DIR`, or in a branch as REPOSITORY:BRANCH")
	cmd.Flags().BoolVar(&o.exitCode, "exit-code", false, "exit with 1 if there are differences")
	return cmd
}

// side reads an argument: a folder, or else a revision.
func (g inspector) side(arg string, s *compiler.Side) error {
	path := arg
	if !filepath.IsAbs(path) {
		path = filepath.Join(g.dir, path)
	}
	info, err := os.Stat(path)
	isDir := err == nil && info.IsDir()
	named := filepath.Base(arg) != arg || arg == "." || arg == ".."
	switch {
	case arg == "":
		return usagef("a side of diff is a revision or a folder, and not empty")
	case isDir && !named && source.HasRevision(g.dir, arg):
		return usagef("%s is both a folder and a revision: write ./%s for the folder, or refs/heads/%s "+
			"for the branch", arg, arg, arg)
	case isDir:
		*s = compiler.Side{Output: path}
	case isPath(arg):
		return usagef("%s is no folder; kalypso build --to DIR writes one", path)
	case strings.Contains(arg, ".."): // which git allows in no name
		return usagef("%s is a range: write the two sides apart, as in kalypso diff v1.4.0 v1.5.0", arg)
	default:
		*s = compiler.Side{Revision: arg}
	}
	return nil
}

// isPath reports whether an argument can only be a path, because no revision begins or ends like
// that.
func isPath(arg string) bool {
	slashed := "/" + filepath.ToSlash(arg) + "/"
	return filepath.IsAbs(arg) || strings.HasPrefix(slashed, "/./") ||
		strings.Contains(slashed, "/../") || strings.HasSuffix(slashed, "//")
}

// readAgainst reads the value of --against. The output is empty if the value is "".
func (g inspector) readAgainst(arg string) (compiler.Output, error) {
	if arg == "" {
		return compiler.Output{}, nil
	}
	if info, err := os.Stat(g.path(arg)); err == nil && info.IsDir() {
		return compiler.Output{Dir: g.path(arg)}, nil
	}
	repository, branch, found := strings.Cut(arg, ":")
	if !found || repository == "" || branch == "" {
		return compiler.Output{},
			usagef("--against %s is no folder; write a branch as REPOSITORY:BRANCH", arg)
	}
	return compiler.Output{Git: g.path(repository), Branch: branch}, nil
}

// diff compares two sides and prints the change on clusters.
func (g inspector) diff(cmd *cobra.Command, r compiler.Request, before, after compiler.Side,
	against compiler.Output, o *diffOptions) error {
	stop := g.showProgress(cmd.Context(), &r)
	d, err := compiler.Compare(cmd.Context(), r, before, after, against)
	stop()
	if err != nil {
		return err
	}
	if err := g.reportDifference(d); err != nil {
		return err
	}
	verdicts := changeGates(cmd.Context(), r, d)
	if g.diagnostics == "text" {
		for _, v := range verdicts {
			fmt.Fprintf(g.err, "promotion to %s: %s %s: %s\n", v.Environment,
				strings.TrimSpace(v.Gate+" "+v.Name), v.State, terminal.Line(v.Reason))
		}
	}
	routes := ringRoutes(d)
	if g.diagnostics == "text" {
		for i := range routes {
			fmt.Fprintf(g.err, "promotion to %s: %s\n", routes[i].Environment, &routes[i])
		}
	}
	switch o.output {
	case "table", "wide":
		var names []string // in the order of promotion, which two outputs do not have
		if b := cmp.Or(d.After, d.Before); b != nil {
			for _, e := range query.InOrder(b) {
				names = append(names, e.Name)
			}
		}
		err = compare.WriteText(g.out, d.Report, compare.TextOptions{Stat: o.stat,
			Wide: o.output == "wide", All: o.all, Color: emphasis(g.out) != nil, Environments: names})
	case "ndjson":
		err = compare.WriteLines(g.out, d.Report)
	default:
		err = g.print(o.output, struct {
			*compare.Report
			Gates  []changeVerdict `json:"gates,omitempty"`
			Routes []ringRoute     `json:"rings,omitempty"`
		}{d.Report, verdicts, routes}, nil)
	}
	if err != nil {
		return err
	}
	switch {
	case len(d.Report.Counts) == 0 && before.Output+after.Output != "" && len(d.Diagnostics()) == 0:
		return usagef("nothing was compared: a folder is compared by the environments that a build " +
			"wrote to it, and there is none that the other side has; kalypso compare ENVIRONMENT " +
			"ENVIRONMENT compares two environments")
	case d.After != nil && d.After.Failed(), d.After == nil && d.Before != nil && d.Before.Failed():
		return errPlatform
	case o.exitCode && !d.Report.Empty():
		return errDifference
	}
	return nil
}

// changeVerdict is a gate's verdict about the whole change of an environment's promotion.
type changeVerdict struct {
	Environment string `json:"environment"`
	gate.Verdict
}

// changeGates evaluates the gates that need only the change: the budgets and policies of each
// environment. It leaves out the gates of rings, since a ring gets a part of the change.
func changeGates(ctx context.Context, r compiler.Request,
	d *compiler.Difference) (out []changeVerdict) {
	if d.After == nil {
		return nil
	}
	satisfies := subject.Platform(r).Satisfies
	for _, e := range d.After.Environments {
		i := slices.IndexFunc(d.After.Declarations,
			func(of model.Declaration) bool { return of.Name == e.Name })
		if i < 0 || e.Model == nil {
			continue
		}
		gates := d.After.Declarations[i].Promotion.Gates
		if gates = (model.Gates{Budget: gates.Budget, Policy: gates.Policy}); gates.Budget == nil &&
			gates.Policy == nil {
			continue
		}
		change := &gate.Change{Environment: e.Name, Removals: e.Removals}
		change.Set(d.Report.In(e.Name))
		policy := gate.Policy{Environment: e.Name, Gates: []model.Gates{gates}, AllowErrors: true,
			AllowKept: true}
		for _, v := range gate.Planned(ctx, policy,
			gate.ChangeFacts{Change: change, Satisfies: satisfies}, gate.Skip{}) {
			if v.Kind().Cause == gate.Candidate && v.Gate != "removals" {
				out = append(out, changeVerdict{e.Name, v})
			}
		}
	}
	return out
}

// ringRoute is the way of a change through the rings of an environment.
type ringRoute struct {
	Environment string     `json:"environment"`
	Rings       []ringStop `json:"rings"` // the rings that change, in the order of the platform
	// Soak is the shortest time until the last ring gets the change, in seconds.
	Soak float64 `json:"soakSeconds"`
	// OwnAtOnce is true if changes of only the environment's own files do not soak.
	OwnAtOnce bool `json:"ownAtOnce,omitempty"`
	// ClustersAtOnce is true if own files that only add clusters to a ring do not soak.
	ClustersAtOnce bool `json:"clustersAtOnce,omitempty"`
}

// ringStop is a ring, and the time that a change soaks in the rings before it.
type ringStop struct {
	Name  string   `json:"name"`
	After []string `json:"after,omitempty"`
	Soak  float64  `json:"soakSeconds,omitempty"`
}

// String describes the route for people.
func (r *ringRoute) String() string {
	var parts []string
	for _, ring := range r.Rings {
		text := "ring " + ring.Name
		if len(ring.After) > 0 {
			text += " after " + strings.Join(ring.After, " and ")
		}
		if ring.Soak > 0 {
			text += " for " + gate.Span(seconds(ring.Soak))
		}
		parts = append(parts, text)
	}
	text := strings.Join(parts, ", then ")
	if r.Soak > 0 {
		text += "; it takes at least " + gate.Span(seconds(r.Soak))
	}
	if r.OwnAtOnce && r.Soak > 0 {
		text += ", except for changes of its own files alone"
	}
	if r.ClustersAtOnce && r.Soak > 0 {
		text += ", except for own files that only add clusters"
	}
	return text
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// ringRoutes returns the way of the change through the rings of each environment that it changes.
func ringRoutes(d *compiler.Difference) (out []ringRoute) {
	if d.After == nil {
		return nil
	}
	for _, e := range d.After.Environments {
		i := slices.IndexFunc(d.After.Declarations,
			func(of model.Declaration) bool { return of.Name == e.Name })
		if i < 0 || e.Model == nil || d.Report.In(e.Name).Total == (compare.Total{}) {
			continue
		}
		p := d.After.Declarations[i].Promotion
		if e.Model.Rings != nil { // its own files have others
			p.Rings = e.Model.Rings
		}
		changed := map[string]bool{} // rings
		in := d.Report.In(e.Name)
		for _, entries := range [][]compare.Entry{in.Removed, in.Added, in.Changed} {
			for i := range entries {
				changed[e.Ring(entries[i].ClusterType)] = true
			}
		}
		route := ringRoute{Environment: e.Name, OwnAtOnce: p.OwnChanges.AtOnce,
			ClustersAtOnce: p.OwnChanges.Clusters}
		soaked := map[string]float64{} // until a ring gets the change
		for range p.Rings {            // in any order of the rings, it is known after as many rounds
			for i := range p.Rings {
				ring, before := &p.Rings[i], 0.0
				for _, name := range ring.After {
					before = max(before, soaked[name])
				}
				if soaked[ring.Name] = before + p.SoakOf(ring).Seconds(); changed[ring.Name] {
					route.Soak = max(route.Soak, soaked[ring.Name])
				}
			}
		}
		for i := range p.Rings {
			if changed[p.Rings[i].Name] {
				route.Rings = append(route.Rings,
					ringStop{p.Rings[i].Name, p.Rings[i].After, p.SoakOf(&p.Rings[i]).Seconds()})
			}
		}
		if len(p.Rings) > 1 && len(route.Rings) > 0 {
			out = append(out, route)
		}
	}
	return out
}

// reportDifference prints the errors, and the names of everything that was not compared because
// of them.
func (g *platform) reportDifference(d *compiler.Difference) error {
	if err := g.report(g.err, d.Diagnostics()); err != nil {
		return err
	}
	const named = 3
	if n := len(d.Report.LeftOut); n > 0 && g.diagnostics == "text" {
		text := strings.Join(d.Report.LeftOut[:min(n, named)], ", ")
		if n > named {
			text += fmt.Sprintf(" and %d more", n-named)
		}
		fmt.Fprintf(g.err, "kalypso: not compared, because of errors on a side: %s\n", text)
	}
	return nil
}
