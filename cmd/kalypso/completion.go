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

// complete completes with names of the platform.
func (g *global) complete(cmd *cobra.Command, names func(*compiler.Build) ([]string, error)) (out []string, _ cobra.ShellCompDirective) {
	g.progress = progressNone // the shell is where it would be
	err := g.compile(cmd.Context(), nil, func(b *compiler.Build) (err error) {
		out, err = names(b)
		return err
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// environmentArgs completes the names of environments.
func environmentArgs(g *global) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
		return g.complete(cmd, func(b *compiler.Build) (names []string, _ error) {
			for _, s := range b.Declarations {
				if !slices.Contains(given, s.Name) {
					names = append(names, s.Name)
				}
			}
			return names, nil
		})
	}
}

// nameValues completes the names of items of the platform.
func nameValues[T any](g *global, of func(*compiler.Build) []T, name func(T) string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return g.complete(cmd, func(b *compiler.Build) (names []string, _ error) {
			for _, item := range of(b) {
				names = append(names, name(item))
			}
			slices.Sort(names)
			return slices.Compact(names), nil
		})
	}
}

// assignmentArgs completes assignments, and then the keys of their values.
func assignmentArgs(g *global) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(given) > 1 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return g.complete(cmd, func(b *compiler.Build) (out []string, _ error) {
			if len(given) == 0 {
				for _, a := range query.Assignments(b) {
					out = append(out, assignmentFacets(a).id)
				}
				return out, nil
			}
			environment, clusterType, target, ok := query.Parse(given[0])
			if !ok {
				return nil, nil
			}
			x, _, err := query.Explain(cmd.Context(), b, environment, clusterType, target, "")
			for _, v := range x.Values {
				out = append(out, v.Path)
			}
			return out, err
		})
	}
}

// clusterArgs completes one cluster, as ENVIRONMENT/NAME.
func clusterArgs(g *global) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(given) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return g.complete(cmd, func(b *compiler.Build) (out []string, _ error) {
			for _, c := range query.Clusters(b) {
				out = append(out, c.Environment+"/"+c.Name)
			}
			return out, nil
		})
	}
}
