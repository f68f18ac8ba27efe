package main

import (
	"context"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/source"
)

// diagnosticFormat is how diagnostics are written.
type diagnosticFormat struct {
	name  string
	write func(io.Writer, []diag.Diagnostic) error
}

// diagnosticFormats are the formats of diagnostics, the default first.
var diagnosticFormats = []diagnosticFormat{
	{"text", func(w io.Writer, ds []diag.Diagnostic) error { return diag.WriteText(w, ds, emphasis(w)) }},
	{"json", diag.WriteJSON},
	{"github", diag.WriteGitHub},
	{"sarif", func(w io.Writer, ds []diag.Diagnostic) error {
		return diag.WriteSARIF(w, ds, compiler.Version().Version)
	}},
}

// diagnosticsFlag adds a flag that says how diagnostics are written.
func (g *global) diagnosticsFlag(cmd *cobra.Command, flags *pflag.FlagSet, name, shorthand, usage string) {
	var names []string
	for _, f := range diagnosticFormats {
		names = append(names, f.name)
	}
	choiceFlag(cmd, flags, &g.diagnostics, name, shorthand, usage, names...)
}

// failOnFlag adds --fail-on, and returns where its value will be.
func failOnFlag(cmd *cobra.Command) *string {
	failOn := new(string)
	choiceFlag(cmd, cmd.Flags(), failOn, "fail-on", "", "exit with 3 for errors only, or for warnings as well",
		string(diag.Error), string(diag.Warning))
	return failOn
}

// failsOn reports whether diagnostics are as severe as the value of --fail-on.
func failsOn(failOn string, ds []diag.Diagnostic) bool {
	return diag.Errors(ds) || failOn == string(diag.Warning) && len(ds) > 0
}

// report writes diagnostics as --diagnostics says.
func (g *global) report(w io.Writer, ds []diag.Diagnostic) error {
	if g.diagnostics == "github" || g.diagnostics == "sarif" {
		ds = fromWorkingDirectory(g.dir, ds)
	}
	i := slices.IndexFunc(diagnosticFormats, func(f diagnosticFormat) bool { return f.name == g.diagnostics })
	return diagnosticFormats[i].write(w, ds)
}

// fromWorkingDirectory returns diagnostics of the platform that dir is in with
// paths from the working directory, not from the platform's root: GitHub looks
// for files in the repository, at whose root its jobs run. Diagnostics of
// written trees have such paths already.
func fromWorkingDirectory(dir string, ds []diag.Diagnostic) []diag.Diagnostic {
	prefix, err := toRoot(dir)
	if err != nil || prefix == "." {
		return ds
	}
	ds = slices.Clone(ds)
	for i, d := range ds {
		if strings.HasPrefix(string(d.Code), "K4") {
			continue
		}
		ds[i].Sites = slices.Clone(d.Sites)
		for j, s := range d.Sites {
			if !s.Position.IsZero() {
				ds[i].Sites[j].Position.File = path.Join(prefix, s.Position.File)
			}
		}
	}
	return ds
}

// toRoot returns the path, with slashes, from the working directory to the root
// of the platform that dir is in.
func toRoot(dir string) (string, error) {
	root, err := source.Root(dir)
	if err != nil {
		return "", err
	}
	here, err := os.Getwd()
	if err == nil {
		here, err = filepath.EvalSymlinks(here)
	}
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(here, root)
	return filepath.ToSlash(rel), err
}

// reportErrors reports the errors of a platform beside a result that is not about
// them, and returns errPlatform if there are some. That a platform has no environments is
// reported as well: it is why the result is empty.
func (g *global) reportErrors(b *compiler.Build) error {
	ds := blocking(b.Diagnostics)
	if err := g.report(g.err, ds); err != nil {
		return err
	}
	if diag.Errors(ds) {
		return errPlatform
	}
	return nil
}

// blocking returns errors, and that there are no environments.
func blocking(ds []diag.Diagnostic) (out []diag.Diagnostic) {
	for _, d := range ds {
		if d.Severity == diag.Error || d.Code == diag.NoEnvironments {
			out = append(out, d)
		}
	}
	return out
}

// unready reports what the platform lacks before there can be anything in it: files, or
// environments. It is for commands that do not compile it.
func (g *global) unready(ctx context.Context, c *cache.Cache) error {
	_, ds, err := compiler.Declarations(ctx, g.request(nil, c))
	if err != nil {
		return err
	}
	return g.report(g.err, slices.DeleteFunc(ds,
		func(d diag.Diagnostic) bool { return d.Code != diag.Module && d.Code != diag.NoEnvironments }))
}

// emphasis returns what sets off text on a terminal that has colour, where nobody
// asked for none (https://no-color.org); otherwise nil.
func emphasis(w io.Writer) func(diag.Severity, string) string {
	if os.Getenv("NO_COLOR") != "" || sizeOf(w) == nil {
		return nil
	}
	return bold
}

func bold(s diag.Severity, text string) string {
	if s == diag.Error {
		return "\x1b[1;31m" + text + "\x1b[0m"
	}
	return "\x1b[1;33m" + text + "\x1b[0m"
}
