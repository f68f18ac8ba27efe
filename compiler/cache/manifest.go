package cache

import (
	"encoding/binary"
	"math"
	"slices"
)

// A segment is a part of a table as its manifest lists it: an index, and a data
// file that holds the bodies in blocks. Both never change and are named by their
// hash.
type segment struct {
	id        digest // of the index
	indexSize int64
	data      digest // zero if all bodies are empty
	dataSize  int64
	entries   int
}

func (s segment) size() int64 { return s.indexSize + s.dataSize }

const (
	segmentBytes = 2*len(digest{}) + 2*8 + 4
	// maxSegments bounds a manifest. Compaction keeps the number far below it; only
	// segments that a remote cache lists, and whose data is not here, can reach it.
	maxSegments = 64
)

// encodeManifest writes the segments of a table, oldest first. Of more than
// maxSegments the newest are written.
func encodeManifest(segments []segment) []byte {
	segments = segments[max(0, len(segments)-maxSegments):]
	out := binary.BigEndian.AppendUint32(nil, uint32(len(segments)))
	for _, s := range segments {
		out = append(out, s.id[:]...)
		out = binary.BigEndian.AppendUint64(out, uint64(s.indexSize))
		out = append(out, s.data[:]...)
		out = binary.BigEndian.AppendUint64(out, uint64(s.dataSize))
		out = binary.BigEndian.AppendUint32(out, uint32(s.entries))
	}
	return out
}

// decodeManifest is the reverse of encodeManifest. It trusts nothing.
func decodeManifest(payload []byte) ([]segment, bool) {
	r := reader{data: payload}
	n := int(r.uint32())
	if r.failed || n > maxSegments || len(r.data) != n*segmentBytes {
		return nil, false
	}
	var segments []segment
	for range n {
		s := segment{id: r.digest()}
		indexSize := r.uint64()
		s.data = r.digest()
		dataSize := r.uint64()
		s.entries = int(r.uint32())
		if indexSize > math.MaxInt64/2 || dataSize > math.MaxInt64/2 {
			return nil, false
		}
		s.indexSize, s.dataSize = int64(indexSize), int64(dataSize)
		segments = append(segments, s)
	}
	return segments, true
}

// mergeManifests returns the segments of both, without those that were replaced.
// What only older has comes first: of a key that is in several segments the
// newest one holds.
func mergeManifests(older, newer []segment, replaced map[digest]bool) []segment {
	all := slices.Concat(older, newer)
	last := map[digest]int{}
	for i, s := range all {
		last[s.id] = i
	}
	var out []segment
	for i, s := range all {
		if last[s.id] == i && !replaced[s.id] {
			out = append(out, s)
		}
	}
	return out
}
