package engine

import (
	"errors"
	"io"
	"os"
	"runtime"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/internal/scratch"
)

// spill stores the files of assignments from their emission until they are written. The build
// does not know until the end whether it will write them. A small part is in memory, and the rest
// is in a temporary file. The build emits files again that spill cannot store. spill is safe for
// concurrent use by multiple goroutines.
type spill struct {
	mu     sync.Mutex
	blocks []spillBlock
	held   int // bytes of blocks in memory
	file   *os.File
	size   int64        // the size of file
	remove func() error // removes the folder of file
	broken bool         // whether blocks can no longer be written to the file
}

// spillBlock is a block: compressed files of assignments. data is nil if the block is in the file.
type spillBlock struct {
	data   []byte
	offset int64
	length int
	raw    int // length without compression
}

// extent is the location of an assignment's files in a spill; the zero value is for no location.
type extent struct {
	block          int32 // its number, from 1
	offset, length int32
}

const (
	// blockSize is the length, without compression, at which a block is closed.
	blockSize = 256 << 10
	// maxHeld is the number of bytes of compressed files that stay in memory.
	maxHeld = 8 << 20
)

// encoder and decoder compress blocks. They are shared, because making one costs more than using
// it.
var (
	encoder = sync.OnceValue(func() *zstd.Encoder {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest),
			zstd.WithLowerEncoderMem(true),
			zstd.WithWindowSize(blockSize), zstd.WithEncoderConcurrency(runtime.GOMAXPROCS(0)))
		if err != nil {
			panic(err) // only a wrong option causes an error
		}
		return e
	})
	decoder = sync.OnceValue(func() *zstd.Decoder {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(runtime.GOMAXPROCS(0)))
		if err != nil {
			panic(err)
		}
		return d
	})
)

// add stores the files of assignments, and returns their extents.
func (s *spill) add(assignments [][]backends.File) []extent {
	out := make([]extent, len(assignments))
	var block []byte
	first := 0 // the first assignment of the block
	end := func(next int) {
		number, ok := s.addBlock(block)
		for i := first; i < next; i++ {
			if out[i].block = number; !ok {
				out[i] = extent{}
			}
		}
		block, first = block[:0], next
	}
	for i, files := range assignments {
		begin := len(block)
		for _, f := range files {
			block = appendBool(appendBytes(appendBytes(block, f.Path), f.Data), f.Executable)
		}
		out[i] = extent{offset: int32(begin), length: int32(len(block) - begin)}
		if len(block) >= blockSize {
			end(i + 1)
		}
	}
	if first < len(assignments) {
		end(len(assignments))
	}
	return out
}

// addBlock stores a block, and returns its number. ok is false if it cannot store the block.
func (s *spill) addBlock(raw []byte) (number int32, ok bool) {
	data := encoder().EncodeAll(raw, nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	b := spillBlock{data: data, length: len(data), raw: len(raw)}
	if s.held+len(data) > maxHeld {
		if s.broken || s.write(data) != nil {
			s.broken = true
			return 0, false
		}
		b.data, b.offset = nil, s.size
		s.size += int64(len(data))
	} else {
		s.held += len(data)
	}
	s.blocks = append(s.blocks, b)
	return int32(len(s.blocks)), true
}

// write appends data to the file, which it creates if necessary.
func (s *spill) write(data []byte) error {
	if s.file == nil {
		dir, remove, err := scratch.Dir("files")
		if err != nil {
			return err
		}
		if s.file, err = os.CreateTemp(dir, ""); err != nil {
			return errors.Join(err, remove())
		}
		s.remove = remove
	}
	_, err := s.file.WriteAt(data, s.size)
	return err
}

// read returns the files of assignments, with nil for files that it does not have. It is fastest
// for assignments that were added together.
func (s *spill) read(at []extent) [][]backends.File {
	out := make([][]backends.File, len(at))
	var raw []byte
	number := int32(0)
	for i, e := range at {
		if e.block == 0 {
			continue
		}
		if e.block != number {
			number, raw = e.block, s.block(e.block)
		}
		if raw != nil {
			out[i] = filesOf(raw[e.offset : e.offset+e.length])
		}
	}
	return out
}

// block returns a block without compression. It returns nil if the block cannot be read.
func (s *spill) block(number int32) []byte {
	s.mu.Lock()
	b, file := s.blocks[number-1], s.file
	s.mu.Unlock()
	if b.data == nil {
		b.data = make([]byte, b.length)
		if _, err := file.ReadAt(b.data, b.offset); err != nil && !errors.Is(err, io.EOF) {
			return nil
		}
	}
	raw, err := decoder().DecodeAll(b.data, make([]byte, 0, b.raw))
	if err != nil || len(raw) != b.raw {
		return nil
	}
	return raw
}

// filesOf decodes the files of an assignment. They share their bytes with b.
func filesOf(b []byte) []backends.File {
	files := []backends.File{}
	for len(b) > 0 {
		path, rest, err := takeBytes(b)
		if err != nil {
			return nil
		}
		data, rest, err := takeBytes(rest)
		if err != nil {
			return nil
		}
		executable, rest, err := takeBool(rest)
		if err != nil {
			return nil
		}
		files, b = append(files, backends.File{Path: string(path), Data: data, Executable: executable}),
			rest
	}
	return files
}

// close removes the temporary file, if there is one.
func (s *spill) close() error {
	if s.remove == nil {
		return nil
	}
	return errors.Join(s.file.Close(), s.remove())
}
