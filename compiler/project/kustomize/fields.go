package kustomize

import (
	"fmt"
	"strings"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/project/internal/refusal"
	"github.com/kalypso-io/kalypso/internal/lazyregexp"
)

// reference is a file, folder or address that a field of a kustomization names.
type reference struct {
	field, value string
	// data is whether it names a file that becomes a value as it is.
	data bool
}

// remote reports whether Kustomize would fetch the value of a field. Kustomize takes a name for
// an address before it checks whether a file has that name. This function accepts every address
// that Kustomize accepts, and more
// (https://github.com/kubernetes-sigs/kustomize/blob/master/examples/remoteBuild.md).
func remote(value string) bool { return address.MatchString(value) }

var address = lazyregexp.New(
	`(?i)^\s*git::|://|^\s*[a-z][a-z0-9+.-]*:/|^[^/]*@[^/:]*[/:]|^\s*github\.com[/:]|\?(ref|version)=`)

// startsRemote reports whether Kustomize could read a text as an address.
func startsRemote(text string) bool { return addressStart.MatchString(text) }

var addressStart = lazyregexp.New(`(?i)^\s*(git::|[a-z][a-z0-9+.-]*:/|[^/@\s]*@|github\.com[/:])`)

// folderFields are the fields that name folders with kustomizations, or files.
func folderFields(k *types.Kustomization) []reference {
	return concat(listed("resources", k.Resources), listed("components", k.Components))
}

// fileFields are the fields that name files.
func fileFields(k *types.Kustomization) []reference {
	refs := concat(listed("crds", k.Crds), listed("configurations", k.Configurations))
	if file, ok := k.OpenAPI["path"]; ok {
		refs = append(refs, reference{field: "openapi.path", value: file})
	}
	patches := func(field string, ps []types.Patch) {
		for i, p := range ps {
			if p.Path != "" {
				refs = append(refs, reference{field: fmt.Sprintf("%s[%d].path", field, i), value: p.Path})
			}
		}
	}
	patches("patches", k.Patches)
	//lint:ignore SA1019 kustomizations that have the deprecated fields name files in them
	patches("patchesJson6902", k.PatchesJson6902)
	//lint:ignore SA1019 as above
	for i, p := range k.PatchesStrategicMerge {
		if !inline(string(p)) {
			refs = append(refs,
				reference{field: fmt.Sprintf("patchesStrategicMerge[%d]", i), value: string(p)})
		}
	}
	for i, r := range k.Replacements {
		if r.Path != "" {
			refs = append(refs, reference{field: fmt.Sprintf("replacements[%d].path", i), value: r.Path})
		}
	}
	for i, g := range k.ConfigMapGenerator {
		refs = append(refs, generated(fmt.Sprintf("configMapGenerator[%d]", i), g.KvPairSources)...)
	}
	for i, g := range k.SecretGenerator {
		refs = append(refs, generated(fmt.Sprintf("secretGenerator[%d]", i), g.KvPairSources)...)
	}
	return refs
}

// pluginFields are the fields that name files with the configurations of
// plugins, or have them as text.
func pluginFields(k *types.Kustomization) []reference {
	return concat(listed("generators", k.Generators), listed("transformers", k.Transformers),
		listed("validators", k.Validators))
}

func concat(lists ...[]reference) (all []reference) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

func listed(field string, values []string) []reference {
	refs := make([]reference, len(values))
	for i, v := range values {
		refs[i] = reference{field: fmt.Sprintf("%s[%d]", field, i), value: v}
	}
	return refs
}

// generated are the files that a generator of a ConfigMap or a Secret reads.
func generated(field string, g types.KvPairSources) []reference {
	files := make([]string, len(g.FileSources))
	for i, f := range g.FileSources {
		files[i] = fileSource(f)
	}
	envs := g.EnvSources
	if g.EnvSource != "" {
		envs = append(envs, g.EnvSource)
	}
	refs := concat(listed(field+".files", files), listed(field+".envs", envs))
	for i := range refs {
		refs[i].data = true
	}
	return refs
}

// fileSource returns the file of key=file, or of a file whose last name is the
// key.
func fileSource(value string) string {
	if _, file, ok := strings.Cut(value, "="); ok {
		return file
	}
	return value
}

// inline reports whether a field is a document instead of the name of a file.
func inline(value string) bool {
	value = strings.TrimSpace(value)
	return strings.Contains(value, "\n") || strings.HasPrefix(value, "{") ||
		strings.HasPrefix(value, "[")
}

// forbidden refuses fields that run programs.
func forbidden(file string, k *types.Kustomization) error {
	if len(k.HelmCharts) > 0 {
		return refusal.New(diag.Render, "make the chart a deployment target of its own, or let the "+
			"reconciler render the overlay",
			"%s: helmCharts runs the helm command, which a build does not", file)
	}
	return nil
}
