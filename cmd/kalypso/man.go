package main

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/kalypso-io/kalypso/compiler"
)

func newMan(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the man pages into a folder",
		Long: `man writes a man page for each command into DIR, which it makes if need be. For man
to find them, DIR is the folder man1 of one in MANPATH:

  kalypso man ~/.local/share/man/man1

The pages have a date, which SOURCE_DATE_EPOCH sets.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("man takes one folder, and not %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := g.path(args[0])
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true // it would be the day on which this runs
			return doc.GenManTree(root, &doc.GenManHeader{Section: "1",
				Source: "kalypso " + compiler.Version().Version, Manual: "Kalypso"}, dir)
		},
	}
}
