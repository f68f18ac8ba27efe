package git

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/kalypso-io/kalypso/internal/regular"
)

// smallIndex is the size of the largest index that is kept in memory: a repository that is
// written to often has many packs, and open files are limited.
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
	f, err := regular.Open(p.path + ".idx")
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

// find returns the offset of an object in the pack.
func (p *pack) find(id Hash) (offset int64, found bool, err error) {
	n, end, err := p.search(id)
	if err != nil || n == end {
		return 0, false, err
	}
	if at, err := p.id(n); err != nil || at != id {
		return 0, false, err
	}
	offset, err = p.offset(n)
	return offset, err == nil, err
}

// searched is the number of ids that are read at once, because reading costs more than comparing.
const searched = 64

// search returns the position of the first object whose id is not before id. end is the position
// after the last object whose id begins with the same byte. The search ends there.
func (p *pack) search(id Hash) (n, end int64, err error) {
	if err := p.openIndex(); err != nil {
		return 0, 0, err
	}
	low, high := int64(0), int64(p.fanout[id[0]])
	end = high
	if id[0] > 0 {
		low = int64(p.fanout[id[0]-1])
	}
	for high-low > searched {
		mid := (low + high) / 2
		at, err := p.id(mid)
		if err != nil {
			return 0, 0, err
		}
		if bytes.Compare(at[:], id[:]) < 0 {
			low = mid + 1
		} else {
			high = mid
		}
	}
	ids := p.ids[:(high-low)*idSize]
	if _, err := p.index.ReadAt(ids, indexNames+low*idSize); err != nil {
		return 0, 0, err
	}
	for ; low < high && bytes.Compare(ids[:idSize], id[:]) < 0; ids = ids[idSize:] {
		low++
	}
	return low, end, nil
}

// id returns the id of the n-th object.
func (p *pack) id(n int64) (id Hash, err error) {
	b := p.ids[:idSize]
	_, err = p.index.ReadAt(b, indexNames+n*idSize)
	return Hash(b), err
}

// offset returns the offset of the n-th object in the pack.
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
