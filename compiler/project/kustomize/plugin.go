package kustomize

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/project/internal/refusal"
)

// plugin checks a generator, transformer or validator. It allows the plugins that are built
// into Kustomize, with the files that they read. It refuses programs, containers and functions.
func (s *scan) plugin(file string, r reference) error {
	source, text := file+": "+r.field, []byte(r.value)
	if !inline(r.value) {
		name, err := s.resolve(file, r)
		if err != nil {
			return err
		}
		if s.folders[name] {
			return refusal.New(diag.Render, "name the files of the folder", "%s: %s is a folder, whose "+
				"kustomization could make any plugin", source, r.value)
		}
		source, text = name, s.files[name]
	} else if startsRemote(r.value) {
		// Kustomize reads a text that it cannot use as the name of something.
		return refusal.New(diag.BadSource, "write the plugin's apiVersion first",
			"%s begins like an address", source)
	}
	docs, err := s.bytes.Documents(source, text)
	if err != nil {
		return err
	}
	for _, doc := range docs {
		if err := s.builtin(file, source, configuration(doc)); err != nil {
			return err
		}
	}
	return nil
}

// configuration returns the configuration of a plugin as Kustomize reads it, its fields by
// name. Only strings distinguish plugins, so it returns other scalars as null.
func configuration(doc any) model.Value {
	switch doc := doc.(type) {
	case string:
		return model.StringOf(doc)
	case []any:
		elems := make([]model.Value, len(doc))
		for i, e := range doc {
			elems[i] = configuration(e)
		}
		return model.ListOf(elems...)
	case map[string]any:
		var fields []model.Field
		for name, value := range doc {
			fields = append(fields, model.Field{Name: name, Value: configuration(value)})
		}
		return model.StructOf(fields...)
	case map[any]any:
		// Some keys are not strings.
		var fields []model.Field
		for key, value := range doc {
			if name, ok := key.(string); ok {
				fields = append(fields, model.Field{Name: name, Value: configuration(value)})
			}
		}
		return model.StructOf(fields...)
	}
	return model.Value{}
}

func (s *scan) builtin(file, source string, config model.Value) error {
	if items, ok := config.Lookup("items"); ok {
		// Kustomize reads the items of lists separately.
		for _, item := range items.Elems() {
			if err := s.builtin(file, source, item); err != nil {
				return err
			}
		}
	}
	apiVersion, _ := config.Lookup("apiVersion")
	kind, _ := config.Lookup("kind")
	hint := "use a plugin that is built into Kustomize, or let the reconciler render the overlay"
	switch {
	case apiVersion.Text() != "builtin":
		return refusal.New(diag.Render, hint, "%s: %s is a plugin that runs a program, which a build "+
			"does not", source, strings.TrimSpace(apiVersion.Text()+" "+kind.Text()))
	case strings.HasPrefix(kind.Text(), "HelmChartInflation"):
		return refusal.New(diag.Render, "make the chart a deployment target of its own",
			"%s: %s runs the helm command, which a build does not", source, kind.Text())
	}
	metadata, _ := config.Lookup("metadata")
	annotations, _ := metadata.Lookup("annotations")
	for _, f := range annotations.Fields() {
		if strings.HasSuffix(f.Name, "/function") {
			return refusal.New(diag.Render, hint, "%s: %s runs a program, which a build does not", source,
				f.Name)
		}
	}
	for _, r := range pluginFiles("", config) {
		r.field = strings.TrimPrefix(source, file+": ") + r.field
		if err := s.file(file, r); err != nil {
			return err
		}
	}
	return nil
}

// fileKeys are the fields in which built-in plugins of Kustomize name files. Kustomize
// ignores their case, and so does kalypso.
var fileKeys = []string{"path", "paths", "files", "env", "envs", "targetFilePath"}

// pluginFiles returns the files that the configuration of a plugin names. Only at
// its top and among replacements: fieldSpecs and targets have paths in objects.
func pluginFiles(at string, config model.Value) []reference {
	var refs []reference
	for _, f := range config.Fields() {
		field := at + "." + f.Name
		if strings.EqualFold(f.Name, "replacements") {
			for i, e := range f.Value.Elems() {
				refs = append(refs, pluginFiles(fmt.Sprintf("%s[%d]", field, i), e)...)
			}
		}
		if !slices.ContainsFunc(fileKeys,
			func(key string) bool { return strings.EqualFold(key, f.Name) }) {
			continue
		}
		names := f.Value.Elems()
		if f.Value.Kind() == model.String {
			names = []model.Value{f.Value}
		}
		for _, n := range names {
			r := reference{field: field, value: n.Text(),
				data: !strings.Contains(strings.ToLower(f.Name), "path")}
			if strings.EqualFold(f.Name, "files") {
				r.value = fileSource(r.value)
			}
			if n.Kind() == model.String && r.value != "" && !inline(r.value) {
				refs = append(refs, r)
			}
		}
	}
	return refs
}
