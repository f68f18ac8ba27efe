package plan

import (
	"context"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/compare"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/session"
)

// contents are the files of a GitOps repository, with the files of commits that are not pushed
// yet. Package compare reads them.
type contents struct {
	ctx context.Context
	of  *session.Repository
}

// Prefetch fetches the objects that the server has and this process has not read.
func (c contents) Prefetch(ids []tree.ID) error {
	hashes := make([]git.Hash, len(ids))
	for i, id := range ids {
		hashes[i] = tree.Revision(id).Hash()
	}
	// The server does not have the objects of a commit that was just prepared.
	hashes = slices.DeleteFunc(hashes, c.of.Staging.Has)
	return c.of.Remote.Prefetch(c.ctx, hashes)
}

// Blob returns the content of a blob, from the server if necessary.
func (c contents) Blob(id tree.ID) ([]byte, error) {
	return c.of.Staging.Blob(tree.Revision(id).Hash())
}

// inspect sets the change of a prepared commit on clusters.
func (m *maker) inspect(ctx context.Context, st *session.Stage, step *Step) error {
	p := step.Prepared
	var err error
	p.report, err = compare.Records(st.Environment.Record, p.record,
		contents{ctx, st.Environment.Repository}, m.state.Platform.Subject.Form().Targets)
	if err != nil {
		return err
	}
	step.Change.Set(p.report)
	return nil
}

// onlyAddsClusters reports whether a change only gives assignments to clusters that were not listed
// before.
func onlyAddsClusters(environment string, r *compare.Report) bool {
	if r.Total.Removed+r.Total.Changed > 0 || r.Clusters == nil || len(r.Clusters.Listed) == 0 ||
		len(r.Clusters.Unlisted) > 0 {
		return false
	}
	for i := range r.Added {
		for _, name := range r.Added[i].Names() {
			if _, isNew := slices.BinarySearch(r.Clusters.Listed, environment+"/"+name); !isNew {
				return false
			}
		}
		if len(r.Added[i].Names()) == 0 { // on a cluster type that lists no clusters
			return false
		}
	}
	return true
}

// clusterTypeOf returns the cluster type of the id of an assignment, or of a target.
func clusterTypeOf(id string) string {
	parts := strings.SplitN(id, "/", 3)
	if len(parts) < 2 {
		return ""
	}
	return parts[1]
}
