package kustomize

import (
	"encoding/json"
	"fmt"
	"path"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/project/internal/manifest"
	"github.com/kalypso-io/kalypso/compiler/project/internal/refusal"
)

// changes returns a kustomization with the changes of a request.
func changes(req Request) (types.Kustomization, error) {
	k := types.Kustomization{NamePrefix: req.NamePrefix}
	for i, p := range req.Patches {
		patch := types.Patch{Patch: p.Patch}
		name := fmt.Sprintf("patches[%d]", i)
		if err := manifest.Check(name, []byte(p.Patch)); err != nil {
			return k, err
		}
		if len(p.Target) > 0 {
			target, err := selector(p.Target)
			if err != nil {
				return k, refusal.New(diag.Render, "a target has group, version, kind, name, namespace, "+
					"labelSelector and annotationSelector", "%s: %v", name, err)
			}
			patch.Target = target
		}
		k.Patches = append(k.Patches, patch)
	}
	for _, i := range req.Images {
		k.Images = append(k.Images,
			types.Image{Name: i.Name, NewName: i.NewName, NewTag: i.NewTag, Digest: i.Digest})
	}
	return k, nil
}

// selector converts the target of a patch to Kustomize's selector.
func selector(target map[string]string) (*types.Selector, error) {
	s := &types.Selector{ResId: resid.ResId{}}
	fields := map[string]*string{
		"group": &s.Group, "version": &s.Version, "kind": &s.Kind, "name": &s.Name,
		"namespace":     &s.Namespace,
		"labelSelector": &s.LabelSelector, "annotationSelector": &s.AnnotationSelector,
	}
	for name, value := range target {
		field, ok := fields[name]
		if !ok {
			return nil, fmt.Errorf("target has no %s", name)
		}
		*field = value
	}
	return s, nil
}

// write adds a kustomization to a folder. JSON is YAML as well.
func (p *preparedSource) write(dir string, k types.Kustomization) error {
	k.TypeMeta = types.TypeMeta{APIVersion: types.KustomizationVersion, Kind: types.KustomizationKind}
	b, err := json.Marshal(k)
	if err != nil {
		return fmt.Errorf("write a kustomization: %w", err)
	}
	return p.fs.WriteFile(path.Join(dir, "kustomization.yaml"), b)
}

func inSource(name string) string { return path.Join(sourceRoot, name) }
