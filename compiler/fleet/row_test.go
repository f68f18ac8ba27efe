package fleet

import (
	"testing"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/testing/fieldtest"
)

// The digest of a row follows from every field of its cluster.
func TestRowDigest(t *testing.T) {
	fieldtest.Check(t, func() *model.Cluster { return &model.Cluster{} }, func(c *model.Cluster) model.Digest {
		b := &builder{inv: &inventory{}, cluster: *c}
		b.identify()
		return b.cluster.Digest
	}, map[string]string{
		"Folder":    "what is made of the clusters of a folder has its name",
		"Inventory": "no file has it",
		"Composed":  "Compose adds it",
		"Digest":    "it is set",
	})
}
