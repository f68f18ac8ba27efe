package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/query"
)

// description is all that is known of an entity in one environment.
type description[T any] struct {
	Environment string `json:"environment"`
	Entity      T      `json:"entity"`
	// Positions are where it is written.
	Positions []model.Position `json:"positions"`
	// Assignments are those that it concerns, as for explain.
	Assignments []string `json:"assignments"`
	// Diagnostics are those about it, as a line each.
	Diagnostics []string `json:"diagnostics"`
}

func newDescribe(g *global) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "describe",
		Short: "Show all of one entity: its fields, where it is written, and its assignments",
		Long: `describe shows an entity in each environment, in the order of promotion: what get
knows of it, where it is written, the assignments that it concerns, and what is wrong
with it. An assignment is shown by explain.`,
		Example: `  kalypso describe workload shop
  kalypso describe ct large prod -o json`,
		Args: nothingCalled,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, l := range listings() {
		if c := l.describe(g); c != nil {
			cmd.AddCommand(c)
		}
	}
	return cmd
}

// describe returns `describe NAME`; nil for what is no entity.
func (l listing[T]) describe(g *global) *cobra.Command {
	if l.ref == nil {
		return nil
	}
	one := singular(l.name)
	cmd := &cobra.Command{
		Use:     one + " NAME [ENVIRONMENT...]",
		Aliases: []string{l.name, l.short},
		Short:   "Show all of one " + strings.ReplaceAll(one, "-", " "),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("describe %s needs a name; see kalypso get %s -o name", one, l.name)
			}
			return nil
		},
		ValidArgsFunction: func(cmd *cobra.Command, given []string, prefix string) ([]string, cobra.ShellCompDirective) {
			if len(given) > 0 {
				return environmentArgs(g)(cmd, given, prefix)
			}
			return nameValues(g, l.of, func(item T) string { return l.facets(item).id })(cmd, given, prefix)
		},
	}
	output := new(string)
	choiceFlag(cmd, cmd.Flags(), output, "output", "o", "how to print the result", "text", "json", "yaml")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return g.compile(cmd.Context(), args[1:], func(b *compiler.Build) error {
			var known []string
			items := []description[T]{}
			for _, item := range l.of(b) {
				id := l.facets(item).id
				known = append(known, id)
				if id == args[0] {
					items = append(items, l.description(b, item))
				}
			}
			if len(items) == 0 {
				if err := g.reportErrors(b); err != nil {
					return err // it may be one that cannot be read
				}
				slices.Sort(known)
				known = slices.Compact(known)
				return usagef("there is no %s %s; %s", strings.ReplaceAll(one, "-", " "), args[0], orList(diag.DidYouMean(args[0], known), known))
			}
			if *output != "text" {
				if err := g.print(*output, list[description[T]]{apiVersion, "DescriptionList", items}, nil); err != nil {
					return err
				}
				return g.reportErrors(b)
			}
			for i, d := range items {
				if i > 0 {
					fmt.Fprintln(g.out)
				}
				if err := d.print(g.out, one+" "+args[0]); err != nil {
					return err
				}
			}
			return g.reportErrors(b)
		})
	}
	return cmd
}

// description describes an item.
func (l listing[T]) description(b *compiler.Build, item T) description[T] {
	environment, ref := l.ref(item)
	d := description[T]{Environment: environment, Entity: item, Positions: query.Positions(b, environment, ref), Assignments: []string{}, Diagnostics: []string{}}
	for _, a := range query.Assignments(b) {
		if l.concerns != nil && l.concerns(item, a) && a.Environment == environment {
			d.Assignments = append(d.Assignments, assignmentFacets(a).id)
		}
	}
	for _, about := range b.Diagnostics {
		inside := about.Path == ref.String() || strings.HasPrefix(about.Path, ref.String()+".")
		if inside && (about.Environment == "" || about.Environment == environment) {
			d.Diagnostics = append(d.Diagnostics, fmt.Sprintf("%s[%s]: %s", about.Severity, about.Code, about.Message))
		}
	}
	return d
}

// print prints the description as text.
func (d description[T]) print(w io.Writer, what string) error {
	fmt.Fprintf(w, "%s in %s\n", what, d.Environment)
	fields, err := toYAML(d.Entity)
	if err != nil {
		return err
	}
	for _, line := range strings.Split(strings.TrimSuffix(string(fields), "\n"), "\n") {
		fmt.Fprintf(w, "  %s\n", line)
	}
	section := func(title string, lines []string) {
		if len(lines) > 0 {
			fmt.Fprintf(w, "%s\n  %s\n", title, strings.Join(lines, "\n  "))
		}
	}
	var written []string
	for _, p := range d.Positions {
		written = append(written, place(p))
	}
	section("written at", written)
	section("assignments", d.Assignments)
	section("problems", d.Diagnostics)
	return nil
}
