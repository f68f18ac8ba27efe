package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/query"
	"github.com/kalypso-io/kalypso/promotion"
)

func newVet(g *global) *cobra.Command {
	var promoted bool
	var workspace string
	cmd := &cobra.Command{
		Use:   "vet [ENVIRONMENT...]",
		Short: "Say what is wrong with the platform",
		Long: `vet compiles the environments, or all, writes nothing, and prints everything
there is to say about them. The exit code is 3 if there are errors; warnings
alone leave it 0. 'kalypso explain CODE' tells more about a code.

With --promoted vet compiles the environments' own files as they are in the commit
that is checked out with the base commits that run there now, by the records of their
GitOps trees: what a change of these files is going to meet. That is for pull requests.

With --workspace vet prints what concerns the workloads, registrations and assignments
of one workspace, and errors that hide them. That is for pull requests of a team.`,
		ValidArgsFunction: environmentArgs(g),
		RunE: func(cmd *cobra.Command, environments []string) error {
			if promoted {
				return g.vetPromoted(cmd, environments)
			}
			return g.compile(cmd.Context(), environments, func(b *compiler.Build) error {
				if workspace == "" {
					return g.tellAll(b.Diagnostics)
				}
				about, found := query.AboutWorkspace(b, workspace)
				if !found && !diag.Errors(about) {
					return unknownWorkspace(b, workspace)
				}
				return g.tellAll(about)
			})
		},
	}
	cmd.Flags().StringVar(&workspace, "workspace", "", "print what concerns this workspace alone")
	cmd.Flags().BoolVar(&promoted, "promoted", false, "compile the environments' own files with the base commits that run there")
	cmd.MarkFlagsMutuallyExclusive("promoted", "workspace")
	return cmd
}

// tellAll prints what there is to say about a platform.
func (g *global) tellAll(ds []diag.Diagnostic) error {
	if err := g.report(g.out, ds); err != nil {
		return err
	}
	if diag.Errors(ds) {
		return errPlatform
	}
	if g.diagnostics == "text" && len(ds) == 0 {
		fmt.Fprintln(g.err, "nothing to say")
	}
	return nil
}

// vetPromoted looks at the commit that is checked out.
func (g *global) vetPromoted(cmd *cobra.Command, environments []string) error {
	o := &promotionOptions{environments: environments, local: true, forge: "none"}
	var said []diag.Diagnostic
	var leftOut []string
	err := g.withSession(cmd, o, func(ctx context.Context, s *promotion.Session) (err error) {
		said, leftOut, err = s.Vet(ctx)
		return err
	})
	if err != nil {
		return err
	}
	if len(leftOut) > 0 {
		fmt.Fprintf(g.err, "nothing is promoted yet to %s\n", strings.Join(leftOut, ", "))
	}
	return g.tellAll(said)
}
