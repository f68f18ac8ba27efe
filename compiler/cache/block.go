package cache

import (
	"container/list"
	"crypto/sha256"
	"errors"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"
)

// blockSize is how long a block is without compression before it is closed.
// Similar bodies stand together in one and so compress well, and one body costs
// reading no more than this.
const blockSize = 256 << 10

// encoder and decoder are those of all caches of the process: making one costs
// more than using it, and both may be used by any number of goroutines.
var (
	encoder = sync.OnceValue(func() *zstd.Encoder {
		// Only a wrong option is an error. The cache has hashes of its own.
		// A single segment says how long it will be, however short it is. Blocks are short,
		// and what an encoder has ready for long ones is memory only.
		e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false),
			zstd.WithSingleSegment(true), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(blockSize), zstd.WithEncoderConcurrency(runtime.GOMAXPROCS(0)))
		if err != nil {
			panic(err)
		}
		return e
	})
	decoder = sync.OnceValue(func() *zstd.Decoder {
		// What DecodeAll writes is bounded by the capacity that it is given.
		d, err := zstd.NewReader(nil, zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxMemory(maxBlock),
			zstd.WithDecoderConcurrency(runtime.GOMAXPROCS(0)))
		if err != nil {
			panic(err)
		}
		return d
	})
)

var errBlock = errors.New("a block of the cache is damaged")

// compressed reads a block from a data file as it is there, and verifies it.
func (b block) compressed(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || b.offset+int64(b.size) > info.Size() {
		return nil, errBlock
	}
	data := make([]byte, b.size)
	if _, err := f.ReadAt(data, b.offset); err != nil {
		return nil, err
	}
	if sha256.Sum256(data) != b.sum {
		return nil, errBlock
	}
	return data, nil
}

// read reads a block from a data file without its compression.
func (b block) read(file string) ([]byte, error) {
	data, err := b.compressed(file)
	if err != nil {
		return nil, err
	}
	return b.decompress(data)
}

// decompress never writes more than the index promises: what a small block claims
// to become is allocated only if the block itself says the same.
func (b block) decompress(data []byte) ([]byte, error) {
	var frame zstd.Header
	if err := frame.Decode(data); err != nil {
		return nil, errBlock
	}
	if !frame.HasFCS || frame.FrameContentSize != uint64(b.raw) {
		return nil, errBlock
	}
	raw, err := decoder().DecodeAll(data, make([]byte, 0, b.raw))
	if err != nil || len(raw) != int(b.raw) {
		return nil, errBlock
	}
	return raw, nil
}

// blocks keeps the blocks that were read last, because neighbours are read
// together: those of all tables of a cache, so that its memory is bounded however
// many tables there are. Any number of goroutines may use it; a block that
// several ask for at once is read once.
type blocks struct {
	owners atomic.Uint64

	mu    sync.Mutex
	bytes int64
	byKey map[blockKey]*list.Element
	order list.List // of *keptBlock, the one used last in front
}

// keptBytes bounds the blocks that are kept, without compression. A single block
// that is larger is kept until the next one is read.
const keptBytes = 8 << 20

// A blockKey is a block of a section, or of a writer. It holds the owner's number
// and not the owner, which would stay in memory with its blocks.
type blockKey struct {
	owner  uint64
	number uint32
}

type keptBlock struct {
	key  blockKey
	size int64
	once sync.Once
	raw  []byte
	err  error
}

// newOwner returns a number that no other section or writer of the cache has.
func (l *blocks) newOwner() uint64 { return l.owners.Add(1) }

// get returns a block, which must not be changed. An error is not kept: the file
// may come from a remote cache later.
func (l *blocks) get(key blockKey, b block, read func() ([]byte, error)) ([]byte, error) {
	k := l.keep(key, int64(b.raw))
	k.once.Do(func() { k.raw, k.err = read() })
	if k.err != nil {
		l.drop(k)
	}
	return k.raw, k.err
}

func (l *blocks) keep(key blockKey, size int64) *keptBlock {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.byKey[key]; ok {
		l.order.MoveToFront(e)
		return e.Value.(*keptBlock)
	}
	if l.byKey == nil {
		l.byKey = map[blockKey]*list.Element{}
	}
	k := &keptBlock{key: key, size: size}
	l.byKey[key] = l.order.PushFront(k)
	l.bytes += size
	for l.bytes > keptBytes && l.order.Len() > 1 {
		l.remove(l.order.Back())
	}
	return k
}

func (l *blocks) drop(k *keptBlock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.byKey[k.key]; ok && e.Value == k {
		l.remove(e)
	}
}

func (l *blocks) remove(e *list.Element) {
	k := l.order.Remove(e).(*keptBlock)
	delete(l.byKey, k.key)
	l.bytes -= k.size
}
