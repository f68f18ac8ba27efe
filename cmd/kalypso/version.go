package main

import (
	"fmt"
	"runtime"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"

	"github.com/kalypso-io/kalypso"
	"github.com/kalypso-io/kalypso/compiler"
)

func newVersion(g *global) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of kalypso, its CUE and its schema",
		Args:  cobra.NoArgs,
	}
	output := outputFlag(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		type version struct {
			Kalypso      string `json:"kalypso"`
			CUE          string `json:"cue"`
			Module       string `json:"module"`
			SchemaDigest string `json:"schemaDigest"`
			Go           string `json:"go"`
		}
		c := compiler.Version()
		v := version{c.Version, c.CUE, kalypso.ModulePath + " " + kalypso.ModuleVersion, c.Schema, runtime.Version()}
		return g.print(*output, document[version]{apiVersion, "Version", v}, func(w *tabwriter.Writer) {
			kind := ""
			if !isRelease(v.Kalypso) {
				kind = " (a development build)"
			}
			fmt.Fprintf(w, "kalypso\t%s%s\nCUE\t%s\nschema\t%s\nGo\t%s\n", v.Kalypso, kind, v.CUE, v.Module, v.Go)
		})
	}
	return cmd
}

// isRelease reports whether a version is a tag's, and not that of a commit or of files that
// were changed.
func isRelease(version string) bool {
	return semver.IsValid(version) && !module.IsPseudoVersion(version) && semver.Build(version) != "+dirty"
}
