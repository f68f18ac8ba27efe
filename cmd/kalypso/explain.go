package main

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/query"
	"github.com/kalypso-io/kalypso/internal/spelling"
)

func newExplain(g inspector) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain ENVIRONMENT/CLUSTER-TYPE/TARGET [KEY] | CODE",
		Short: "Say why something is, or is not, deployed somewhere, and where its values come from",
		Long: `explain tells of a deployment target, by its full name, on a cluster type: which
policies assign it, and every composed value with where it came from and what it
replaced; KEY limits that to one value or struct. Of a pair that is not assigned
it tells which policies come nearest, and what they ask for that is not there. A
name that the environment does not have is an error, with exit code 2. In the place
of the cluster type stands a class of one, or the name of a cluster.

With the code of a diagnostic it explains the code.`,
		Example: `  kalypso explain dev/large/shop-test
  kalypso explain dev/large/shop-test DATABASE_URL
  kalypso explain K2003`,
		Args: arity(1, 2,
			"explain needs ENVIRONMENT/CLUSTER-TYPE/TARGET, or a code such as K2003"),
		ValidArgsFunction: g.complete().explained,
	}
	cmd.AddCommand(newExplainWorkspace(g), newExplainCluster(g))
	output := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if e, isCode := diag.Explain(diag.Code(strings.ToUpper(args[0]))); isCode && len(args) == 1 {
			return g.explainCode(*output, e)
		}
		environment, clusterType, target, ok := query.Parse(args[0])
		if !ok {
			return usagef("%s is neither ENVIRONMENT/CLUSTER-TYPE/TARGET nor a code of a diagnostic; "+
				"kalypso describe shows a workload, cluster type or other entity", args[0])
		}
		key := ""
		if len(args) == 2 {
			key = args[1]
		}
		return g.explain(cmd, *output, environment, clusterType, target, key)
	}
	return cmd
}

func (g inspector) explainCode(output string, e diag.Explanation) error {
	type explanation struct {
		Code     diag.Code     `json:"code"`
		Severity diag.Severity `json:"severity"`
		Title    string        `json:"title"`
		Text     string        `json:"text"`
	}
	result := document[explanation]{apiVersion, "CodeExplanation", explanation(e)}
	return g.print(output, result, func(w *tabwriter.Writer) {
		fmt.Fprintf(w, "%s[%s]: %s\n\n%s\n", e.Severity, e.Code, e.Title, e.Text)
	})
}

func (g inspector) explain(cmd *cobra.Command, output, environment, clusterType, target,
	key string) error {
	return g.compile(cmd.Context(), []string{environment}, func(b *compiler.Build) error {
		x, ok, err := query.Explain(cmd.Context(), b, environment, clusterType, target, key)
		if err != nil {
			return err
		}
		if !ok {
			return g.reportErrors(b)
		}
		err = g.print(output, document[query.Explanation]{apiVersion, "Explanation", x},
			func(w *tabwriter.Writer) { explainText(w, &x, key) })
		if err != nil {
			return err
		}
		id := environment + "/" + clusterType + "/" + target
		if x.Assignment != nil {
			id = environment + "/" + x.Assignment.ClusterType + "/" + target
		}
		var ds []diag.Diagnostic // that concern the assignment
		for _, d := range b.Diagnostics {
			if slices.Contains(d.Assignments, id) {
				d.Assignments = []string{id}
				ds = append(ds, d)
			}
		}
		return g.report(g.err, ds)
	})
}

func explainText(w io.Writer, x *query.Explanation, key string) {
	if !x.Assigned {
		fmt.Fprint(w, x.Absence)
		for _, p := range x.Places {
			fmt.Fprintf(w, "  %s %s\t%s\n", p.Kind, p.Name, places(p.Positions))
		}
		return
	}
	a := x.Assignment
	if key == "" {
		fmt.Fprintf(w, "%s is assigned to %s in %s\n", x.DeploymentTarget, x.ClusterType, x.Environment)
		if x.Cluster != "" {
			fmt.Fprintf(w, "  cluster type\t%s\n", model.TypeOfFolder(a.ClusterType))
		}
		for _, p := range x.Policies {
			fmt.Fprintf(w, "  policy %s\t%s\n", p.Name, places(p.Positions))
		}
		fmt.Fprintf(w, "  workspace\t%s\n  namespace\t%s\n  reconciler\t%s\n", a.Workspace, a.Namespace,
			a.Reconciler)
		switch {
		case a.VersionFrom != "":
			fmt.Fprintf(w, "  version\t%s, derived from the %s\n", a.Version, a.VersionFrom)
		case a.Version != "":
			fmt.Fprintf(w, "  version\t%s\n", a.Version)
		}
		if a.Render {
			fmt.Fprintf(w, "  manifests\trendered by the build\n")
		}
		if a.Failed {
			fmt.Fprintf(w, "  state\tfailed: it keeps its last good output\n")
		}
		if len(x.Values) > 0 {
			fmt.Fprintln(w, "values")
		}
	}
	valuesText(w, x.Values)
	if len(x.ChartValues) > 0 {
		fmt.Fprintln(w, "chart values")
		valuesText(w, x.ChartValues)
	}
}

