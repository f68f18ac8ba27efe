// Package starter has the first files of a platform, which `kalypso init` writes.
package starter

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"text/template"

	"cuelang.org/go/cue/format"

	root "github.com/kalypso-io/kalypso"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Platform says what a new platform is.
type Platform struct {
	// Name is part of the CUE module's path and of the GitOps repository's address: a DNS label.
	Name string
	// Environments are in the order in which commits come to them: DNS labels, at least one.
	Environments []string
	// Reconciler is one of Reconcilers.
	Reconciler string
	// GitOps is the URL of the repository for the trees; "" for one that has to be replaced.
	GitOps string
	// CI is one of CIs.
	CI string
}

// File is a file of a platform. Its path has slashes.
type File struct {
	Path string
	Data []byte
}

// Reconcilers are those that a platform can begin with. Others are added by hand: Zarf, for
// one, needs what kalypso.lock pins, which is not known here.
var Reconcilers = []string{"flux", "argocd", "fleet", "ansible"}

// CIs are where workflows can be for, and none.
var CIs = []string{"github", "gitlab", "none"}

// language is the version of CUE that platforms are written in.
const language = "v0.17.0"

//go:embed all:platform all:github all:gitlab
var templates embed.FS

// own is a folder of templates of which each is a file of each environment.
const own = "environments"

// environment is what the templates of an environment get.
type environment struct {
	Platform
	Environment string
	After       string // "" for the first
}

// Files returns the files of the platform, sorted by path. They build as they are, and the
// CUE among them is formatted. Only a platform that is not as its fields say is an error.
func (p Platform) Files() ([]File, error) {
	if len(p.Environments) == 0 || !slices.Contains(Reconcilers, p.Reconciler) || !slices.Contains(CIs, p.CI) {
		return nil, fmt.Errorf("starter: no platform is %+v", p)
	}
	if p.GitOps == "" {
		p.GitOps = "https://git.example.com/" + p.Name + "/gitops"
	}
	var files []File
	for _, part := range []string{"platform", p.CI} {
		of, err := p.files(part)
		if err != nil {
			return nil, err
		}
		files = append(files, of...)
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return files, nil
}

// files makes the files of a folder of templates, which may be absent.
func (p Platform) files(part string) (files []File, err error) {
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
			for _, e := range p.All() {
				if files, err = add(files, path.Join(own, e.Environment, base), text, e); err != nil {
					return err
				}
			}
			return nil
		}
		files, err = add(files, out, text, p)
		return err
	})
	return files, err
}

// destination returns where the file of a template lies: a name that begins with "dot-" is
// one that begins with a dot.
func destination(name string) string {
	parts := strings.Split(strings.TrimSuffix(name, ".tmpl"), "/")
	for i, part := range parts {
		if hidden, is := strings.CutPrefix(part, "dot-"); is {
			parts[i] = "." + hidden
		}
	}
	return path.Join(parts...)
}

// All are the platform's environments, as templates see them.
func (p Platform) All() []environment {
	out := make([]environment, len(p.Environments))
	for i, name := range p.Environments {
		out[i] = environment{Platform: p, Environment: name}
		if i > 0 {
			out[i].After = p.Environments[i-1]
		}
	}
	return out
}

// add adds the file that a template makes of its data, unless that is empty.
func add(files []File, name string, text []byte, data any) ([]File, error) {
	t, err := template.New(name).Delims("[[", "]]").Option("missingkey=error").Funcs(template.FuncMap{
		"label":    model.Label,
		"cue":      func(s string) string { return string(model.AppendJSONString(nil, s)) },
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

// Module is the path of the platform's CUE module.
func (p Platform) Module() string { return p.Name + ".example/platform@v0" }

// First is the environment that commits come to first.
func (p Platform) First() string { return p.Environments[0] }

// Last is the environment that commits come to last.
func (p Platform) Last() string { return p.Environments[len(p.Environments)-1] }

// Machines says whether the platform begins with machines and not with Kubernetes.
func (p Platform) Machines() bool { return p.Reconciler == "ansible" }
