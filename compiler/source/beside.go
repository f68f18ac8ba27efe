package source

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// isBeside reports whether a file is YAML in a folder that the platform's files are
// loaded from.
func isBeside(rel string) bool {
	switch dir := path.Dir(rel); {
	case strings.HasPrefix(path.Base(rel), "."):
		return false
	case dir != "." && !IsEnvironmentFolder(dir):
		return false
	}
	return slices.Contains([]string{".yaml", ".yml"}, strings.ToLower(path.Ext(rel)))
}

// lookBeside warns of YAML files that somebody may believe to be a part of the platform,
// although no file of it embeds them. Other tools have their files at the root of a
// repository, so a file there must look like a platform's.
func (p *Platform) lookBeside() []diag.Diagnostic {
	if len(p.yaml) == 0 {
		return nil
	}
	embedded := p.embedded()
	var ds []diag.Diagnostic
	for _, rel := range p.yaml {
		if embedded[rel] || path.Dir(rel) == "." && !p.describesPlatform(rel) {
			continue
		}
		ds = append(ds, diag.New(diag.NotCUE,
			fmt.Sprintf("%s is YAML, and no file of the platform embeds it, so nothing in it counts",
				path.Base(rel))).
			In(model.Position{File: rel, Line: 1, Column: 1}, "").
			Hinting(fmt.Sprintf("write it in CUE, as cue import -p %s %s does, embed it with @embed, or "+
				"move it into a folder of its own", Package, path.Base(rel))))
	}
	return ds
}

// embedded returns the files that the platform's files embed, or may name as files of
// inventories, by their paths from the root.
func (p *Platform) embedded() map[string]bool {
	out := map[string]bool{}
	for _, rel := range p.embeds {
		data, err := p.files.ReadFile(rel)
		if err != nil {
			continue
		}
		f, err := parser.ParseFile(p.files.Path(rel), data)
		if err != nil {
			continue // loading the file reports the error
		}
		for _, e := range Embeds(f, p.files) {
			if name, ok := p.files.Name(e.Path); ok {
				out[name] = true
			}
		}
		ast.Walk(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if name, err := literal.Unquote(lit.Value); err == nil && path.Ext(name) != "" {
					out[path.Join(path.Dir(rel), name)] = true
				}
			}
			return true
		}, nil)
	}
	return out
}

// ofOthers are the collections whose names are outermost keys of other tools' files too.
// These tools are helmfile, kubectl, Compose, and tools for tests.
var ofOthers = []string{"environments", "clusters", "configs", "tests"}

// describesPlatform reports whether a YAML file describes a platform. Then one of its
// outermost keys is a collection of the language that no other tool's file has, or its API
// group is the original Kalypso's.
func (p *Platform) describesPlatform(rel string) bool {
	data, err := p.files.ReadFile(rel)
	if err != nil {
		return false
	}
	for line := range bytes.Lines(data) {
		key, value, found := bytes.Cut(line, []byte(":"))
		switch {
		case !found:
		case slices.Contains(model.CollectionNames, string(key)) &&
			!slices.Contains(ofOthers, string(key)):
			return true
		case string(key) == "apiVersion" &&
			bytes.HasPrefix(bytes.TrimSpace(value), []byte("scheduler.kalypso.io/")):
			return true
		}
	}
	return false
}
