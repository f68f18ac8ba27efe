package main

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/query"
)

// completeFlag completes a flag of a command.
func completeFlag(cmd *cobra.Command, flag string, with cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, with); err != nil {
		panic(err) // there is no such flag, or it is completed already
	}
}

// values completes the values that a flag takes.
func values(all ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(all, cobra.ShellCompDirectiveNoFileComp)
}

// environmentArgs completes the names of environments.
func environmentArgs(g *global) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, _ string) (names []string, _ cobra.ShellCompDirective) {
		g.progress = progressNone // the shell is where it would be
		err := g.compile(cmd.Context(), nil, func(b *compiler.Build) error {
			for _, s := range b.Declarations {
				if !slices.Contains(given, s.Name) {
					names = append(names, s.Name)
				}
			}
			return nil
		})
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// assignmentArgs completes assignments, and then the keys of their values.
func assignmentArgs(g *global) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, _ string) (out []string, _ cobra.ShellCompDirective) {
		g.progress = progressNone
		if len(given) > 1 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		err := g.compile(cmd.Context(), nil, func(b *compiler.Build) error {
			if len(given) == 0 {
				for _, a := range query.Assignments(b) {
					out = append(out, a.Environment+"/"+a.ClusterType+"/"+a.DeploymentTarget)
				}
				return nil
			}
			environment, clusterType, target, ok := query.Parse(given[0])
			if !ok {
				return nil
			}
			x, _, err := query.Explain(cmd.Context(), b, environment, clusterType, target, "")
			for _, v := range x.Values {
				out = append(out, v.Path)
			}
			return err
		})
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}
