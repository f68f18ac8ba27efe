package engine

import (
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// The digest of entries depends on their folders and on the files that the backend returns now.
func TestEntriesDigest(t *testing.T) {
	digest := func(folder, data string) model.Digest {
		files := func(*model.Cluster) []backends.File { return []backends.File{{Path: "a", Data: []byte(data)}} }
		e := &entries{in: &Inputs{}, keys: map[string]cache.Key{}}
		e.makers = map[string]func(*model.Cluster) []backends.File{folder: files}
		return e.digest(&shard{entries: []tree.Entry{{Cluster: "a", Folder: folder}}, clusters: []*model.Cluster{{}}})
	}
	if digest("f", "1") == digest("f", "2") || digest("f", "1") == digest("g", "1") {
		t.Error("other entries have the same digest")
	}
}