func valuesText(w io.Writer, values []query.Value) {
	for _, v := range values {
		value := v.Value.String()
		if v.Secret {
			value = "secret " + value
		}
		fmt.Fprintf(w, "  %s = %s\n", v.Path, value)
		for _, o := range v.From {
			fmt.Fprintf(w, "    %s\t%s\n", origin(o), places(o.Positions))
		}
		for _, o := range v.Replaced {
			fmt.Fprintf(w, "    replaced %s of %s\t%s\n", o.Text, origin(o), places(o.Positions))
		}
	}
}

func origin(o query.Origin) string {
	if o.Layer == nil {
		return fmt.Sprintf("%s of %s", o.Kind, o.Name)
	}
	return fmt.Sprintf("%s of config %s, layer %d", o.Kind, o.Name, *o.Layer)
}

// newExplainCluster is `explain cluster ENVIRONMENT/NAME`.
func newExplainCluster(g inspector) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster ENVIRONMENT/NAME",
		Short: "Say what runs on a cluster, with which values, and why",
		Long: `explain cluster tells of one cluster: its cluster type, the selectors of clusters
that hold for it, which are its class, what it pulls, and what is assigned to it, with
versions and values. kalypso explain ENVIRONMENT/NAME/TARGET says where a value comes
from.`,
		Example: `  kalypso explain cluster prod/store-17
  kalypso explain cluster prod/store-17 -o json`,
		Args: arity(1, 1, "explain cluster needs ENVIRONMENT/NAME"),
	}
	output := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		environment, name, ok := cutCluster(args[0])
		if !ok {
			return usagef("%s is not ENVIRONMENT/NAME", args[0])
		}
		return g.compile(cmd.Context(), []string{environment}, func(b *compiler.Build) error {
			x, ok, err := query.ExplainCluster(cmd.Context(), b, environment, name)
			if err != nil {
				return err
			}
			if !ok {
				return g.reportErrors(b)
			}
			return g.print(*output, document[query.ClusterExplanation]{apiVersion, "ClusterExplanation", x},
				func(w *tabwriter.Writer) { clusterText(w, &x) })
		})
	}
	return cmd
}

// cutCluster reads ENVIRONMENT/NAME.
func cutCluster(arg string) (environment, name string, ok bool) {
	environment, name, ok = strings.Cut(arg, "/")
	return environment, name, ok && environment != "" && name != "" && !strings.Contains(name, "/")
}

func clusterText(w *tabwriter.Writer, x *query.ClusterExplanation) {
	fmt.Fprintf(w, "%s is a cluster of type %s in %s\n", x.Name, x.ClusterType, x.Environment)
	if x.Description != "" {
		fmt.Fprintf(w, "  description\t%s\n", x.Description)
	}
	if x.Inventory != "" {
		fmt.Fprintf(w, "  inventory\t%s\n", x.Inventory)
	}
	fmt.Fprintf(w, "  written\t%s\n", places(x.Positions))
	if x.Address != "" {
		fmt.Fprintf(w, "  address\t%s\n", x.Address)
	}
	fmt.Fprintf(w, "  labels\t%s\n  pulls\t%s\n", query.LabelsText(x.Labels), x.Pulls)
	if x.Pulls != x.Folder {
		fmt.Fprintf(w, "  which names\t%s\n", x.Folder)
	}
	if len(x.Class) > 0 {
		fmt.Fprintln(w, "class")
	}
	for _, p := range x.Class {
		fmt.Fprintf(w, "  clusters of %s %s\t%s\n", p.Kind, p.Name, places(p.Positions))
	}
	for _, a := range x.Assignments {
		fmt.Fprintf(w, "%s", a.DeploymentTarget)
		if a.Version != "" {
			fmt.Fprintf(w, " %s", a.Version)
		}
		fmt.Fprintf(w, "\n  namespace\t%s\n  policies\t%s\n", a.Namespace, join(a.Policies))
		if a.Failed {
			fmt.Fprintf(w, "  state\tfailed: it keeps its last good output\n")
		}
		for _, v := range a.Values {
			value := v.Value.String()
			if v.Secret {
				value = "a secret"
			}
			fmt.Fprintf(w, "  %s\t%s\n", v.Path, value)
		}
	}
	if len(x.Assignments) == 0 {
		fmt.Fprintln(w, "nothing is assigned to it")
	}
}

