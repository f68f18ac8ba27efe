package git

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/klauspost/compress/zlib"
)

// The numbers of what a pack stores as a difference to another object
// (https://git-scm.com/docs/gitformat-pack).
const (
	offsetDelta Kind = 6
	idDelta     Kind = 7
)

// maxChain is git's limit for differences to differences.
const maxChain = 4095

// pack is a pack in a repository. Of its index only what is asked for is read: it
// takes 14 MB for 500,000 objects, and go-git, whose idxfile reads and checks all
// of it, a tenth of a second for one object.
type pack struct {
	path   string      // without .idx and .pack
	index  io.ReaderAt // nil until an object is looked for
	data   *os.File    // nil until an object is read
	fanout [256]uint32 // how many ids have at most this first byte
}

func (p *pack) close() error {
	var errs []error
	if f, ok := p.index.(*os.File); ok {
		errs = append(errs, f.Close())
	}
	if p.data != nil {
		errs = append(errs, p.data.Close())
	}
	p.index, p.data = nil, nil
	return errors.Join(errs...)
}

// smallIndex is up to which size an index is held in memory: a repository that
// is written to often has many packs, and files that are open are few.
const smallIndex = 1 << 16

// The beginning of an index of version 2, and places in it.
const (
	indexMagic  = "\xfftOc\x00\x00\x00\x02"
	indexHeader = 8
	indexNames  = indexHeader + 256*4
	idSize      = int64(len(Hash{}))
)

func (p *pack) openIndex() error {
	if p.index != nil {
		return nil
	}
	f, err := os.Open(p.path + ".idx")
	if err != nil {
		return err
	}
	p.index = f
	if err := p.readIndex(f); err != nil {
		return errors.Join(fmt.Errorf("reading %s.idx: %w", p.path, err), p.close())
	}
	return nil
}

func (p *pack) readIndex(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() <= smallIndex {
		data, err := io.ReadAll(f)
		if err != nil {
			return err
		}
		p.index = bytes.NewReader(data)
		if err := f.Close(); err != nil {
			return err
		}
	}
	head := make([]byte, indexNames)
	if _, err := p.index.ReadAt(head, 0); err != nil {
		return err
	}
	if !bytes.Equal(head[:indexHeader], []byte(indexMagic)) {
		return errors.New("it is not an index of version 2 (git index-pack makes one)")
	}
	last := uint32(0)
	for i := range p.fanout {
		p.fanout[i] = binary.BigEndian.Uint32(head[indexHeader+4*i:])
		if p.fanout[i] < last {
			return errors.New("it is corrupt")
		}
		last = p.fanout[i]
	}
	return nil
}

// find returns where an object is in the pack.
func (p *pack) find(id Hash) (offset int64, found bool, err error) {
	if err := p.openIndex(); err != nil {
		return 0, false, err
	}
	low, high := int64(0), int64(p.fanout[id[0]])
	if id[0] > 0 {
		low = int64(p.fanout[id[0]-1])
	}
	for low < high {
		mid := (low + high) / 2
		var at Hash
		if _, err := p.index.ReadAt(at[:], indexNames+mid*idSize); err != nil {
			return 0, false, err
		}
		switch c := bytes.Compare(id[:], at[:]); {
		case c < 0:
			high = mid
		case c > 0:
			low = mid + 1
		default:
			offset, err := p.offset(mid)
			return offset, err == nil, err
		}
	}
	return 0, false, nil
}

// offset returns where the n-th object is.
func (p *pack) offset(n int64) (int64, error) {
	count := int64(p.fanout[255])
	small := indexNames + count*(idSize+4)
	var b [8]byte
	if _, err := p.index.ReadAt(b[:4], small+n*4); err != nil {
		return 0, err
	}
	v := binary.BigEndian.Uint32(b[:])
	if v < largeOffset {
		return int64(v), nil
	}
	if _, err := p.index.ReadAt(b[:], small+count*4+int64(v-largeOffset)*8); err != nil {
		return 0, err
	}
	return int64(binary.BigEndian.Uint64(b[:])), nil
}

// read returns the object at an offset, which depth others are differences to.
func (p *pack) read(offset int64, depth int) (Object, error) {
	if depth > maxChain {
		return Object{}, errors.New("it is a difference to too many others")
	}
	if p.data == nil {
		f, err := os.Open(p.path + ".pack")
		if err != nil {
			return Object{}, err
		}
		p.data = f
	}
	in := bufio.NewReader(io.NewSectionReader(p.data, offset, 1<<62))
	kind, size, err := readHeader(in)
	if err != nil {
		return Object{}, err
	}
	base := int64(-1)
	switch kind {
	case CommitKind, TreeKind, BlobKind, TagKind:
	case offsetDelta:
		distance, err := readDistance(in)
		if err != nil || distance <= 0 || distance >= offset {
			return Object{}, errors.Join(errors.New("it is a difference to what is not there"), err)
		}
		base = offset - distance
	case idDelta:
		var id Hash
		if _, err := io.ReadFull(in, id[:]); err != nil {
			return Object{}, err
		}
		at, found, err := p.find(id)
		if err != nil || !found {
			return Object{}, errors.Join(fmt.Errorf("it is a difference to %s, which is not in its pack", id), err)
		}
		base = at
	default:
		return Object{}, fmt.Errorf("its kind is %d", kind)
	}
	z, err := zlib.NewReader(in)
	if err != nil {
		return Object{}, err
	}
	content, err := exactly(z, size)
	if err != nil || base < 0 {
		return Object{kind, content}, err
	}
	from, err := p.read(base, depth+1)
	if err != nil {
		return Object{}, err
	}
	if size, err := resultSize(content); err != nil || size > maxObject {
		return Object{}, errors.Join(fmt.Errorf("its size is %d", size), err)
	}
	from.Data, err = packfile.PatchDelta(from.Data, content)
	return from, err
}

// readHeader reads an object's kind and size.
func readHeader(in io.ByteReader) (Kind, int64, error) {
	b, err := in.ReadByte()
	kind, size := Kind(b>>4&7), int64(b&15)
	for shift := 4; err == nil && b&0x80 != 0; shift += 7 {
		if shift > 55 {
			return 0, 0, errors.New("its size has too many digits")
		}
		b, err = in.ReadByte()
		size |= int64(b&0x7f) << shift
	}
	return kind, size, err
}

// readDistance reads how far back a difference's base is.
func readDistance(in io.ByteReader) (int64, error) {
	b, err := in.ReadByte()
	n := int64(b & 0x7f)
	for err == nil && b&0x80 != 0 && n < 1<<55 {
		b, err = in.ReadByte()
		n = (n+1)<<7 | int64(b&0x7f)
	}
	return n, err
}

// resultSize returns the size that a difference says it makes.
func resultSize(delta []byte) (uint64, error) {
	in := bytes.NewReader(delta)
	if _, err := binary.ReadUvarint(in); err != nil {
		return 0, err
	}
	return binary.ReadUvarint(in)
}
