package main

import (
	"fmt"
	"maps"
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

// newExplainWorkspace is `explain workspace WORKSPACE [ENVIRONMENT...]`.
func newExplainWorkspace(g *global) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "workspace WORKSPACE [ENVIRONMENT...]",
		Short: "Say what a workspace may bring, what is of it, and how near its quota it is",
		Long: `explain workspace tells of a workspace, in each environment: what it may bring, by
its declaration or by the profile that counts where there is none, which workloads are
of it and how often they are assigned, and how much of its quota they request.`,
		Example: `  kalypso explain workspace shop-team
  kalypso explain workspace shop-team prod -o json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("explain workspace needs the name of a workspace")
			}
			return nil
		},
	}
	output := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return g.compile(cmd.Context(), args[1:], func(b *compiler.Build) error {
			items := slices.DeleteFunc(query.Workspaces(b), func(w query.Workspace) bool { return w.Name != args[0] })
			about, _ := query.AboutWorkspace(b, args[0])
			if len(items) == 0 {
				return g.unknownWorkspace(b, args[0], about)
			}
			err := g.print(*output, list[query.Workspace]{apiVersion, "WorkspaceList", items}, func(w *tabwriter.Writer) {
				for _, i := range items {
					workspaceText(w, i)
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

func workspaceText(w *tabwriter.Writer, i query.Workspace) {
	fmt.Fprintf(w, "%s in %s", i.Name, i.Environment)
	if i.Profile != "" {
		fmt.Fprintf(w, ", which is not declared: %s of kalypso.io/stdlib/workspace counts", i.Profile)
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

// unknownWorkspace is the error of a workspace that is not declared, and that no workload is of.
// about are the diagnostics that concern it: errors may hide it.
func (g *global) unknownWorkspace(b *compiler.Build, name string, about []diag.Diagnostic) error {
	var known []string
	for _, w := range query.Workspaces(b) {
		known = append(known, w.Name)
	}
	slices.Sort(known)
	hint := spelling.DidYouMean(name, slices.Compact(known))
	if diag.Errors(about) || hint == "" {
		return g.noSuch(b, "workspace", name, known)
	}
	return usagef("there is no workspace %s: none is declared, and no workload is of it; %s", name, hint)
}

// workspaceListing lists the workspaces.
var workspaceListing = listing[query.Workspace]{
	name: "workspaces", short: "ws", kind: "WorkspaceList", what: "the workspaces", of: query.Workspaces,
	header: []string{"ENVIRONMENT", "WORKSPACE", "PROFILE", "WORKLOADS", "REGISTRATIONS",
		"ASSIGNMENTS", "FAILED", "OWNERS", "DESCRIPTION"}, wide: 1,
	cells: func(w query.Workspace) []any {
		return []any{w.Environment, w.Name, w.Profile, len(w.Workloads), join(w.Registrations),
			w.Assignments, w.Failed, join(w.Owners), w.Description}
	},
	facets: func(w query.Workspace) facets { return facets{id: w.Name} },
	ref: func(w query.Workspace) (string, model.Ref) {
		return w.Environment, model.Ref{Collection: "workspaces", Name: w.Name}
	},
	extend: addCodeOwners,
}

// addCodeOwners adds --codeowners to `get workspaces`.
func addCodeOwners(g *global, cmd *cobra.Command) {
	usual := cmd.RunE
	var owners bool
	cmd.Flags().BoolVar(&owners, "codeowners", false, "print CODEOWNERS: which file of the platform who reviews")
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
