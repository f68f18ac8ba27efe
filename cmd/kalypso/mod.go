package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/internal/cuemodule"
)

func newMod(g *global) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mod",
		Short: "Manage the CUE module kalypso.io of the platform",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "vendor",
		Short: "Copy the schema and standard library into the platform",
		Long: `vendor writes the module kalypso.io below cue.mod/pkg of the platform and drops
its version from cue.mod/module.cue, so that the cue command and its language
server work where kalypso is not installed. Run it again after an update.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, _, err := source.Open(g.dir)
			if err != nil {
				return err
			}
			if p.Module == kalypso.ModulePath {
				return fmt.Errorf("%s is the repository of kalypso, which has the module already: name a "+
					"platform with -C, as examples/hello-world", p.Root)
			}
			if err := g.withCache(func(c *cache.Cache) error { return g.unready(cmd.Context(), c) }); err != nil {
				return err
			}
			changed, err := cuemodule.Vendor(p.Root)
			for _, name := range changed {
				fmt.Fprintln(g.out, name)
			}
			return err
		},
	})
	return cmd
}