// newExplainWorkspace is `explain workspace WORKSPACE [ENVIRONMENT...]`.
func newExplainWorkspace(g inspector) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "workspace WORKSPACE [ENVIRONMENT...]",
		Short: "Say what a workspace may bring, what is of it, and how near its quota it is",
		Long: `explain workspace tells of a workspace, in each environment: what it may bring, by
its declaration or by the profile that counts where there is none, which workloads are
of it and how often they are assigned, and how much of its quota they request.`,
		Example: `  kalypso explain workspace shop-team
  kalypso explain workspace shop-team prod -o json`,
		Args: arity(1, math.MaxInt, "explain workspace needs the name of a workspace"),
	}
	output := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return g.compile(cmd.Context(), args[1:], func(b *compiler.Build) error {
			items := slices.DeleteFunc(query.Workspaces(b),
				func(w query.Workspace) bool { return w.Name != args[0] })
			about, _ := query.AboutWorkspace(b, args[0])
			if len(items) == 0 {
				return g.unknownWorkspace(b, args[0], about)
			}
			err := g.print(*output, list[query.Workspace]{apiVersion, "WorkspaceList", items},
				func(w *tabwriter.Writer) {
					for _, i := range items {
						fmt.Fprintf(w, "%s in %s", i.Name, i.Environment)
						if i.Profile != "" {
							fmt.Fprintf(w, ", which is not declared: %s of kalypso.io/stdlib/workspace counts",
								i.Profile)
						}
						fmt.Fprintf(w, "\n  workloads\t%s\n", join(i.Workloads))
						if len(i.Registrations) > 0 {
							fmt.Fprintf(w, "  registrations\t%s\n", join(i.Registrations))
						}
						fmt.Fprintf(w, "  assignments\t%d, of which %d failed\n", i.Assignments, i.Failed)
						for _, q := range i.Quota {
							fmt.Fprintf(w, "  quota %s\t%s of %s\n", q.Resource, q.Requested, q.Quota)
						}
						fmt.Fprintln(w, "may bring")
						for _, b := range i.Bounds {
							allows := "nothing"
							if len(b.Allows) > 0 {
								allows = strings.Join(b.Allows, " ")
							}
							fmt.Fprintf(w, "  %s\t%s\n", b.Field, allows)
						}
					}
				})
			if err != nil {
				return err
			}
			return g.report(g.err, about)
		})
	}
	return cmd
}

// unknownWorkspace is the error of a workspace that is not declared, and that no workload is of.
// about are the diagnostics that concern it: errors may hide it.
func (g *platform) unknownWorkspace(b *compiler.Build, name string, about []diag.Diagnostic) error {
	var known []string
	for _, w := range query.Workspaces(b) {
		known = append(known, w.Name)
	}
	slices.Sort(known)
	hint := spelling.DidYouMean(name, slices.Compact(known))
	if diag.Errors(about) || hint == "" {
		return g.noSuch(b, "workspace", name, known)
	}
	return usagef("there is no workspace %s: none is declared, and no workload is of it; %s", name,
		hint)
}

// addCodeOwners adds --codeowners to `get workspaces`.
func addCodeOwners(g inspector, cmd *cobra.Command) {
	usual := cmd.RunE
	var owners bool
	cmd.Flags().BoolVar(&owners, "codeowners", false,
		"print CODEOWNERS: which file of the platform who reviews")
	cmd.RunE = func(cmd *cobra.Command, environments []string) error {
		if !owners {
			return usual(cmd, environments)
		}
		return g.compile(cmd.Context(), environments, func(b *compiler.Build) error {
			for _, line := range codeOwners(query.Workspaces(b)) {
				fmt.Fprintln(g.out, line)
			}
			return g.reportErrors(b)
		})
	}
}

// codeOwners returns the lines of CODEOWNERS: each file in which workloads or registrations of
// workspaces with owners are declared, with these.
func codeOwners(workspaces []query.Workspace) []string {
	of := map[string][]string{}
	for _, w := range workspaces {
		for _, file := range w.Files {
			of[file] = append(of[file], w.Owners...)
		}
	}
	var lines []string
	for _, file := range slices.Sorted(maps.Keys(of)) {
		owners := of[file]
		slices.Sort(owners)
		if owners = slices.Compact(owners); len(owners) > 0 {
			lines = append(lines, "/"+strings.ReplaceAll(file, " ", `\ `)+" "+strings.Join(owners, " "))
		}
	}
	return lines
}
