package git

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// IncomingPack is a pack from others that is being added to a repository. Either Finish or
// Abort ends it.
type IncomingPack struct {
	writer *PackWriter
	sum    Hash
	in     *bufio.Reader

	objects  []*incoming
	at       map[int64]*incoming  // by offset
	waiting  map[Hash][]*incoming // deltas, by the id of their base
	held     int64                // bytes of bases
	resolved int
}

// incoming is an object of an IncomingPack.
type incoming struct {
	packEntry
	kind     Kind
	size     int64
	content  int64       // where its compressed content begins
	end      int64       // where the next object begins
	children []*incoming // deltas of it, by offset
}

// maxHeld is the limit for the bytes of the bases in memory at once.
const maxHeld = 2 << 30

// ReceivePack reads a pack of at most most bytes, and computes the id of each object in it. It
// does not trust the pack, which must have the bases of all its deltas, and a correct checksum.
// Nothing can be read from it before Finish. ReceivePack returns an ErrTooLarge if the pack or an
// object is too large. The context ends it.
func (r *Repository) ReceivePack(ctx context.Context, in io.Reader, most int64) (*IncomingPack,
	error) {
	p := &IncomingPack{writer: r.NewPack(), at: map[int64]*incoming{}, waiting: map[Hash][]*incoming{}}
	err := p.receive(ctx, in, most)
	if err == nil {
		err = p.parse(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("receiving objects for %s: %w", r.dir, err), p.Abort())
	}
	return p, nil
}

// Len returns the number of objects in the pack.
func (p *IncomingPack) Len() int { return len(p.objects) }

// Finish adds the objects to the repository, on the disk. A promisor pack has objects that
// refer to others which a server has promised to send
// (https://git-scm.com/docs/partial-clone).
func (p *IncomingPack) Finish(promisor bool) error {
	w := p.writer
	if len(p.objects) == 0 {
		return p.Abort()
	}
	for _, o := range p.objects {
		w.entries = append(w.entries, o.packEntry)
	}
	err := settle(w.file)
	if err == nil && promisor {
		err = w.writeBeside(p.sum, ".promisor", "")
	} else {
		w.name = filepath.Join(filepath.Dir(w.file.Name()), "pack-"+p.sum.String())
	}
	if err == nil {
		err = w.place(p.sum)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing objects to %s: %w", w.repository.dir, err), p.Abort())
	}
	return nil
}

// Abort discards the pack, unless Finish was called.
func (p *IncomingPack) Abort() error { return p.writer.discard() }

// receive writes the pack to a temporary file.
func (p *IncomingPack) receive(ctx context.Context, in io.Reader, most int64) error {
	dir := filepath.Join(p.writer.repository.dir, "objects", "pack")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	f, err := createTemp(dir, "tmp_pack_")
	if err != nil {
		return err
	}
	p.writer.file = f
	n, err := io.Copy(f, &stopping{ctx, io.LimitReader(in, most+1)})
	p.writer.size = n - int64(len(p.sum))
	switch {
	case err != nil:
		return err
	case n > most:
		return ErrTooLarge
	case p.writer.size < packHeader:
		return io.ErrUnexpectedEOF
	}
	return nil
}

// stopping is a reader that ends with a context.
type stopping struct {
	ctx context.Context
	io.Reader
}

func (s *stopping) Read(b []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.Reader.Read(b)
}

// parse finds the objects.
func (p *IncomingPack) parse(ctx context.Context) error {
	file := io.NewSectionReader(p.writer.file, 0, p.writer.size)
	source := &counting{Reader: &stopping{ctx, file}}
	p.in = bufio.NewReaderSize(source, 1<<16)
	head := make([]byte, packHeader)
	if _, err := io.ReadFull(p.in, head); err != nil {
		return err
	}
	if version := string(head[:8]); version != "PACK\x00\x00\x00\x02" &&
		version != "PACK\x00\x00\x00\x03" {
		return fmt.Errorf("%q is not the beginning of a pack", head[:8])
	}
	for range binary.BigEndian.Uint32(head[8:]) {
		at := func() int64 { return source.n - int64(p.in.Buffered()) }
		if err := p.scan(at); err != nil {
			return fmt.Errorf("the pack is damaged at byte %d: %w", at(), err)
		}
	}
	if source.n-int64(p.in.Buffered()) != p.writer.size {
		return errors.New("the pack has more in it than its objects")
	}
	if err := p.sums(ctx); err != nil {
		return err
	}
	// Compute the ids of deltas.
	whole := slices.DeleteFunc(slices.Clone(p.objects),
		func(o *incoming) bool { return o.kind > TagKind })
	p.resolved = len(whole)
	for _, o := range whole {
		if len(o.children)+len(p.waiting[o.id]) == 0 {
			continue
		}
		data, err := p.inflate(o)
		if err == nil {
			err = p.apply(ctx, o, data, 1)
		}
		if err != nil {
			return fmt.Errorf("object %s of the pack: %w", o.id, err)
		}
	}
	if p.resolved != len(p.objects) {
		return errors.New("the pack has differences to objects that are not in it")
	}
	return nil
}

