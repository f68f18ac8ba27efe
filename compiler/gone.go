package compiler

import (
	"fmt"
	"os"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// warnOfGone warns of folders in an output that belong to environments that the platform no
// longer has. It does so only for a build of all environments. record returns the record of a
// folder, or nil if it has no record, and the record's location for the message.
func (b *Build) warnOfGone(r Request, o Output, folders []string,
	record func(folder string) (*tree.Record, string)) {
	if o.Flat || len(r.Environments) > 0 || b.Declarations == nil {
		return
	}
	for _, folder := range folders {
		if slices.ContainsFunc(b.Declarations,
			func(s model.Declaration) bool { return s.Name == folder }) {
			continue
		}
		of, at := record(folder)
		if of == nil || of.Platform != b.Platform.Module || of.Environment != folder {
			continue
		}
		b.report(folder, []diag.Diagnostic{diag.New(diag.EnvironmentGone,
			fmt.Sprintf("environment %s is no longer in the platform, and its output stays", folder)).
			In(model.Position{File: at, Line: 1, Column: 1}, "").
			Hinting("reconcilers go on applying it: take the clusters off it, then remove the folder")})
	}
}

// foldersIn returns the names of the folders in a folder. It returns nil if the folder does not
// exist.
func foldersIn(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}
