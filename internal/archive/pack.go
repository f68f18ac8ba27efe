package archive

import (
	"archive/tar"
	"bytes"
	"fmt"
	"maps"
	"slices"
	"time"
)

// refusedRecord is the extended header (pax(1)) of a link in place of a refused path. It has the
// reason.
const refusedRecord = "KALYPSO.refused"

// Pack writes the tar archive of a tree. Equal trees have equal bytes, whoever made them and on
// any machine. Entries are sorted by path, without folders, of owner 0 and of the year 1970, with
// mode 0755 for executable files and 0644 for the rest. A refused path is a link to a missing
// file, with the reason in its header. [Read] returns the tree again.
//
// The tree must come from Read or [Build]. A path that no archive can contain is a mistake of the
// program, and Pack panics.
func Pack(t *Tree) []byte {
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	names := slices.AppendSeq(slices.Collect(maps.Keys(t.Files)), maps.Keys(t.Refused))
	slices.Sort(names)
	for _, name := range names {
		f := t.Files[name]
		h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(f.Data)), Mode: 0o644,
			ModTime: time.Unix(0, 0)}
		if f.Executable {
			h.Mode = 0o755
		}
		if reason, ok := t.Refused[name]; ok {
			h.Typeflag, h.Linkname, h.PAXRecords = tar.TypeSymlink, "/",
				map[string]string{refusedRecord: reason}
		}
		must(name, archive.WriteHeader(h))
		_, err := archive.Write(f.Data)
		must(name, err)
	}
	must("the end", archive.Close())
	return out.Bytes()
}

func must(name string, err error) {
	if err != nil {
		panic(fmt.Sprintf("archive.Pack: %s: %v", name, err))
	}
}
