// Package kustomize renders Kustomize overlays and folders of plain manifests in process. Its
// input is a tree of files and changes to it. Its output is Kubernetes objects; for an overlay,
// they are the same that `kustomize build` prints.
//
// A render depends only on its Request. An overlay reaches every file of its tree and nothing
// outside. This package refuses each field that would fetch something or run a program, before
// Kustomize sees it. The error names the file and the field.
//
// This package does not bound time and memory: bases can multiply. Worker processes bound them,
// see package project.
//
// For example, the package's tests render a folder with two manifests:
//
//	Request{Path: "deploy/sub", NamePrefix: "p-", Files: {
//		"deploy/sub/namespace.yaml": the Namespace ns, "deploy/sub/deep/a.yaml": the ConfigMap a}}
//
// Render returns two objects, each a [model.Projected]: the Namespace ns and the ConfigMap p-a.
package kustomize

import (
	"slices"
	"sync"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	// The label of buildMetadata has the version of the command, which Kustomize looks
	// for among the modules that a program is built from.
	_ "sigs.k8s.io/kustomize/kustomize/v5/commands/version"
	"sigs.k8s.io/kustomize/kyaml/openapi"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/project/internal/manifest"
	"github.com/kalypso-io/kalypso/compiler/project/internal/quiet"
	"github.com/kalypso-io/kalypso/compiler/project/internal/refusal"
)

// Request is a folder to render, with everything that its output depends on.
type Request struct {
	// Files are the source's files, by path relative to its root, with slashes.
	Files map[string][]byte
	// Refused are paths of the source without content. The reason follows the path in a
	// sentence. A render fails only if it needs such a path.
	Refused map[string]string
	// Path is the folder to render, relative to the root. One with a kustomization
	// is an overlay; of another, all manifests below it are rendered.
	Path string
	// Patches, Images and NamePrefix change the rendered objects. They work as if a
	// kustomization had them and the folder were its only resource.
	Patches    []model.KustomPatch
	Images     []model.KustomImage
	NamePrefix string
}

// Render returns the objects of a folder. For an overlay, they have the order in which
// `kustomize build` prints them. For a folder of manifests, they have the order of their files,
// but with CRDs first and namespaces next. Errors are *refusal.Errors. It may be called from
// several goroutines; they wait for each other.
func Render(req Request) (objects []model.Projected, err error) {
	defer quiet.Begin()()
	p, err := prepare(req)
	if err != nil {
		return nil, err
	}
	resources, err := build(p)
	if err != nil {
		return nil, err
	}
	objects, err = read(resources, p.name)
	if err == nil && p.plain {
		objects = definitionsFirst(objects)
	}
	return objects, err
}

// building allows one build at a time. Kustomize keeps the OpenAPI schema with which it merges
// patches in variables of the process. One build does not profit from another processor.
var building sync.Mutex

func build(p *preparedSource) (m resmap.ResMap, err error) {
	building.Lock()
	defer building.Unlock()
	defer func() {
		r := recover()
		if p.schema || r != nil {
			// Reading the schema of Kubernetes again takes longer than most builds.
			openapi.ResetOpenAPI()
		}
		if r != nil {
			m, err = nil,
				refusal.New(diag.Render, "simplify the overlay", "%s: Kustomize panics: %v", p.name, r)
		}
	}()
	options := krusty.MakeDefaultOptions()
	options.LoadRestrictions = types.LoadRestrictionsRootOnly
	options.PluginConfig = types.DisabledPluginConfig()
	// The command does the same if the kustomization has no sortOptions.
	options.Reorder = krusty.ReorderOptionUnspecified
	if p.plain {
		options.Reorder = krusty.ReorderOptionNone
	}
	m, err = krusty.MakeKustomizer(options).Run(p.fs, p.root)
	if err != nil {
		return nil, refusal.New(diag.Render, "kustomize build shows the same where the source is "+
			"checked out", "%s: %s", p.name, local(err.Error()))
	}
	return m, nil
}

// read returns the objects that Kustomize made.
func read(m resmap.ResMap, source string) ([]model.Projected, error) {
	var (
		reader  manifest.Reader
		objects []model.Projected
	)
	for _, r := range m.Resources() {
		b, err := r.MarshalJSON()
		if err != nil {
			return nil, refusal.New(diag.Render, "check the manifest, and the patches of it", "%s: %s: %v",
				source, r.CurId(), err)
		}
		var v model.Value
		if err := v.UnmarshalJSON(b); err != nil {
			return nil, refusal.New(diag.Render, "check the manifest, and the patches of it", "%s: %s: %v",
				source, r.CurId(), err)
		}
		if err := reader.Add(source, v, len(b)); err != nil {
			return nil, err
		}
		objects = append(objects, model.Projected{Value: v})
	}
	return objects, nil
}

// definitionsFirst moves CRDs to the beginning, followed by namespaces. The files of a
// folder are in no order in which they could be applied.
func definitionsFirst(objects []model.Projected) []model.Projected {
	rank := func(o model.Projected) int {
		switch kind, _ := o.Value.Lookup("kind"); kind.Text() {
		case "CustomResourceDefinition":
			return 0
		case "Namespace":
			return 1
		}
		return 2
	}
	slices.SortStableFunc(objects, func(a, b model.Projected) int { return rank(a) - rank(b) })
	return objects
}
