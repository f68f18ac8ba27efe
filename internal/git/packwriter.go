package git

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/klauspost/compress/zlib"
)

// largeOffset is the first offset that does not fit into 31 bits.
const largeOffset = 1 << 31

// PackWriter writes new objects, all into one pack. It makes no deltas: generated files are
// small, and the time to write them matters more than the space that `git gc` will save.
// Add may be called by several goroutines at once; Finish and Abort must not be called
// before all Adds have returned.
type PackWriter struct {
	repository *Repository

	mu      sync.Mutex
	file    *os.File // nil before the first object
	out     *bufio.Writer
	size    int64
	entries []packEntry
	known   map[Hash]struct{}
	keep    string // the file that keeps `git repack` from removing the pack, or ""
	name    string // of the finished pack, without .pack
}

// packEntry takes 40 bytes for each object.
type packEntry struct {
	offset int64
	crc    uint32
	id     Hash
}

// NewPack returns a writer for new objects. Nothing is created before the first
// one. Either Finish or Abort ends it.
func (r *Repository) NewPack() *PackWriter {
	return &PackWriter{repository: r, known: map[Hash]struct{}{}}
}

// Add writes an object, unless it was added before, and returns its id. It does not retain
// data.
func (w *PackWriter) Add(kind Kind, data []byte) (Hash, error) {
	return w.AddAs(ID(kind, data), kind, data)
}

// AddAs is Add for an object whose id is known.
func (w *PackWriter) AddAs(id Hash, kind Kind, data []byte) (Hash, error) {
	if len(data) > maxObject {
		return id, fmt.Errorf("a %s of %d bytes is too large", kind, len(data))
	}
	w.mu.Lock()
	_, known := w.known[id]
	w.known[id] = struct{}{}
	w.mu.Unlock()
	if known {
		return id, nil
	}
	e := encoders.Get().(*encoder)
	defer encoders.Put(e)
	if err := e.encode(kind, data); err != nil {
		return id, err
	}
	return id, w.append(id, e.buffer.Bytes())
}

// append writes an object in the format of packs.
func (w *PackWriter) append(id Hash, encoded []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file == nil {
		if err := w.create(); err != nil {
			return err
		}
	}
	if _, err := w.out.Write(encoded); err != nil {
		return err
	}
	w.entries = append(w.entries, packEntry{w.size, crc32.ChecksumIEEE(encoded), id})
	w.size += int64(len(encoded))
	return nil
}

// encoder encodes objects in the format of packs.
type encoder struct {
	buffer bytes.Buffer
	zlib   *zlib.Writer
}

// encoders are reused because each needs more memory than most objects.
var encoders = sync.Pool{New: func() any {
	z, _ := zlib.NewWriterLevel(nil, zlib.BestSpeed) // which is a level
	return &encoder{zlib: z}
}}

func (e *encoder) encode(kind Kind, data []byte) error {
	e.buffer.Reset()
	e.buffer.Write(header(kind, len(data)))
	e.zlib.Reset(&e.buffer)
	if _, err := e.zlib.Write(data); err != nil {
		return err
	}
	return e.zlib.Close()
}

// Path returns the finished pack's file; "" if no object was added.
func (w *PackWriter) Path() string {
	if w.name == "" {
		return ""
	}
	return w.name + ".pack"
}

// Len returns the number of distinct objects that were added.
func (w *PackWriter) Len() int { return len(w.entries) }

// Size returns the size of the pack so far, in bytes.
func (w *PackWriter) Size() int64 { return w.size }

// create makes the file under a temporary name, which git removes some day if it stays.
func (w *PackWriter) create() error {
	dir := filepath.Join(w.repository.dir, "objects", "pack")
	if err := w.repository.step("create", filepath.Join(dir, "tmp_pack")); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	f, err := createTemp(dir, "tmp_pack_")
	if err != nil {
		return err
	}
	w.file, w.out = f, bufio.NewWriterSize(f, 1<<18)
	w.size = packHeader
	_, err = w.out.Write(make([]byte, packHeader)) // until the objects are counted
	return err
}

const packHeader = 12

// header returns the header of an object in a pack: kind and size.
func header(kind Kind, size int) []byte {
	b := byte(kind)<<4 | byte(size&15)
	var all []byte
	for size >>= 4; size > 0; size >>= 7 {
		all = append(all, b|0x80)
		b = byte(size & 0x7f)
	}
	return append(all, b)
}

// Finish adds the objects to the repository, on the disk. After that they can be read. It writes
// the index last, because git ignores a pack without one. Until a ref refers to the objects, `git
// repack` of another process would remove them. A .keep file next to the pack prevents that until
// Abort.
func (w *PackWriter) Finish() error {
	if w.file == nil {
		return nil
	}
	if err := w.finish(); err != nil {
		return errors.Join(fmt.Errorf("writing objects to %s: %w", w.repository.dir, err), w.Abort())
	}
	return nil
}

func (w *PackWriter) finish() error {
	if err := w.repository.step("write", w.file.Name()); err != nil {
		return err
	}
	sum, err := w.seal()
	if err != nil {
		return err
	}
	if err := w.writeBeside(sum, ".keep", "kalypso\n"); err != nil {
		return err
	}
	w.keep = w.name + ".keep"
	return w.place(sum)
}

