package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/query"
	"github.com/kalypso-io/kalypso/internal/regular"
	"github.com/kalypso-io/kalypso/view/graph"
)

// maxNodes is the largest number of nodes in a picture, unless a flag sets another one.
const maxNodes = 200

// graphOptions are the format and the destination of a graph.
type graphOptions struct {
	format, to string
	fold       int
	noFold     bool
}

// graphFormats are the formats by the endings of files, and the words of -o.
var graphFormats = map[string]string{".dot": "dot", ".gv": "dot", ".svg": "svg", ".mmd": "mermaid",
	".mermaid": "mermaid", ".json": "json"}

func newGraph(g inspector) *cobra.Command {
	o := &graphOptions{}
	cmd := &cobra.Command{
		Use:   "graph",
		Short: "Draw the platform: configuration, schedule, promotion and dependencies",
		Long: `graph draws the platform as a picture (svg), or writes the graph for Graphviz (dot),
Mermaid or programs (json). A picture has no scripts, follows the light or dark
theme of what shows it, and has what does not fit in tooltips. Without a kind it
draws the configuration of all environments.

The format is that of the ending of the file that --to names, or of -o, or else dot.
In a graph with more than 200 nodes those of one kind in one group become one, the
most first, until there are no more: --fold says how many there may be, and
--no-fold that there may be any number. JSON is folded only by --fold.

What is wrong with the platform is printed on stderr; the exit code is then 3, and
the graph has what can be known.`,
		Example: `  kalypso graph config prod --to config.svg
  kalypso graph config prod/large/shop-live --to path.svg    # what one assignment is configured by
  kalypso graph promotion -o mermaid
  kalypso graph schedule prod --no-fold -o dot`,
		Args: nothingCalled,
		RunE: func(cmd *cobra.Command,
			_ []string) error {
			return g.graph(cmd, o, nil, query.ConfigGraph)
		},
	}
	choiceFlag(cmd, cmd.PersistentFlags(), &o.format, "output", "o", "what to write", "dot", "svg",
		"mermaid", "json")
	cmd.PersistentFlags().StringVar(&o.to, "to", "", "write to `FILE`, by its ending: .svg, .dot, "+
		".gv, .mmd, .mermaid or .json")
	cmd.PersistentFlags().IntVar(&o.fold, "fold", maxNodes, "fold nodes of one kind where there "+
		"are more than this many nodes")
	cmd.PersistentFlags().BoolVar(&o.noFold, "no-fold", false, "fold nothing")
	for _, of := range []struct {
		name, short, long string
		graph             func(*compiler.Build, string) (*graph.Graph, error)
	}{
		{"config", "Draw which configs set values of which assignments", `config draws the configs of an environment by layer, contracts, and the assignments that each
of them matches, by cluster type. Of an assignment it highlights what it is configured by, in
the order of layers.`, query.ConfigGraph},
		{"schedule", "Draw which policies put what on which cluster types", `schedule draws scheduling policies, the deployment targets that they select, by workload, and
the cluster types that these are assigned to, by reconciler. Of an assignment it highlights
the policies that make it.`, query.ScheduleGraph},
		{"dependencies", "Draw what depends on what, and what comes from elsewhere", `dependencies draws the dependencies of deployment targets on each other, and what the platform
takes from elsewhere: registrations, sources of manifests and inventories, and what
kalypso.lock pins. Of an assignment it highlights all that its deployment target needs.`, query.DependencyGraph},
	} {
		cmd.AddCommand(&cobra.Command{
			Use: of.name + " [ENVIRONMENT|ENVIRONMENT/CLUSTER-TYPE/TARGET]", Short: of.short, Long: of.long,
			Args: oneGraph,
			RunE: func(cmd *cobra.Command, args []string) error { return g.graph(cmd, o, args, of.graph) },
		})
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "promotion [ENVIRONMENT]",
		Short: "Draw how commits come from environment to environment",
		Long: `promotion draws the environments in the order of promotion, with their rings, gates and
branches. Of an environment it highlights what a commit passes before it comes there.`,
		Args: oneGraph,
		RunE: func(cmd *cobra.Command, args []string) error { return g.promotionGraph(cmd, o, args) },
	})
	return cmd
}

// oneGraph refuses more than one argument.
func oneGraph(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usagef("graph %s draws one environment, or all without a name, and not %s", cmd.Name(),
			strings.Join(args, " and "))
	}
	return nil
}

// graph draws a graph of the compiled environments.
func (g inspector) graph(cmd *cobra.Command, o *graphOptions, args []string,
	of func(*compiler.Build, string) (*graph.Graph, error)) error {
	if err := g.checkGraph(cmd, o); err != nil {
		return err
	}
	assignment := ""
	if len(args) == 1 && strings.Contains(args[0], "/") {
		environment, _, _, ok := query.Parse(args[0])
		if !ok {
			return usagef("%s is neither an environment nor ENVIRONMENT/CLUSTER-TYPE/TARGET", args[0])
		}
		assignment, args = args[0], []string{environment}
	}
	return g.compile(cmd.Context(), args, func(b *compiler.Build) error {
		drawn, err := of(b, assignment)
		if err != nil {
			return err
		}
		if failed := g.reportErrors(b); failed != nil {
			return cmp.Or(g.drawPart(o, b.Environments, drawn), failed)
		}
		return g.draw(o, drawn)
	})
}

