package kubernetes

import (
	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// ClusterConfig returns the assignment's platform-config.yaml with other values
// than its own, for a cluster that has values of its own. It holds the object that
// Workspace puts into that file, and says of the values what Workspace would. With
// an error the file is incomplete.
func ClusterConfig(a *backends.Assignment, values model.Value) (backends.File, []diag.Diagnostic) {
	there := *a
	there.Values = values
	w := &workspace{assignment: &there}
	w.platformConfig()
	data, err := yaml.Marshal(w.docs...)
	if err != nil {
		w.misfit("", "%s cannot be written: %v", PlatformConfigFile, err)
	}
	return backends.File{Path: PlatformConfigFile, Data: data}, w.diagnostics()
}
