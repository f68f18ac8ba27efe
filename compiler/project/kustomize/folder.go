package kustomize

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/project/internal/manifest"
	"github.com/kalypso-io/kalypso/compiler/project/internal/refusal"
	"github.com/kalypso-io/kalypso/internal/archive"
)

// manifests returns the resources of a folder without a kustomization, relative to it and in
// the order of their paths. These are its .yaml and .yml files, the files of the folders below
// it, and each folder with a kustomization as a whole. Flux does the same
// (https://fluxcd.io/flux/components/kustomize/kustomizations/#generate-kustomizationyaml).
func (s *scan) manifests(dir string) ([]string, error) {
	var files []string
	for name := range s.files {
		if within(dir, name) {
			files = append(files, name)
		}
	}
	slices.Sort(files)
	for _, name := range slices.Sorted(maps.Keys(s.refused)) {
		if within(dir, name) && isManifest(relative(dir, name)) && s.overlayAbove(dir, name) == "" {
			return nil, refusal.New(diag.BadSource, archive.WayOut(s.refused[name], hintRefused), "%s %s",
				name, s.refused[name])
		}
	}
	var (
		resources []string
		overlays  = map[string]bool{}
		reader    manifest.Reader
	)
	for _, name := range files {
		if overlay := s.overlayAbove(dir, name); overlay != "" {
			if !overlays[overlay] {
				overlays[overlay] = true
				resources = append(resources, relative(dir, overlay))
				if err := s.overlay(overlay); err != nil {
					return nil, err
				}
			}
			continue
		}
		if !isManifest(relative(dir, name)) {
			continue
		}
		objects, err := reader.Documents(name, s.files[name])
		if err == nil {
			err = checkManifests(name, objects)
		}
		if err != nil && path.Base(name) == "Chart.yaml" {
			return nil, refusal.New(diag.BadSource, fmt.Sprintf("write helm: git: {repo: ..., path: %q} "+
				"in place of git, with the same branch, tag or commit", path.Dir(name)),
				"the folder %s is a Helm chart, and no manifests", path.Dir(name))
		}
		if err != nil {
			return nil, err
		}
		// Kustomize reads a file without objects as a folder.
		if len(objects) > 0 {
			s.reached[name] = true
			resources = append(resources, relative(dir, name))
		}
	}
	if len(resources) == 0 {
		return nil, refusal.New(diag.BadSource, "name a folder with a kustomization, or with files "+
			"that end in .yaml or .yml", "%s has no manifests", dir)
	}
	for _, r := range resources {
		if remote(r) {
			return nil, refusal.New(diag.BadSource, "rename it", "%s has a name that Kustomize takes for "+
				"an address", path.Join(dir, r))
		}
	}
	return resources, nil
}

// checkManifests refuses a file that has anything except manifests. Kustomize finds errors
// inside the manifests when it reads them.
func checkManifests(name string, docs []any) error {
	for i, doc := range docs {
		object, _ := doc.(map[string]any)
		metadata, _ := object["metadata"].(map[string]any)
		_, named := metadata["name"]
		_, list := object["items"]
		if object["apiVersion"] != nil && object["kind"] != nil && (named || list) {
			continue
		}
		return refusal.New(diag.NotRendered, "add a kustomization that lists the manifests of the "+
			"folder, or keep other files elsewhere",
			"%s: document %d is no manifest of Kubernetes: it needs apiVersion, kind and metadata.name",
			name, i+1)
	}
	return nil
}

// within reports whether a path is below a folder.
func within(dir, name string) bool { return dir == "." || strings.HasPrefix(name, dir+"/") }

// relative returns a path below a folder, relative to it.
func relative(dir, name string) string {
	if dir == "." {
		return name
	}
	return strings.TrimPrefix(name, dir+"/")
}

// overlayAbove returns the topmost folder between dir and a file that has a
// kustomization, or "".
func (s *scan) overlayAbove(dir, name string) string {
	found := ""
	for above := path.Dir(name); above != dir; above = path.Dir(above) {
		if k, _ := s.kustomization(above); k != "" && !hidden(relative(dir, above)) {
			found = above
		}
	}
	return found
}

// notManifests are files of other programs, which Flux excludes from a source
// (https://fluxcd.io/flux/components/source/gitrepositories/#ignore-spec).
var notManifests = []string{"gitlab-ci.yml", "appveyor.yml", "cloudbuild.yaml",
	"codeship-services.yml", "codeship-steps.yml"}

func isManifest(name string) bool {
	ext := path.Ext(name)
	return (ext == ".yaml" || ext == ".yml") && !hidden(name) &&
		!slices.Contains(notManifests, path.Base(name))
}

// hidden reports whether a path has a name that begins with a dot: the settings of git,
// of forges and of tools are not manifests.
func hidden(name string) bool {
	return strings.HasPrefix(name, ".") || strings.Contains(name, "/.")
}
