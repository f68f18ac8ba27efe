// Package testdata has comments, one for each kind of text that the checker reads or leaves out.
//
// What is first is listed, with its line in the file. A paragraph ends
// at an empty line; nothing but its own lines
// count.
//
//   - an item of a list is a paragraph alone, and
//     its second line, but for none, continues it
//   - another item
//
// The rest is code:
//
//	what is indented is code, but for nothing
//
// Quotes are left out: `what is`, "but for", https://example.com/but for, e.g. what is said of it.
package testdata

import "github.com/spf13/cobra"

//go:generate what is this but for none

/*
Block comments have
lines that stand in the file.
*/
var _ = 1 // iff it is read

//nolint:all // but for none
var long = `Print the platform.

This prints what is in it, but for secrets.

	kalypso print what is there
`

func command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "print [NAME]",
		Short: "Say what is wrong",
		Long: `Print the platform.

It prints all that is in it, and
the platform alone.
`,
		Example: "  kalypso print all that is there\n" + "  kalypso print " + long,
	}
	cmd.Flags().String("to", "", "print to a `FOLDER`, which must not be there; "+
		"it is no more than the folder")
	cmd.Flags().Bool("all", true, "print nothing but errors")
	println("not", "but for", "shown, but for help")
	return cmd
}
