package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/query"
)

func newGet(g *global) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get",
		Short: "List what the platform has",
		Long: `get lists entities of the platform, and the assignments that the scheduling
policies make of them. What is wrong with the platform is told on stderr; the
exit code is then 3, and the list holds what can be known.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("there is nothing called %s to get; see kalypso get --help", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		getCommand(g, "environments", "EnvironmentList", "the environments", query.Environments, func(w *tabwriter.Writer, items []query.Environment) {
			row(w, "ENVIRONMENT", "AFTER", "CLUSTER TYPES", "ASSIGNMENTS", "DESCRIPTION")
			for _, e := range items {
				row(w, e.Name, join(e.After), e.ClusterTypes, e.Assignments, e.Description)
			}
		}),
		getCommand(g, "cluster-types", "ClusterTypeList", "the cluster types", query.ClusterTypes, func(w *tabwriter.Writer, items []query.ClusterType) {
			row(w, "ENVIRONMENT", "CLUSTER TYPE", "RECONCILER", "NAMESPACE SERVICE", "CONFIG", "CLUSTERS", "ASSIGNMENTS", "LABELS")
			for _, c := range items {
				row(w, c.Environment, c.Name, c.Reconciler, c.NamespaceService, c.ConfigFormat, len(c.Clusters), c.Assignments, labels(c.Labels))
			}
		}),
		getCommand(g, "clusters", "ClusterList", "the clusters", query.Clusters, func(w *tabwriter.Writer, items []query.Cluster) {
			row(w, "ENVIRONMENT", "CLUSTER", "CLUSTER TYPE", "ADDRESS", "LABELS")
			for _, c := range items {
				row(w, c.Environment, c.Name, c.ClusterType, c.Address, labels(c.Labels))
			}
		}),
		getCommand(g, "workloads", "WorkloadList", "the workloads with deployment targets", query.Workloads, func(w *tabwriter.Writer, items []query.Workload) {
			row(w, "ENVIRONMENT", "WORKLOAD", "WORKSPACE", "APPLICATION", "DEPLOYMENT TARGETS")
			for _, i := range items {
				row(w, i.Environment, i.Name, i.Workspace, i.Application, join(i.DeploymentTargets))
			}
		}),
		getCommand(g, "deployment-targets", "DeploymentTargetList", "the deployment targets", query.DeploymentTargets, func(w *tabwriter.Writer, items []query.DeploymentTarget) {
			row(w, "ENVIRONMENT", "DEPLOYMENT TARGET", "WORKSPACE", "VERSION", "CLUSTER TYPES", "LABELS")
			for _, t := range items {
				row(w, t.Environment, t.DeploymentTarget, t.Workspace, t.Version, join(t.ClusterTypes), labels(t.Labels))
			}
		}),
		getCommand(g, "assignments", "AssignmentList", "what is assigned where", query.Assignments, func(w *tabwriter.Writer, items []query.Assignment) {
			row(w, "ENVIRONMENT", "CLUSTER TYPE", "DEPLOYMENT TARGET", "WORKSPACE", "VERSION", "NAMESPACE", "POLICIES", "STATE")
			for _, a := range items {
				state := "ok"
				if a.Failed {
					state = "failed"
				}
				row(w, a.Environment, a.ClusterType, a.DeploymentTarget, a.Workspace, a.Version, a.Namespace, join(a.Policies), state)
			}
		}),
		newGetWorkspaces(g),
		getCommand(g, "configs", "ConfigList", "the configs", query.Configs, func(w *tabwriter.Writer, items []query.Config) {
			row(w, "ENVIRONMENT", "CONFIG", "LAYER", "MATCH", "ASSIGNMENTS", "KEYS")
			for _, c := range items {
				row(w, c.Environment, c.Name, c.Layer, c.Match, c.Assignments, join(c.Keys))
			}
		}),
	)
	return cmd
}

// getCommand is `get NAME [ENVIRONMENT...]`.
func getCommand[T any](g *global, name, kind, what string, of func(*compiler.Build) []T, table func(*tabwriter.Writer, []T)) *cobra.Command {
	cmd := &cobra.Command{
		Use:               name + " [ENVIRONMENT...]",
		Aliases:           []string{strings.TrimSuffix(name, "s")},
		Short:             "List " + what,
		ValidArgsFunction: environmentArgs(g),
	}
	output := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, environments []string) error {
		return g.compile(cmd.Context(), environments, func(b *compiler.Build) error {
			items := of(b)
			if err := g.print(*output, list[T]{apiVersion, kind, items}, func(w *tabwriter.Writer) { table(w, items) }); err != nil {
				return err
			}
			return g.reportErrors(b)
		})
	}
	return cmd
}

func labels(of map[string]string) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(of)) {
		out = append(out, fmt.Sprintf("%s=%s", k, of[k]))
	}
	return join(out)
}