// writeBeside sets the name of the pack, and writes a file of that name with another suffix.
func (w *PackWriter) writeBeside(sum Hash, suffix, text string) error {
	w.name = filepath.Join(filepath.Dir(w.file.Name()), "pack-"+sum.String())
	file := w.name + suffix
	if err := w.repository.step(suffix[1:], file); err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(text), 0o444); err != nil &&
		!errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

// place moves the sealed pack and its index to their names.
func (w *PackWriter) place(sum Hash) error {
	if _, err := os.Stat(w.name + ".idx"); err == nil {
		return w.discard() // a pack of the same objects exists
	}
	index, err := w.index(filepath.Dir(w.name), sum)
	if err != nil {
		return err
	}
	return errors.Join(w.publish(index, w.name), ignoreMissing(os.Remove(index)))
}

// publish moves the two files to their names.
func (w *PackWriter) publish(index, name string) error {
	if err := w.repository.step("rename", name+".pack"); err != nil {
		return err
	}
	if err := os.Rename(w.file.Name(), name+".pack"); err != nil {
		return err
	}
	w.file = nil
	dir := filepath.Dir(name)
	// The pack's name must not reach the disk after the index's.
	if err := syncDir(dir); err != nil {
		return err
	}
	if err := w.repository.step("rename", name+".idx"); err != nil {
		return err
	}
	if err := os.Rename(index, name+".idx"); err != nil {
		return err
	}
	return syncDir(dir)
}

// seal completes the pack with its header and its checksum, which it returns.
// The header has the number of objects, so the file is read once more.
func (w *PackWriter) seal() (Hash, error) {
	var sum Hash
	if err := w.out.Flush(); err != nil {
		return sum, err
	}
	head := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), uint32(len(w.entries)))
	if _, err := w.file.WriteAt(head, 0); err != nil {
		return sum, err
	}
	h := sha1.New()
	if _, err := io.CopyBuffer(h, io.NewSectionReader(w.file, 0, w.size),
		make([]byte, 1<<18)); err != nil {
		return sum, err
	}
	h.Sum(sum[:0])
	if _, err := w.file.WriteAt(sum[:], w.size); err != nil {
		return sum, err
	}
	return sum, settle(w.file)
}

// index writes the pack's index to a temporary file, whose name it returns.
func (w *PackWriter) index(dir string, sum Hash) (name string, err error) {
	f, err := createTemp(dir, "tmp_idx_")
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	out := bufio.NewWriterSize(f, 1<<16)
	h := sha1.New()
	if err := writeIndex(io.MultiWriter(out, h), w.entries, sum); err != nil {
		return "", errors.Join(err, f.Close())
	}
	if _, err := out.Write(h.Sum(nil)); err != nil {
		return "", errors.Join(err, f.Close())
	}
	if err := out.Flush(); err != nil {
		return "", errors.Join(err, f.Close())
	}
	return f.Name(), settle(f)
}

// writeIndex writes an index of version 2 without its own checksum
// (https://git-scm.com/docs/gitformat-pack). It sorts the entries.
func writeIndex(out io.Writer, entries []packEntry, sum Hash) error {
	slices.SortFunc(entries, func(a, b packEntry) int { return bytes.Compare(a.id[:], b.id[:]) })
	head := []byte(indexMagic)
	n := 0
	for first := range 256 {
		for n < len(entries) && int(entries[n].id[0]) == first {
			n++
		}
		head = binary.BigEndian.AppendUint32(head, uint32(n))
	}
	if _, err := out.Write(head); err != nil {
		return err
	}
	for i := range entries {
		if _, err := out.Write(entries[i].id[:]); err != nil {
			return err
		}
	}
	var b [8]byte
	for _, e := range entries {
		binary.BigEndian.PutUint32(b[:], e.crc)
		if _, err := out.Write(b[:4]); err != nil {
			return err
		}
	}
	var large []int64
	for _, e := range entries {
		offset := uint32(e.offset)
		if e.offset >= largeOffset {
			offset = largeOffset | uint32(len(large))
			large = append(large, e.offset)
		}
		binary.BigEndian.PutUint32(b[:], offset)
		if _, err := out.Write(b[:4]); err != nil {
			return err
		}
	}
	for _, offset := range large {
		binary.BigEndian.PutUint64(b[:], uint64(offset))
		if _, err := out.Write(b[:]); err != nil {
			return err
		}
	}
	_, err := out.Write(sum[:])
	return err
}

// createTemp makes a file under a random name. Unlike os.CreateTemp it uses git's
// permissions of objects, as far as the umask allows.
func createTemp(dir, prefix string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, prefix+rand.Text()), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o444)
}

// settle syncs a file to the disk and closes it.
func settle(f *os.File) error { return errors.Join(f.Sync(), f.Close()) }

// Abort discards the objects before Finish. After Finish they stay, and `git repack` may
// remove the ones without references.
func (w *PackWriter) Abort() error {
	err := w.discard()
	if w.keep != "" {
		err = errors.Join(err, ignoreMissing(os.Remove(w.keep)))
		w.keep = ""
	}
	return err
}

// discard removes an unfinished pack.
func (w *PackWriter) discard() error {
	if w.file == nil {
		return nil
	}
	name := w.file.Name()
	w.file.Close() // a second time, if Finish failed
	w.file = nil
	return ignoreMissing(os.Remove(name))
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
