package main

import (
	"fmt"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

func newBuild(g *global) *cobra.Command {
	var o compiler.Output
	cmd := &cobra.Command{
		Use:   "build [ENVIRONMENT...]",
		Short: "Compile environments into their GitOps trees",
		Long: `build compiles the environments, or all, and writes their trees below --to.
Without --to it writes nothing, and prints what it would build.

An assignment with an error keeps its last good folder, and everything else is
written; the exit code is then 3. --strict writes nothing at all on any error.
Only files that kalypso wrote are changed or removed.`,
		Example: `  kalypso build --to out              # every environment, in out/<environment>
  kalypso build dev --to out          # one
  kalypso build dev --flat --to tree  # one, straight into tree`,
		ValidArgsFunction: environmentArgs(g),
		RunE: func(cmd *cobra.Command, environments []string) error {
			if cmd.Flags().Changed("to") && o.Dir == "" {
				return usagef("--to needs a folder, and is empty")
			}
			if o.Flat && (len(environments) != 1 || o.Dir == "") {
				return usagef("--flat writes one environment straight into --to DIR: name both")
			}
			if (o.Adopt || o.Strict) && o.Dir == "" {
				return usagef("--adopt and --strict say how to write: they need --to DIR")
			}
			return g.build(cmd, environments, o)
		},
	}
	cmd.Flags().StringVar(&o.Dir, "to", "", "write the trees to `DIR`/<environment>")
	cmd.Flags().BoolVar(&o.Flat, "flat", false, "write the one environment straight into DIR")
	cmd.Flags().BoolVar(&o.Strict, "strict", false, "write nothing at all if there is any error")
	cmd.Flags().BoolVar(&o.Adopt, "adopt", false, "take over files in DIR that kalypso did not write")
	return cmd
}

func (g *global) build(cmd *cobra.Command, environments []string, o compiler.Output) error {
	if o.Dir != "" && !filepath.IsAbs(o.Dir) {
		o.Dir = filepath.Join(g.dir, o.Dir) // -C works elsewhere, as that of git and cue
	}
	b, written, err := compiler.Write(cmd.Context(), compiler.Request{Dir: g.dir, Environments: environments}, o)
	if err != nil {
		return err
	}
	if err := g.tell(g.err, b.Diagnostics); err != nil {
		return err
	}
	if err := g.summary(b, written); err != nil {
		return err
	}
	if b.Failed() {
		return errPlatform
	}
	return nil
}

// summary prints what was built, an environment a line.
func (g *global) summary(b *compiler.Build, written map[string]*tree.Changes) error {
	w := tabwriter.NewWriter(g.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ENVIRONMENT\tCLUSTER TYPES\tASSIGNMENTS\tKEPT\tFAILED\tFILES WRITTEN\tREMOVED")
	for _, e := range b.Environments {
		s := e.Summary()
		files, removed := "-", "-"
		if c, ok := written[e.Name]; ok {
			files, removed = fmt.Sprint(len(c.Written)), fmt.Sprint(len(c.Removed))
		}
		if e.Tree == nil { // an error hides the environment: its output stays as it is
			fmt.Fprintf(w, "%s\t-\t-\tall\t-\t-\t-\n", e.Name)
			continue
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%s\t%s\n", e.Name, s.ClusterTypes, s.Assignments, s.Kept, s.Failed, files, removed)
	}
	return w.Flush()
}
