package tree

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"io"
	"os"
	"path"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// index is .kalypso/index: it lists the files that kalypso wrote, with the properties that they had
// when their content matched the record. A file with the same properties has the same content, and
// is not read. The index is valid only in the folder where it was made. It belongs to one record,
// and to the very file of that record. A copied folder, or one with an index from elsewhere,
// therefore has no valid index. Neither does a folder with a damaged index.
//
// Its format is indexMagic, then an appendStat of the record and its blob id. Then follow the
// sections, each with its name and its data, both with their lengths before them. Last comes the
// CRC-32C of everything before. Numbers are little-endian.
type index struct {
	sections map[string]*section
}

const indexMagic = "kalypso index 2\n"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// section returns the section of a cluster type; nil if the index is nil or has no such section.
func (x *index) section(name string) *section {
	if x == nil {
		return nil
	}
	return x.sections[name]
}

// section has the entries of a cluster type's files. The section ownFolder has the entries of
// the records. A section has an entry for each folder with files, and after it an entry for
// each file of that folder:
//
//	folder  'd'  length  path in the section's folder
//	file    'f'  length  name  trust(1)  executable(1)  blob id(20)  stat(32)
//
// Lengths have 32 bits. A file's entry has a fixed size after its name, so that it
// can be changed in place.
type section struct {
	data []byte
	dir  string // of the last entry
	any  bool   // there is an entry
}

// entry is the fixed part of a file's entry.
type entry []byte

const entrySize = 2 + 20 + 32

// trust describes how reliable an entry is.
type trust byte

const (
	// doubtful: the file may have changed after it was read, within the resolution of
	// its time. It must be read.
	doubtful trust = iota
	// trusted: any change of the file changes its properties.
	trusted
	// compared: this process compared the content of the file.
	compared
	// fresh: this process writes the file, and must still look at it.
	fresh
)

func (e entry) trust() trust     { return trust(e[0]) }
func (e entry) setTrust(t trust) { e[0] = byte(t) }
func (e entry) executable() bool { return e[1] == 1 }
func (e entry) blob() Blob       { return Blob{ID(hex.EncodeToString(e[2:22])), e.executable()} }
func (e entry) stat() stat {
	n := func(i int) uint64 { return binary.LittleEndian.Uint64(e[22+8*i:]) }
	return stat{size: int64(n(0)), mtime: int64(n(1)), ctime: int64(n(2)), ino: n(3)}
}
func (e entry) setStat(s stat) { appendStat(e[:22], s) }

// appendStat appends the four numbers of a stat.
func appendStat(b []byte, s stat) []byte {
	for _, n := range []uint64{uint64(s.size), uint64(s.mtime), uint64(s.ctime), s.ino} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return b
}

// newSection returns an empty section with room for the files of an outcome.
func newSection(out *outcome) *section {
	n := 0
	for _, g := range out.groups {
		n += 5 + len(g.dir)
		for _, f := range g.files {
			n += 5 + len(f.Path) + entrySize
		}
	}
	return &section{data: make([]byte, 0, n)}
}

// add appends the entry of a file, given by its path in the section's folder.
func (s *section) add(p string, b Blob, st stat, t trust) {
	dir, name := "", p
	if i := strings.LastIndexByte(p, '/'); i >= 0 {
		dir, name = p[:i], p[i+1:]
	}
	if !s.any || s.dir != dir {
		s.data = appendBytes(append(s.data, 'd'), dir)
		s.any, s.dir = true, dir
	}
	executable := byte(0)
	if b.Executable {
		executable = 1
	}
	s.data = append(appendBytes(append(s.data, 'f'), name), byte(t), executable)
	s.data, _ = hex.AppendDecode(s.data, []byte(b.ID)) // ids are valid here
	s.data = appendStat(s.data, st)
}

// each calls a function with every file's folder, name and entry. The function
// may change the trust and the stat of the entry. each returns false if the
// section is not well formed.
func (s *section) each(f func(dir, name string, e entry)) bool {
	dir := ""
	for data := s.data; len(data) > 0; {
		kind := data[0]
		text, rest, ok := cutBytes(data[1:])
		switch {
		case !ok:
			return false
		case kind == 'd':
			dir, data = string(text), rest
		case kind != 'f' || len(rest) < entrySize || bytes.IndexByte(text, '/') >= 0 ||
			trust(rest[0]) > fresh || rest[1] > 1:
			return false
		default:
			f(dir, string(text), entry(rest[:entrySize:entrySize]))
			data = rest[entrySize:]
		}
	}
	return true
}

// appendBytes appends a text with its length before it.
func appendBytes[T string | []byte](b []byte, text T) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(text)))
	return append(b, text...)
}

// cutBytes is the reverse of appendBytes; ok is false if b is too short.
func cutBytes(b []byte) (text, rest []byte, ok bool) {
	if len(b) < 4 {
		return nil, nil, false
	}
	n := int64(binary.LittleEndian.Uint32(b))
	b = b[4:]
	if n > int64(len(b)) {
		return nil, nil, false
	}
	return b[:n], b[n:], true
}

// appendIndexHeader begins an index for a record.
func appendIndexHeader(b []byte, record ID, st stat) []byte {
	b = appendStat(append(b, indexMagic...), st)
	return append(b, record...)
}

