package kubernetes

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
)

// ReadmeFile is the page that a person sees first in a cluster type's folder.
const ReadmeFile = "README.md"

// README returns README.md for a cluster type's root: which deployment targets
// are assigned to it, with their versions and namespaces, in the folders' order.
// It changes with the assignments only, never with their configuration.
func README(ct *backends.ClusterType, folders []backends.Folder) backends.File {
	var out bytes.Buffer
	fmt.Fprintf(&out, "# %s\n\n", ct.Name)
	if description := strings.TrimSpace(ct.Description); description != "" {
		fmt.Fprintf(&out, "%s\n\n", description)
	}
	fmt.Fprintf(&out, "What kalypso assigns to the cluster type `%s` in the environment `%s`.\n", ct.Name, ct.Environment)
	fmt.Fprint(&out, "This folder is generated: change the platform, not the files.\n\n")
	if len(folders) == 0 {
		fmt.Fprint(&out, "There are no assignments.\n")
		return backends.File{Path: ReadmeFile, Data: out.Bytes()}
	}
	fmt.Fprint(&out, "| deployment target | workload | version | workspace | namespace |\n")
	fmt.Fprint(&out, "|---|---|---|---|---|\n")
	for _, f := range folders {
		fmt.Fprintf(&out, "| [%s](%[1]s) | %s | %s | %s | %s |\n", f.DeploymentTarget, f.Workload,
			f.Version, f.Workspace, f.Namespace)
	}
	return backends.File{Path: ReadmeFile, Data: out.Bytes()}
}
