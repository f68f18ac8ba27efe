package kubernetes

import (
	"maps"
	"slices"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// ClusterConfig returns the file with the assignment's platform config, as a strategic
// merge patch that makes it what it is on one cluster. values are the assignment's with
// those of the cluster over them: what is null is not there on the cluster. What
// cannot be written is reported.
func ClusterConfig(a *backends.Assignment, values model.Value) (backends.File, []diag.Diagnostic) {
	there := *a
	there.Values = values
	w := &workspace{assignment: &there}
	data, _, gone, ds := clusterData(a, values)
	w.ds = ds
	w.configMap(data, gone)
	text, err := yaml.Marshal(w.docs...)
	if err != nil {
		w.misfit("", "%s cannot be written: %v", PlatformConfigFile, err)
	}
	return backends.File{Path: PlatformConfigFile, Data: text}, w.diagnostics()
}

// ConfigPatch returns a strategic merge patch with what of the platform config is
// different on a cluster, whose values are as for ClusterConfig; nil where nothing is.
func ConfigPatch(a *backends.Assignment, values model.Value) ([]byte, []diag.Diagnostic, error) {
	data, base, gone, ds := clusterData(a, values)
	maps.DeleteFunc(data, func(key, text string) bool {
		old, there := base[key]
		return there && old == text
	})
	if len(data)+len(gone) == 0 {
		return nil, ds, nil
	}
	text, err := yaml.Marshal(struct {
		APIVersion string             `yaml:"apiVersion"`
		Kind       string             `yaml:"kind"`
		Metadata   Metadata           `yaml:"metadata"`
		Data       map[string]*string `yaml:"data"`
	}{"v1", "ConfigMap", Metadata{Name: configName, Namespace: a.Namespace}, patchData(data, gone)})
	return text, ds, err
}

// clusterData returns the data of the platform config on a cluster, and on the others,
// and the keys that only those have.
func clusterData(a *backends.Assignment, values model.Value) (data, base map[string]string,
	gone []string, ds []diag.Diagnostic) {
	kept, _ := values.WithoutNulls()
	data, ds = ConfigData(a.ConfigFormat, kept)
	base, _ = ConfigData(a.ConfigFormat, a.Values) // Emission tells what is wrong with it
	for key := range base {
		if _, there := data[key]; !there {
			gone = append(gone, key)
		}
	}
	slices.Sort(gone)
	return data, base, gone, ds
}