// drawPart draws the parts of environments without errors, and lists the environments that errors
// hide.
func (g inspector) drawPart(o *graphOptions, of []*engine.Environment, drawn *graph.Graph) error {
	var hidden []string
	for _, e := range of {
		switch {
		case e.Model == nil:
			hidden = append(hidden, e.Name)
		case e.Model.Incomplete:
			fmt.Fprintf(g.err,
				"kalypso: errors hide a part of %s: what of it is missing here may be there\n", e.Name)
		}
	}
	if len(hidden) > 0 {
		fmt.Fprintf(g.err, "kalypso: not drawn, because of errors: %s\n", strings.Join(hidden, ", "))
	}
	if len(hidden) == len(of) {
		return nil
	}
	return g.draw(o, drawn)
}

// promotionGraph draws the promotion that the base declares. It does not compile anything.
func (g inspector) promotionGraph(cmd *cobra.Command, o *graphOptions, args []string) error {
	if err := g.checkGraph(cmd, o); err != nil {
		return err
	}
	if len(args) == 1 && strings.Contains(args[0], "/") {
		environment, _, _ := strings.Cut(args[0], "/")
		return usagef(
			"graph promotion takes an environment, as in kalypso graph promotion %s, and not %s",
			cmp.Or(environment, "prod"), args[0])
	}
	return g.withCache(func(c *cache.Cache) error {
		all, ds, err := g.readDeclarations(cmd.Context(), c)
		if err != nil {
			return err
		}
		environment := ""
		if len(args) == 1 {
			environment = args[0]
			known := make([]string, len(all))
			for i := range all {
				known[i] = all[i].Name
			}
			if !slices.Contains(known, environment) && (len(all) > 0 || !diag.Errors(ds)) {
				return &compiler.UnknownEnvironmentError{Name: environment, Known: known}
			}
		}
		if err := g.report(g.err, blocking(ds)); err != nil {
			return err
		}
		if len(all) > 0 || !diag.Errors(ds) {
			err = g.draw(o, query.PromotionGraph(all, environment))
		}
		if err == nil && diag.Errors(ds) {
			return errPlatform
		}
		return err
	})
}

func (g *platform) readDeclarations(ctx context.Context,
	c *cache.Cache) ([]model.Declaration, []diag.Diagnostic, error) {
	r := g.request(nil, c)
	stop := g.showProgress(ctx, &r)
	defer stop()
	return compiler.Declarations(ctx, r)
}

// checkGraph checks the flags, before anything is compiled.
func (g inspector) checkGraph(cmd *cobra.Command, o *graphOptions) error {
	if o.to != "" {
		format := graphFormats[strings.ToLower(filepath.Ext(o.to))]
		switch {
		case !cmd.Flags().Changed("output") && format == "":
			return usagef("--to %s: the ending says no format; there are .svg, .dot, .gv, .mmd, .mermaid "+
				"and .json, or give -o", o.to)
		case cmd.Flags().Changed("output") && format != "" && format != o.format:
			return usagef("-o %s and --to %s: the ending is that of %s; leave out -o, or name another file",
				o.format, o.to, format)
		case !cmd.Flags().Changed("output"):
			o.format = format
		}
	}
	if o.noFold && cmd.Flags().Changed("fold") {
		return usagef("--fold and --no-fold: give one of them, as --no-fold folds nothing")
	}
	if o.fold < 1 {
		return usagef("--fold takes a number of nodes, at least 1; --no-fold folds nothing")
	}
	o.noFold = o.noFold || o.format == "json" && !cmd.Flags().Changed("fold")
	if o.format == "svg" && o.to == "" && sizeOf(g.out) != nil {
		return usagef("a picture is not for a terminal: write it to a file with --to %s.svg", cmd.Name())
	}
	return nil
}

// draw writes a graph.
func (g inspector) draw(o *graphOptions, drawn *graph.Graph) error {
	if !o.noFold {
		drawn.Fold(o.fold)
	}
	var text bytes.Buffer
	write := map[string]func(io.Writer, *graph.Graph) error{
		"svg": func(w io.Writer, drawn *graph.Graph) error { return graph.SVG(w, drawn, true) },
		"dot": graph.DOT, "mermaid": graph.Mermaid,
		"json": func(w io.Writer, drawn *graph.Graph) error {
			return writeJSON(w, document[*graph.Graph]{apiVersion, "Graph", drawn})
		},
	}[o.format]
	if err := write(&text, drawn); err != nil {
		return err
	}
	if o.to == "" {
		_, err := g.out.Write(text.Bytes())
		return err
	}
	return regular.Replace(g.path(o.to), text.Bytes(), 0o644)
}
