package registration

import (
	"fmt"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/address"
)

// checkSources reports workloads whose sources are on the machine that locks the platform, or
// in its own network: `kalypso lock` would read for a team what only the platform's own people
// may read. The repository that is registered, and its host, the platform has named itself.
func (x *limited) checkSources(workloads []model.Workload) []model.Workload {
	r := x.registration
	return slices.DeleteFunc(workloads, func(w model.Workload) bool {
		before := len(x.Diagnostics)
		for _, t := range w.Targets {
			source, ok := dependency.SourceOf(t.Manifests)
			if !ok || source.URL == r.Git.Repo {
				continue
			}
			where := localPlace(source.URL)
			if where == "" || where != localFiles && where == localPlace(r.Git.Repo) {
				continue
			}
			ref := model.Ref{Collection: "workloads", Name: w.Name}.At("deploymentTargets." +
				model.Label(t.Name) + ".manifests." + string(t.Manifests.Kind()))
			x.Fail(ref, diag.New(diag.Registration,
				fmt.Sprintf("%s is on %s, and registration %s cannot reach what is there", source.URL, where, r.Name)).
				Hinting("keep the manifests in the registered repository or on a server, or declare the workload in the platform"))
		}
		return len(x.Diagnostics) > before
	})
}

// localFiles is where a file:// URL leads to.
const localFiles = "the machine's own files"

// localPlace says where a URL leads to that is this machine or its own link: its files, or a
// host with its port; "" for any other place.
func localPlace(source string) string {
	a, ok := address.Parse(source)
	if !ok || a.Scheme == "file" {
		return localFiles
	}
	if address.IsLocal(a.Host) {
		return a.Authority
	}
	return ""
}
