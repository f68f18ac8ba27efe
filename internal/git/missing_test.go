package git

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

func TestMissing(t *testing.T) {
	r, dir := repository(t)
	first := commit(t, r, "1")
	second := commit(t, r, "2", first)
	must(t, r.Update("refs/heads/main", Hash{}, second, somebody, "m"))
	run(t, "", "git", "-C", dir, "config", "uploadpack.allowFilter", "true")
	at := t.TempDir()
	run(t, "", "git", "clone", "-q", "--bare", "--depth=1", "file://"+dir, filepath.Join(at, "shallow"))
	run(t, "", "git", "clone", "-q", "--bare", "--filter=blob:none", "file://"+dir, filepath.Join(at, "partial"))
	blob := ID(BlobKind, []byte("1"))
	for _, c := range []struct {
		dir    string
		reason Reason
		want   string
	}{
		{dir, Damaged, "git fsck"},
		{filepath.Join(at, "shallow"), Shallow, "git fetch --unshallow"},
		{filepath.Join(at, "partial"), Partial, "the partial clone; let git fetch it"},
	} {
		r := opened(t, c.dir)
		id := blob
		if c.reason == Damaged {
			id = Hash{1}
		}
		var missing *MissingError
		if _, err := r.Blob(id); !errors.As(err, &missing) || missing.ID != id || missing.Reason != c.reason ||
			!strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.dir) {
			t.Errorf("%s: %v", c.dir, err)
		}
	}
	_, err := opened(t, filepath.Join(at, "shallow")).Resolve("HEAD~1")
	if err == nil || !strings.Contains(err.Error(), "a parent of "+Short(second)+", is not in the shallow clone") {
		t.Errorf("before a shallow clone: %v", err)
	}
}