type counting struct {
	io.Reader
	n int64
}

func (c *counting) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n += int64(n)
	return n, err
}

// scan reads the next object. A whole one gets its id, and a delta waits for its base.
func (p *IncomingPack) scan(at func() int64) (err error) {
	o := &incoming{packEntry: packEntry{offset: at()}}
	if o.kind, o.size, err = readHeader(p.in); err != nil {
		return err
	}
	into := io.Writer(io.Discard)
	var id hash.Hash
	switch o.kind {
	case CommitKind, TreeKind, BlobKind, TagKind:
		id = sha1.New()
		_, _ = io.WriteString(id, o.kind.String()+" "+strconv.FormatInt(o.size, 10)+"\x00")
		into = id
	case offsetDelta:
		distance, err := readDistance(p.in)
		base := p.at[o.offset-distance]
		if err != nil || base == nil {
			return errors.Join(errors.New("a difference to what is not there"), err)
		}
		base.children = append(base.children, o)
	case idDelta:
		var base Hash
		if _, err := io.ReadFull(p.in, base[:]); err != nil {
			return err
		}
		p.waiting[base] = append(p.waiting[base], o)
	default:
		return fmt.Errorf("an object of the kind %d", o.kind)
	}
	o.content = at()
	if o.size > maxObject {
		return ErrTooLarge
	}
	err = inflate(p.in, func(z io.Reader) error {
		n, err := io.Copy(into, io.LimitReader(z, o.size+1))
		if err == nil && n != o.size {
			err = fmt.Errorf("an object of another size than the %d that it says", o.size)
		}
		return err
	})
	if err != nil {
		return err
	}
	if id != nil {
		id.Sum(o.id[:0])
	}
	o.end = at()
	p.objects = append(p.objects, o)
	p.at[o.offset] = o
	return nil
}

// sums verifies the checksum of the pack, and computes the ids of its objects.
func (p *IncomingPack) sums(ctx context.Context) error {
	all := sha1.New()
	file := bufio.NewReaderSize(&stopping{ctx, io.NewSectionReader(p.writer.file, 0, p.writer.size)},
		1<<16)
	if _, err := io.CopyN(all, file, packHeader); err != nil {
		return err
	}
	for _, o := range p.objects {
		crc := crc32.NewIEEE()
		if _, err := io.CopyN(io.MultiWriter(all, crc), file, o.end-o.offset); err != nil {
			return err
		}
		o.crc = crc.Sum32()
	}
	if _, err := p.writer.file.ReadAt(p.sum[:], p.writer.size); err != nil {
		return err
	}
	if !bytes.Equal(all.Sum(nil), p.sum[:]) {
		return errors.New("the pack has not its checksum")
	}
	return nil
}

// apply computes the objects that are deltas of a base, and their own deltas. It releases the
// content of the base before the last of them. In a chain of deltas, only one object is in memory
// at a time.
func (p *IncomingPack) apply(ctx context.Context, base *incoming, data []byte, depth int) error {
	children := append(base.children, p.waiting[base.id]...)
	delete(p.waiting, base.id)
	size := int64(len(data))
	p.held += size
	defer func() { p.held -= size }()
	if p.held > maxHeld || depth > maxChain {
		return ErrTooLarge
	}
	for i, o := range children {
		if err := ctx.Err(); err != nil {
			return err
		}
		made, err := p.patch(o, base.kind, data)
		if err != nil {
			return err
		}
		if i == len(children)-1 {
			p.held -= size
			data, size = nil, 0
		}
		if len(o.children)+len(p.waiting[o.id]) == 0 {
			continue
		}
		if err := p.apply(ctx, o, made, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// patch computes an object from its delta and its base.
func (p *IncomingPack) patch(o *incoming, kind Kind, base []byte) ([]byte, error) {
	delta, err := p.inflate(o)
	if err != nil {
		return nil, err
	}
	if size, err := resultSize(delta); err != nil || size > maxObject {
		return nil, errors.Join(ErrTooLarge, err)
	}
	data, err := packfile.PatchDelta(base, delta)
	if err != nil {
		return nil, err
	}
	o.kind, o.id = kind, ID(kind, data)
	p.resolved++
	return data, nil
}

// inflate returns the data of an entry.
func (p *IncomingPack) inflate(o *incoming) (data []byte, err error) {
	p.in.Reset(io.NewSectionReader(p.writer.file, o.content, o.end-o.content))
	err = inflate(p.in, func(z io.Reader) error {
		data, err = exactly(z, o.size)
		return err
	})
	return data, err
}
