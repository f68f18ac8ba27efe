package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/query"
)

func newExplain(g *global) *cobra.Command {
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
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return usagef("explain needs ENVIRONMENT/CLUSTER-TYPE/TARGET, or a code such as K2003")
			}
			return nil
		},
		ValidArgsFunction: g.explained,
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

func (g *global) explainCode(output string, e diag.Explanation) error {
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

func (g *global) explain(cmd *cobra.Command, output, environment, clusterType, target, key string) error {
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
		return g.report(g.err, about(b.Diagnostics, id))
	})
}

// about returns the diagnostics that concern an assignment.
func about(ds []diag.Diagnostic, id string) []diag.Diagnostic {
	var out []diag.Diagnostic
	for _, d := range ds {
		for _, a := range d.Assignments {
			if a == id {
				d.Assignments = []string{id}
				out = append(out, d)
			}
		}
	}
	return out
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
		fmt.Fprintf(w, "  workspace\t%s\n  namespace\t%s\n  reconciler\t%s\n", a.Workspace, a.Namespace, a.Reconciler)
		if a.Version != "" {
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
