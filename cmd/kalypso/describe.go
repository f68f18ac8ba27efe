package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/query"
	"github.com/kalypso-io/kalypso/compiler/query/tables"
	"github.com/kalypso-io/kalypso/internal/spelling"
)

// description is everything known about an entity in one environment.
type description[T any] struct {
	Environment string `json:"environment"`
	Entity      T      `json:"entity"`
	query.Description
}

func newDescribe(g inspector) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "describe",
		Short: "Show all of one entity: its fields, where it is written, and its assignments",
		Long: `describe shows an entity in each environment, in the order of promotion: what get
knows of it, where it is written, the assignments that it concerns, and what is wrong
with it. A name is NAME, or ENVIRONMENT/NAME for the entity in that environment alone. An
assignment is shown by explain.`,
		Example: `  kalypso describe workload shop
  kalypso describe cluster prod/store-17
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

// describe returns the command `describe NAME`. It returns nil if the rows of the listing are not
// entities.
func (l *listing[T]) describe(g inspector) *cobra.Command {
	if l.Name == tables.Assignments().Name {
		return nil
	}
	one := l.singular()
	cmd := &cobra.Command{
		Use:     one + " NAME|ENVIRONMENT/NAME [ENVIRONMENT...]",
		Aliases: []string{l.name(), l.short},
		Short:   "Show all of one " + strings.ReplaceAll(one, "-", " "),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("describe %s needs a name; see kalypso get %s -o name", one, l.name())
			}
			return nil
		},
		ValidArgsFunction: arguments([]string{"NAME", "ENVIRONMENT..."}, map[string]cobra.CompletionFunc{
			"NAME": nameValues(g.complete(), func(b *compiler.Build) []T {
				items, _ := l.Items(context.Background(), b) // the shell has no place for an error
				return items
			}, func(item T) string { return l.facets(item).id }),
			"ENVIRONMENT": g.complete().environmentNames,
		}),
	}
	output := new(string)
	choiceFlag(cmd, cmd.Flags(), output, "output", "o", "how to print the result", "text", "json",
		"yaml")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return g.compile(cmd.Context(), args[1:], func(b *compiler.Build) error {
			var known []string
			items := []description[T]{}
			all, err := l.Items(cmd.Context(), b)
			if err != nil {
				return err
			}
			for _, item := range all {
				id, environment := l.facets(item).id, l.facets(item).environment
				known = append(known, id)
				if strings.Contains(args[0], "/") && args[0] != id { // the user names it with its environment
					known = append(known, environment+"/"+id)
				}
				if args[0] == id || args[0] == environment+"/"+id {
					items = append(items,
						description[T]{environment, item, query.Describe(b, environment, l.entity(item))})
				}
			}
			if len(items) == 0 {
				return g.noSuch(b, strings.ReplaceAll(one, "-", " "), args[0], known)
			}
			if *output != "text" {
				if err := g.printDocument(*output,
					list[description[T]]{apiVersion, "DescriptionList", items}); err != nil {
					return err
				}
				return g.reportErrors(b)
			}
			for i, d := range items {
				if i > 0 {
					fmt.Fprintln(g.out)
				}
				if err := d.print(g.out, one+" "+l.facets(d.Entity).id); err != nil {
					return err
				}
			}
			return g.reportErrors(b)
		})
	}
	return cmd
}

// noSuch returns the error for a name that does not exist. An entity with errors may lack its
// name, so noSuch reports the errors of the platform first.
func (g *platform) noSuch(b *compiler.Build, what, name string, known []string) error {
	message := fmt.Sprintf("there is no %s %s", what, name)
	slices.Sort(known)
	if hint := spelling.DidYouMean(name, slices.Compact(known)); hint != "" {
		message += "; " + hint
	}
	if err := g.reportErrors(b); err != nil {
		fmt.Fprintf(g.err, "kalypso: %s\n", message)
		return err
	}
	return usagef("%s", message)
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
	var assignments []string // without classes, which -o json has
	for _, id := range d.Assignments {
		if id = model.WithoutClass(id); !slices.Contains(assignments, id) {
			assignments = append(assignments, id)
		}
	}
	section("assignments", assignments)
	section("problems", d.Diagnostics)
	return nil
}
