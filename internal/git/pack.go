package git

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"github.com/kalypso-io/kalypso/internal/regular"
)

// The kinds of deltas in a pack (https://git-scm.com/docs/gitformat-pack).
const (
	offsetDelta Kind = 6
	idDelta     Kind = 7
)

// maxChain is git's limit for deltas of deltas.
const maxChain = 4095

// pack is a pack in a repository. A lookup reads only the parts of the index that it needs. An
// index takes 14 MB for 500,000 objects. go-git reads and verifies all of it, and needs a tenth
// of a second for one object.
type pack struct {
	path   string      // without .idx and .pack
	index  io.ReaderAt // nil before the first lookup
	data   *os.File    // nil before the first read
	fanout [256]uint32 // number of ids with at most this first byte

	ids [searched * idSize]byte // the part of the index that was read last
	in  *bufio.Reader           // of data
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

// read returns the object at an offset, of at most most bytes. Its bases are taken from the
// cache, and added to it.
func (p *pack) read(offset, most int64, bases *bases) (Object, error) {
	o, held := bases.get(place{p, offset})
	if held && int64(len(o.Data)) > most {
		return Object{}, ErrTooLarge
	}
	if held {
		return Object{o.Kind, bytes.Clone(o.Data)}, nil
	}
	var deltas []entry
	for at := offset; !held; o, held = bases.get(place{p, at}) {
		e, err := p.entry(at, most)
		if err != nil {
			return Object{}, err
		}
		if e.base < 0 {
			o = Object{e.kind, e.data}
			break
		}
		if deltas = append(deltas, e); len(deltas) > maxChain {
			return Object{}, errors.New("it is a difference to too many others")
		}
		at, most = e.base, maxObject
	}
	for _, d := range slices.Backward(deltas) {
		bases.add(place{p, d.base}, o)
		var err error
		if o.Data, err = packfile.PatchDelta(o.Data, d.data); err != nil {
			return Object{}, err
		}
	}
	return o, nil
}

// entry is an object as the pack has it: whole, or as a delta of another.
type entry struct {
	kind Kind
	data []byte
	base int64 // the offset of the other, or -1
}

// entry reads the entry at an offset, if the object has at most most bytes.
func (p *pack) entry(offset, most int64) (entry, error) {
	if p.data == nil {
		f, err := regular.Open(p.path + ".pack")
		if err != nil {
			return entry{}, err
		}
		p.data = f
	}
	in := p.buffer()
	in.Reset(io.NewSectionReader(p.data, offset, 1<<62))
	kind, size, err := readHeader(in)
	if err != nil {
		return entry{}, err
	}
	e := entry{kind: kind, base: -1}
	switch kind {
	case CommitKind, TreeKind, BlobKind, TagKind:
		if size > most {
			return entry{}, ErrTooLarge
		}
	case offsetDelta, idDelta:
		if e.base, err = p.base(in, kind, offset); err != nil {
			return entry{}, err
		}
	default:
		return entry{}, fmt.Errorf("its kind is %d", kind)
	}
	err = inflate(in, func(z io.Reader) error {
		e.data, err = exactly(z, size)
		return err
	})
	if err != nil || e.base < 0 {
		return e, err
	}
	if size, err := resultSize(e.data); err != nil || size > maxObject {
		return entry{}, errors.Join(fmt.Errorf("its size is %d", size), err)
	} else if int64(size) > most {
		return entry{}, ErrTooLarge
	}
	return e, nil
}

// buffer returns the buffer for all reading of the pack.
func (p *pack) buffer() *bufio.Reader {
	if p.in == nil {
		p.in = bufio.NewReader(nil)
	}
	return p.in
}

// base reads the offset of the base of the delta at an offset.
func (p *pack) base(in *bufio.Reader, kind Kind, offset int64) (int64, error) {
	if kind == offsetDelta {
		distance, err := readDistance(in)
		if err != nil || distance <= 0 || distance >= offset {
			return 0, errors.Join(errors.New("it is a difference to what is not there"), err)
		}
		return offset - distance, nil
	}
	var id Hash
	if _, err := io.ReadFull(in, id[:]); err != nil {
		return 0, err
	}
	at, found, err := p.find(id)
	if err != nil || !found {
		return 0, errors.Join(fmt.Errorf("it is a difference to %s, which is not in its pack", id), err)
	}
	return at, nil
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

// readDistance reads the distance from a delta back to its base.
func readDistance(in io.ByteReader) (int64, error) {
	b, err := in.ReadByte()
	n := int64(b & 0x7f)
	for err == nil && b&0x80 != 0 && n < 1<<55 {
		b, err = in.ReadByte()
		n = (n+1)<<7 | int64(b&0x7f)
	}
	return n, err
}

// resultSize returns the size of a delta's result, as the delta states it.
func resultSize(delta []byte) (uint64, error) {
	in := bytes.NewReader(delta)
	if _, err := binary.ReadUvarint(in); err != nil {
		return 0, err
	}
	return binary.ReadUvarint(in)
}
