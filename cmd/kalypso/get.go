package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/spelling"
)

func newGet(g *global) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get",
		Short: "List what the platform has",
		Long: `get lists entities of the platform, and the assignments that the scheduling
policies make of them, environment by environment in the order of promotion. What is
wrong with the platform is printed on stderr; the exit code is then 3, and the list
holds what can be known.`,
		Example: `  kalypso get assignments --workload shop -l region=west
  kalypso get assignments prod --state failed -o name
  kalypso get dt -o wide`,
		Args: nothingCalled,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, l := range listings() {
		cmd.AddCommand(l.command(g))
	}
	return cmd
}

// nothingCalled refuses arguments of a command that only has others below it.
func nothingCalled(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	hint := "kinds are: " + strings.Join(names, ", ")
	if near := spelling.Meant(args[0], names); near != "" {
		hint = "did you mean " + near + "?"
	}
	return usagef("unknown kind %q to %s; %s", args[0], cmd.Name(), hint)
}

// listing is `get NAME`: a list of items of one type.
type listing[T any] struct {
	name, short, kind, what string
	of                      func(*compiler.Build) []T
	// header are the titles of the table's columns, of which the last wide ones are only
	// shown by -o wide; cells are those of an item.
	header []string
	wide   int
	cells  func(T) []any
	// facets are what an item can be found by. Flags are added for those in filters.
	facets  func(T) facets
	filters []string
	// ref returns the environment of an item and the entity that it is; nil for what is
	// none.
	ref func(T) (environment string, ref model.Ref)
	// byCluster is the list where each item is there once for each of its clusters; nil
	// where there is none.
	byCluster *listing[T]
	// extend adds what the list alone has to its command; nil for nothing.
	extend func(*global, *cobra.Command)
}

// command returns the command.
func (l listing[T]) command(g *global) *cobra.Command {
	cmd := &cobra.Command{
		Use:     l.name + " [ENVIRONMENT...]",
		Aliases: []string{singular(l.name), l.short},
		Short:   "List " + l.what,
	}
	output := new(string)
	choiceFlag(cmd, cmd.Flags(), output, "output", "o", "how to print the result", "table", "wide", "name", "json", "yaml")
	filter := newFilter(cmd, l.filters)
	expand := new(string)
	if l.byCluster != nil {
		choiceFlag(cmd, cmd.Flags(), expand, "expand", "", "list each item once for each of its "+
			"clusters, or only once", "none", "clusters")
	}
	cmd.RunE = func(cmd *cobra.Command, environments []string) error {
		l := l
		if *expand == "clusters" || len(filter.clusters) > 0 {
			l = *l.byCluster
		}
		matches, err := filter.matcher()
		if err != nil {
			return err
		}
		return g.compile(cmd.Context(), append(environments, filter.environments...), func(b *compiler.Build) error {
			items := slices.DeleteFunc(l.of(b), func(item T) bool { return !matches(l.facets(item)) })
			if err := l.print(g, *output, items); err != nil {
				return err
			}
			if len(items) == 0 && !slices.Contains([]string{"json", "yaml"}, *output) {
				fmt.Fprintln(g.err, "kalypso: nothing to list"+filter.unknown(b))
			}
			return g.reportErrors(b)
		})
	}
	if l.extend != nil {
		l.extend(g, cmd)
	}
	return cmd
}

// print prints the items, of which each name is printed once.
func (l listing[T]) print(g *global, output string, items []T) error {
	switch output {
	case "name":
		printed := map[string]bool{}
		for _, item := range items {
			if name := l.facets(item).id; !printed[name] {
				printed[name] = true
				fmt.Fprintln(g.out, name)
			}
		}
		return nil
	case "table", "wide":
		n := len(l.header)
		if output == "table" {
			n -= l.wide
		}
		var rows [][]any
		printed := map[string]bool{} // classes of a cluster type may differ only in what -o wide shows
		for _, item := range items {
			cells := l.cells(item)[:n]
			if line := fmt.Sprintln(cells...); !printed[line] {
				printed[line] = true
				rows = append(rows, cells)
			}
		}
		return g.table(l.header[:n], rows)
	}
	return g.printDocument(output, list[T]{apiVersion, l.kind, items})
}

// singular returns the singular of the name of a list.
func singular(name string) string {
	if stem, is := strings.CutSuffix(name, "ies"); is {
		return stem + "y"
	}
	return strings.TrimSuffix(name, "s")
}

func labels(of map[string]string) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(of)) {
		out = append(out, fmt.Sprintf("%s=%s", k, of[k]))
	}
	return join(out)
}
