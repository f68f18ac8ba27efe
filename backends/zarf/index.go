package zarf

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// DefinitionFile is the file that `zarf package create` reads in a folder.
const DefinitionFile = "zarf.yaml"

// Index returns README.md, kustomization.yaml, which lists the folders, and zarf.yaml. It returns
// zarf.yaml only if there is an assignment, since a package needs a component.
func (zarf) Index(ct *backends.ClusterType, folders []backends.Folder) ([]backends.File,
	[]diag.Diagnostic) {
	o, ds := optionsOf(ct.Reconciler)
	if diag.Errors(ds) {
		return nil, ds
	}
	files := []backends.File{kubernetes.README(ct, folders), delivery.FolderList(folders)}
	if len(folders) == 0 {
		return delivery.Sorted(files), ds
	}
	components, problems := componentsOf(ct, folders)
	ds = append(ds, problems...)
	written := backends.File{Path: DefinitionFile, Data: yaml.Must(definition{
		APIVersion: apiVersion, Kind: "ZarfPackageConfig",
		Metadata: metadata{
			// a label's value to Zarf
			Name:        model.ShortName(ct.Environment+"-"+ct.Name, model.MaxLabel),
			Description: strings.TrimSpace(ct.Description), Version: o.Version, Architecture: o.Architecture,
			Annotations: map[string]string{"app.kubernetes.io/managed-by": "kalypso"},
		},
		Components: components,
	})}
	if ds = append(ds, checkDefinition(ct, written)...); diag.Errors(ds) {
		return nil, ds
	}
	return delivery.Sorted(append(files, written)), ds
}

// componentsOf returns the folders' components in the order of their deployment.
func componentsOf(ct *backends.ClusterType, folders []backends.Folder) ([]component,
	[]diag.Diagnostic) {
	folders, ds := ordered(ct, folders)
	all := map[string]component{}
	for _, f := range folders {
		c, ok := componentOf(f)
		if !ok {
			ds = append(ds, diag.New(diag.ReconcilerChange,
				"the folder of "+f.DeploymentTarget+" was not made for Zarf by this kalypso").
				At(ct.Ref, "").For(delivery.FolderID(ct, f.DeploymentTarget)).
				Hinting("make the assignment's errors good, so that its folder is built anew"))
			continue
		}
		all[c.Name] = c
	}
	var out []component
	for _, f := range folders {
		out = append(out, all[f.DeploymentTarget])
		for _, target := range f.DependsOn {
			// A user may leave the other component out, unless it is required for the same
			// clusters.
			c, ok := all[target]
			theirs, _ := json.Marshal(all[f.DeploymentTarget].Only) // of strings
			own, _ := json.Marshal(c.Only)
			if ok && (!c.Required || c.Only != nil && string(own) != string(theirs)) {
				ds = append(ds, diag.New(diag.NotWaitedFor,
					fmt.Sprintf("%s waits for %s only where that is deployed: its component can be left out",
						f.DeploymentTarget, target)).
					On("zarf.required").At(ct.Reconciler.Ref.At("zarf.required"), "").
					Hinting("make both required, for the same clusters").For(
					delivery.FolderID(ct, f.DeploymentTarget)))
			}
		}
	}
	return out, ds
}

// componentOf reads the component that Emit shared. The record may be from another kalypso, or a
// person may have changed it. componentOf therefore returns false unless the component is the
// folder's, and contains only files that are in the folder or fetched.
func componentOf(f backends.Folder) (component, bool) {
	var c component
	d := json.NewDecoder(bytes.NewReader(f.Shared))
	d.DisallowUnknownFields()
	if f.Backend != backend || d.Decode(&c) != nil || c.Name != f.DeploymentTarget {
		return c, false
	}
	var paths []string
	for _, m := range c.Manifests {
		paths = append(paths, m.Files...)
	}
	for _, chart := range c.Charts {
		paths = append(paths, chart.ValuesFiles...)
		if chart.LocalPath != "" && chart.LocalPath != f.DeploymentTarget {
			return c, false
		}
	}
	for _, file := range c.Files {
		if !strings.Contains(file.Source, "://") {
			paths = append(paths, file.Source)
		}
	}
	return c, !slices.ContainsFunc(paths, func(p string) bool {
		return path.Clean(p) != p || !strings.HasPrefix(p, f.DeploymentTarget+"/")
	})
}

// ordered sorts folders by their waves and names, and each after all its dependencies. The waves
// are not sufficient if folders are kept.
func ordered(ct *backends.ClusterType, folders []backends.Folder) ([]backends.Folder,
	[]diag.Diagnostic) {
	rest := slices.Clone(folders)
	slices.SortFunc(rest, func(f, g backends.Folder) int {
		return cmp.Or(cmp.Compare(f.Wave, g.Wave),
			strings.Compare(f.DeploymentTarget, g.DeploymentTarget))
	})
	waiting := map[string]bool{}
	for _, f := range rest {
		waiting[f.DeploymentTarget] = true
	}
	var out []backends.Folder
	for len(rest) > 0 {
		next := slices.IndexFunc(rest, func(f backends.Folder) bool {
			return !slices.ContainsFunc(f.DependsOn, func(target string) bool { return waiting[target] })
		})
		if next < 0 {
			return folders, []diag.Diagnostic{diag.New(diag.DependsOn, "components depend on each other, "+
				"among them "+rest[0].DeploymentTarget).
				At(ct.Ref, "").For(delivery.FolderID(ct, rest[0].DeploymentTarget)).
				Hinting("one of the folders is kept from an earlier build: make its errors good")}
		}
		delete(waiting, rest[next].DeploymentTarget)
		out, rest = append(out, rest[next]), slices.Delete(rest, next, next+1)
	}
	return out, nil
}

// Entries returns a list with the folder whose package is for the site.
func (zarf) Entries(ct *backends.ClusterType) (func(*model.Cluster) []backends.File,
	[]diag.Diagnostic) {
	files := []backends.File{delivery.Entry(ct)}
	return func(*model.Cluster) []backends.File { return files }, nil
}
