package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/query"
)

// newExplainCluster is `explain cluster ENVIRONMENT/NAME`.
func newExplainCluster(g *global) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster ENVIRONMENT/NAME",
		Short: "Say what runs on a cluster, with which values, and why",
		Long: `explain cluster tells of one cluster: its cluster type, the selectors of clusters
that hold for it, which are its class, what it pulls, and what is assigned to it, with
versions and values. kalypso explain ENVIRONMENT/NAME/TARGET says where a value comes
from.`,
		Example: `  kalypso explain cluster prod/store-17
  kalypso explain cluster prod/store-17 -o json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("explain cluster needs ENVIRONMENT/NAME")
			}
			return nil
		},
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
	fmt.Fprintf(w, "  labels\t%s\n  pulls\t%s\n", labels(x.Labels), x.Pulls)
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
