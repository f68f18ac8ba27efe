package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/compiler"
)

func newVet(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "vet [ENVIRONMENT...]",
		Short: "Say what is wrong with the platform",
		Long: `vet compiles the environments, or all, writes nothing, and prints everything
there is to say about them. The exit code is 3 if there are errors; warnings
alone leave it 0. 'kalypso explain CODE' tells more about a code.`,
		ValidArgsFunction: environmentArgs(g),
		RunE: func(cmd *cobra.Command, environments []string) error {
			return g.compile(cmd.Context(), environments, func(b *compiler.Build) error {
				if err := g.tell(g.out, b.Diagnostics); err != nil {
					return err
				}
				if b.Failed() {
					return errPlatform
				}
				if g.diagnostics == "text" && len(b.Diagnostics) == 0 {
					fmt.Fprintln(g.err, "nothing to say")
				}
				return nil
			})
		},
	}
}
