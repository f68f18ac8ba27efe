// Package observe reads what clusters run, as reports for a hub, and sends them: from the
// objects of Flux, Argo CD and Fleet on clusters, and from files. It knows nothing of what is
// wanted.
package observe

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/state"
)

// Source is where reports come from. The error is for what could not be read: the reports
// beside it are what was.
type Source interface {
	Reports(ctx context.Context) ([]api.Report, error)
}

// DigestOf returns what stands for the items of a snapshot: it is equal for two that differ in
// their order, or in since when their states hold. It is "" for no items: a snapshot without
// digest and items says that there is nothing.
func DigestOf(items []api.Item) string {
	if len(items) == 0 {
		return ""
	}
	sorted := slices.Clone(items)
	for i := range sorted {
		sorted[i].Since = time.Time{}
		if sorted[i].State == state.ReportedOK.String() {
			sorted[i].Message = ""
		}
	}
	slices.SortFunc(sorted, compare)
	data, err := json.Marshal(sorted)
	if err != nil {
		panic(err) // they have texts and times alone
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func compare(a, b api.Item) int {
	return cmp.Or(strings.Compare(a.Assignment, b.Assignment), strings.Compare(a.Object, b.Object),
		strings.Compare(a.Commit, b.Commit),
		strings.Compare(a.Path, b.Path), strings.Compare(a.Branch, b.Branch),
		strings.Compare(a.Repository, b.Repository), strings.Compare(a.Digest, b.Digest),
		strings.Compare(a.State, b.State), strings.Compare(a.Message, b.Message))
}

// snapshot returns the report of all that there is on a cluster.
func snapshot(cluster, by string, at time.Time, items []api.Item) api.Report {
	slices.SortFunc(items, compare)
	return api.Report{Cluster: cluster, By: by, At: at, Snapshot: true, Digest: DigestOf(items), Items: items}
}

// sorted sorts reports by cluster, then by time.
func sorted(reports []api.Report) []api.Report {
	slices.SortFunc(reports, func(a,
		b api.Report) int {
		return cmp.Or(strings.Compare(a.Cluster, b.Cluster), a.At.Compare(b.At))
	})
	return reports
}