// parseIndex reads an index, which need not be trusted. It returns nil if the data is not
// an index for the record.
func parseIndex(data []byte, record ID, st stat) *index {
	header := appendIndexHeader(nil, record, st)
	if len(data) < len(header)+crc32.Size || !bytes.HasPrefix(data, header) {
		return nil
	}
	end := len(data) - crc32.Size
	if crc32.Checksum(data[:end], castagnoli) != binary.LittleEndian.Uint32(data[end:]) {
		return nil
	}
	idx := &index{sections: map[string]*section{}}
	for rest := data[len(header):end:end]; len(rest) > 0; {
		name, after, ok := cutBytes(rest)
		if !ok {
			return nil
		}
		content, after, ok := cutBytes(after)
		if !ok {
			return nil
		}
		idx.sections[string(name)] = &section{data: content[:len(content):len(content)]}
		rest = after
	}
	return idx
}

// tick is longer than one step of a file system's clock: a file that changes twice within
// a tick may have the same properties. coarseTick is the same for file systems whose
// times are whole seconds.
const (
	tick       = 20 * time.Millisecond
	coarseTick = 2 * time.Second
)

// indexing writes the index of a folder that matches the plan.
type indexing struct {
	disk
	*writePlan
	staged time.Time // when all files were written; zero if no files were written

	// By the clock of the file system, which may differ from this machine's:
	oldest time.Time // of the first look at a file, less a tick
	latest time.Time // of now, less a tick
	last   time.Time // of staged
}

// write writes the index. It does not sync it: a damaged index is ignored.
func (x *indexing) write() error {
	return x.inFolder(ownFolder, func(in *os.Root) error {
		temp := tempPath(indexPath)
		f, err := x.create(in, temp, permissions(false))
		if err != nil {
			return err
		}
		defer f.Close() // a second time, unless there is an error
		info, err := f.Stat()
		if err != nil {
			return err
		}
		// The file was just made, so its time is the current time.
		now, still := info.ModTime(), tick
		if now.Nanosecond() == 0 {
			still = coarseTick
		}
		x.latest = now.Add(-still)
		x.oldest = x.latest.Add(-time.Since(x.began))
		x.last = now.Add(-time.Since(x.staged))
		if err := x.step("write", temp); err != nil {
			return err
		}
		if err := x.writeTo(f); err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
		return x.swap(in, indexPath)
	})
}

// writeTo writes the index, in its format, piece by piece.
func (x *indexing) writeTo(f io.Writer) error {
	var g errgroup.Group // decides the trust of new entries
	g.SetLimit(runtime.GOMAXPROCS(0))
	for _, p := range x.parts {
		if p.section != nil && p.revised {
			g.Go(func() error { return x.revise(p) })
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	own, err := x.ownSection()
	if err != nil {
		return err
	}
	record, err := x.root.Lstat(recordPath)
	if err != nil {
		return err
	}
	sum := crc32.New(castagnoli)
	buf := bufio.NewWriterSize(f, 1<<20)
	out := io.MultiWriter(buf, sum)
	if _, err := out.Write(appendIndexHeader(nil, BlobID(x.nextBytes), statOf(record))); err != nil {
		return err
	}
	section := func(name string, s *section) error {
		b := appendBytes(make([]byte, 0, len(name)+8), name)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(s.data)))
		if _, err := out.Write(b); err != nil {
			return err
		}
		_, err := out.Write(s.data)
		return err
	}
	if err := section(ownFolder, own); err != nil {
		return err
	}
	for _, p := range x.parts {
		if p.section == nil {
			continue
		}
		if err := section(p.name, p.section); err != nil {
			return err
		}
	}
	if _, err := buf.Write(binary.LittleEndian.AppendUint32(nil, sum.Sum32())); err != nil {
		return err
	}
	return buf.Flush()
}

// revise looks at the files of a cluster type whose entries are new, and sets
// the trust of the entries.
func (x *indexing) revise(p *typePlan) error {
	s, err := openScanner(x.root)
	if err != nil {
		return err
	}
	inside, last, there := false, "", false
	p.section.each(func(dir, file string, e entry) {
		switch e.trust() {
		case compared:
			e.setTrust(worth(e.stat().before(x.oldest)))
		case fresh:
			if !inside || dir != last {
				inside, last = true, dir
				there = s.enter(path.Join(p.name, dir))
			}
			is, whole := stat{}, false
			if there {
				is, whole = s.stat(file, e.executable())
			}
			// If a file changed after it was staged, another program changed it.
			untouched := whole && is.size == e.stat().size && is.mtime <= x.last.UnixNano()
			e.setStat(is)
			e.setTrust(worth(untouched && is.before(x.latest)))
		}
	})
	return s.close()
}

// worth returns the trust of an entry that is certain, or not.
func worth(certain bool) trust {
	if certain {
		return trusted
	}
	return doubtful
}

// ownSection returns the section of the cluster types' records. Every reader checks their content
// by id, so it is enough to look at the files.
func (x *indexing) ownSection() (*section, error) {
	s, err := openScanner(x.root)
	if err != nil {
		return nil, err
	}
	own := &section{}
	if s.enter(recordsFolder) {
		for _, e := range x.next.ClusterTypes {
			p := ClusterTypeRecordPath(e.Name)
			is, there := s.stat(path.Base(p), false)
			own.add(p[len(ownFolder)+1:], Blob{ID: e.Record}, is, worth(there && is.before(x.latest)))
		}
	}
	return own, s.close()
}
