package engine

import (
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/testing/fieldtest"
)

// The key of Index's result depends on every field of a folder.
func TestHashFolder(t *testing.T) {
	fieldtest.Check(t, func() *backends.Folder { return &backends.Folder{} }, func(f *backends.Folder) cache.Key {
		h := cache.NewHash("folder")
		hashFolder(h, f)
		return h.Sum()
	}, nil)
}

// The digest of a cluster type depends on every field of its record.
func TestRecordDigest(t *testing.T) {
	empty := func() *tree.ClusterTypeRecord { return &tree.ClusterTypeRecord{} }
	fieldtest.Check(t, empty, func(r *tree.ClusterTypeRecord) model.Digest {
		digest, err := digestOf(tree.ID(model.Encode(r.Files)), r, func(h *cache.Hash) error {
			for i := range r.Assignments {
				a := &r.Assignments[i]
				hashRecorded(h, a, []byte(a.Tree), a.Shared, retention{Kept: a.Retained}.encode())
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		return digest
	}, map[string]string{
		"APIVersion":        "it is of all records",
		"Kind":              "it is of all records",
		"Name":              "digests of one name are compared",
		"Kept":              "what is kept has no digest",
		"Entries":           "entries have a digest of their own",
		"Assignments.Files": "Tree is their id",
		"Assignments.Kept":  "what is kept has no digest",
		"Assignments.made":  "they are Files",
	})
	of := func(facts []tree.ClusterFacts) model.Digest {
		r := &tree.ClusterTypeRecord{Clusters: []string{"a"}, Facts: facts}
		digest, err := digestOf("", r, func(*cache.Hash) error { return nil })
		if err != nil {
			t.Error(err)
		}
		return digest
	}
	if of(nil) == of([]tree.ClusterFacts{}) {
		t.Error("clusters without facts have the digest of those whose facts are not recorded")
	}
}
