// Package starter has the first files of a platform, and of an application's repository,
// which `kalypso init` writes.
package starter

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"text/template"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/literal"

	root "github.com/kalypso-io/kalypso"
)

// Repository is the common part of Platform and App.
type Repository struct {
	// Name is the platform's, or the application's, and part of the GitOps repository's
	// address: a DNS label.
	Name string
	// Environments are DNS labels, at least one, in the order of promotion.
	Environments []string
	// GitOps is the URL of the repository for the trees; "" for a placeholder.
	GitOps string
	// CI is one of CIs.
	CI string
	// Rollout is one of Rollouts; "" for the first.
	Rollout string
	// Release is the release of kalypso that workflows use; "" for the one that first had
	// the schema.
	Release string
}

// Platform describes a new platform.
type Platform struct {
	Repository
	Reconciler Reconciler
}

// Reconciler describes how the clusters of a new platform receive their assignments. Its facts
// are the backend's Traits, which the caller reads: packages below internal/ import no backend.
type Reconciler struct {
	Name     string // the key in #Reconciler
	Machines bool   // the platform begins with machines and not with Kubernetes
	Pulls    bool   // kalypso knows what a cluster needs to pull its tree
}

// App describes a new repository of an application.
type App struct{ Repository }

// File is a file of a new repository. Its path has slashes.
type File struct {
	Path string
	Data []byte
}

// CIs are the CI systems for workflows, and "none".
var CIs = []string{"github", "gitlab", "none"}

// Rollouts are the sources of rollout reports for a new platform or application, as the schema's
// #RolloutGate names them. With the first, no one reports.
var Rollouts = []string{"none", "hub", "status", "kubernetes", "report"}

// language is the version of CUE that platforms are written in.
const language = "v0.17.0"

//go:embed all:common all:platform all:app all:github all:gitlab
var templates embed.FS

// own is the folder with the templates of an environment's files. Each template makes one file
// for each environment.
const own = "environments"

// environment is the input of an environment's templates.
type environment struct {
	Of          any // the Platform or App
	Environment string
	After       string // "" for the first
}

// Files returns the files of the platform, sorted by path. They build without changes, and the
// CUE files are formatted. It returns an error only if the fields of the platform are not valid.
func (p Platform) Files() ([]File, error) {
	if p.Reconciler.Name == "" {
		return nil, fmt.Errorf("starter: no platform is %+v", p)
	}
	p.Repository = p.withDefaults()
	return p.write(p, "platform")
}

// Files returns the files of the application's repository, in the same form as a platform's.
func (a App) Files() ([]File, error) {
	a.Repository = a.withDefaults()
	return a.write(a, "app")
}

// PlaceholderGitOps returns the URL that init writes if the user names no repository for the
// trees.
func (r Repository) PlaceholderGitOps() string {
	return "https://git.example.com/" + r.Name + "/gitops"
}

// withDefaults returns the repository with the values of fields that are empty.
func (r Repository) withDefaults() Repository {
	r.GitOps, r.Rollout = cmp.Or(r.GitOps, r.PlaceholderGitOps()), cmp.Or(r.Rollout, Rollouts[0])
	return r
}

// PromoteFlags returns the flags with which promote finds the reports of rollouts, each after a
// space. Values in capitals have to be replaced.
func (r Repository) PromoteFlags() string {
	return map[string]string{"hub": " --hub URL", "kubernetes": " --kubeconfig FILE",
		"report": " --report FOLDER"}[r.Rollout]
}

// write makes the files of a new repository. kind is the folder of its templates.
func (r Repository) write(of any, kind string) ([]File, error) {
	if len(r.Environments) == 0 || !slices.Contains(CIs, r.CI) ||
		!slices.Contains(Rollouts, r.Rollout) {
		return nil, fmt.Errorf("starter: no repository is %+v", r)
	}
	var files []File
	for _, part := range []string{"common", kind, r.CI} {
		more, err := r.files(of, part)
		if err != nil {
			return nil, err
		}
		files = append(files, more...)
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return files, nil
}

// files makes the files of a folder of templates, which may be absent.
func (r Repository) files(of any, part string) (files []File, err error) {
	if part == "none" {
		return nil, nil
	}
	err = fs.WalkDir(templates, part, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(templates, name)
		if err != nil {
			return err
		}
		out := destination(strings.TrimPrefix(name, part+"/"))
		if base, isOwn := strings.CutPrefix(out, own+"/"); isOwn {
			for _, e := range r.All() {
				e.Of = of
				if files, err = add(files, path.Join(own, e.Environment, base), text, e); err != nil {
					return err
				}
			}
			return nil
		}
		files, err = add(files, out, text, of)
		return err
	})
	return files, err
}

// destination returns the path of a template's file. It replaces the prefix "dot-" of a name with
// a dot.
func destination(name string) string {
	parts := strings.Split(strings.TrimSuffix(name, ".tmpl"), "/")
	for i, part := range parts {
		if hidden, is := strings.CutPrefix(part, "dot-"); is {
			parts[i] = "." + hidden
		}
	}
	return path.Join(parts...)
}

// All are the environments, as templates see them.
func (r Repository) All() []environment {
	out := make([]environment, len(r.Environments))
	for i, name := range r.Environments {
		out[i].Environment = name
		if i > 0 {
			out[i].After = r.Environments[i-1]
		}
	}
	return out
}

// add adds the file that a template makes from its data, unless the file is empty.
func add(files []File, name string, text []byte, data any) ([]File, error) {
	t, err := template.New(name).Delims("[[", "]]").Option("missingkey=error").Funcs(template.FuncMap{
		"label":    label,
		"cue":      literal.String.Quote,
		"yaml":     yamlString,
		"language": func() string { return language },
		"schema":   func() string { return root.ModulePath },
		"version":  func() string { return root.ModuleVersion },
	}).Parse(string(text))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, data); err != nil {
		return nil, err
	}
	out := b.Bytes()
	if len(bytes.TrimSpace(out)) == 0 {
		return files, nil
	}
	if path.Ext(name) == ".cue" {
		if out, err = format.Source(out); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return append(files, File{name, out}), nil
}

// label returns a name as the label of a field in CUE, quoted only if it needs quotes.
func label(name string) string {
	if ast.StringLabelNeedsQuoting(name) {
		return literal.String.Quote(name)
	}
	return name
}

// yamlString writes a name so that YAML reads a string: plain, unless that is something else.
func yamlString(name string) string {
	switch {
	case name[0] >= '0' && name[0] <= '9':
	case slices.Contains([]string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}, name):
	default:
		return name
	}
	return `"` + name + `"`
}

// KalypsoRelease is the release of kalypso that workflows use.
func (r Repository) KalypsoRelease() string { return cmp.Or(r.Release, root.ModuleVersion) }

// First returns the environment that gets commits first.
func (r Repository) First() string { return r.Environments[0] }

// Last returns the environment that gets commits last.
func (r Repository) Last() string { return r.Environments[len(r.Environments)-1] }

// Module is the path of the platform's CUE module.
func (p Platform) Module() string { return p.Name + ".example/platform@v0" }

// IsApp reports whether the workflows are for an application: they are not.
func (Platform) IsApp() bool { return false }

// IsApp reports whether the workflows are for an application: they are.
func (App) IsApp() bool { return true }

// Check is the command that looks at a pull request.
func (Platform) Check() string { return "kalypso vet" }

// Check is the command that looks at a pull request.
func (App) Check() string { return "kalypso project" }
