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

// spill holds the files of assignments from when they are emitted until they are written:
// whether anything is written is known when all are emitted. It has little of them in memory,
// and the rest in a temporary file. What it cannot hold is emitted again. Any number of
// goroutines may use it.
type spill struct {
	mu     sync.Mutex
	blocks []spilled
	held   int // bytes of blocks in memory
	file   *os.File
	size   int64        // of file
	remove func() error // the folder of file
	broken bool         // nothing can be added
}

// spilled is a block: compressed files of assignments. Data is nil where it is in the file.
type spilled struct {
	data   []byte
	offset int64
	length int
	raw    int // length without compression
}

// extent is where the files of an assignment are; the zero value is for nowhere.
type extent struct {
	block          int32 // its number, from 1
	offset, length int32
}

const (
	// blockSize is how long a block is, without compression, before it is closed.
	blockSize = 256 << 10
	// maxHeld is how much of compressed files stays in memory.
	maxHeld = 8 << 20
)

// encoder and decoder compress blocks. Making one costs more than using it.
var (
	encoder = sync.OnceValue(func() *zstd.Encoder {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithLowerEncoderMem(true),
			zstd.WithWindowSize(blockSize), zstd.WithEncoderConcurrency(runtime.GOMAXPROCS(0)))
		if err != nil {
			panic(err) // only a wrong option is an error
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

// add holds the files of assignments, and returns where.
func (s *spill) add(assignments [][]backends.File) []extent {
	out := make([]extent, len(assignments))
	var block []byte
	first := 0 // of the block
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

// addBlock holds a block, and returns its number.
func (s *spill) addBlock(raw []byte) (number int32, ok bool) {
	data := encoder().EncodeAll(raw, nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	b := spilled{data: data, length: len(data), raw: len(raw)}
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

// write appends to the file.
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

// read returns the files of assignments; nil for those that it does not hold. It is fastest for
// those that were added together.
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

// block returns a block without compression; nil where it cannot be read.
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

// filesOf reads the files of an assignment, which share their bytes with b.
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
		files, b = append(files, backends.File{Path: string(path), Data: data, Executable: executable}), rest
	}
	return files
}

// close removes the temporary file.
func (s *spill) close() error {
	if s.remove == nil {
		return nil
	}
	return errors.Join(s.file.Close(), s.remove())
}
