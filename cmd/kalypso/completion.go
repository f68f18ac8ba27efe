package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/query"
)

// environmentArgs completes the names of environments.
func environmentArgs(g *global) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
		var names []string
		b, err := compiler.Compile(cmd.Context(), compiler.Request{Dir: g.dir})
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		for _, s := range b.Stages {
			if !strings.Contains(" "+strings.Join(given, " ")+" ", " "+s.Name+" ") {
				names = append(names, s.Name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// assignmentArgs completes assignments, and then the keys of their values.
func assignmentArgs(g *global) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
		b, err := compiler.Compile(cmd.Context(), compiler.Request{Dir: g.dir})
		if err != nil || len(given) > 1 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var out []string
		if len(given) == 0 {
			for _, a := range query.Assignments(b) {
				out = append(out, a.Environment+"/"+a.ClusterType+"/"+a.DeploymentTarget)
			}
			return out, cobra.ShellCompDirectiveNoFileComp
		}
		if environment, clusterType, target, ok := query.Parse(given[0]); ok {
			x, _ := query.Explain(b, environment, clusterType, target, "")
			for _, v := range x.Values {
				out = append(out, v.Path)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}
