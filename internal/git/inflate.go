package git

import (
	"bytes"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zlib"
)

// inflaters are reused because each needs more memory than most objects.
var inflaters = sync.Pool{New: func() any { return &inflater{} }}

// inflater reads compressed streams, one after the other.
type inflater struct{ zlib io.ReadCloser }

// inflate calls a function with a reader of the decompressed stream.
func inflate(in io.Reader, f func(io.Reader) error) error {
	z := inflaters.Get().(*inflater)
	defer inflaters.Put(z)
	if z.zlib == nil {
		var err error
		if z.zlib, err = zlib.NewReader(in); err != nil {
			return err
		}
	} else if err := z.zlib.(zlib.Resetter).Reset(in, nil); err != nil {
		return err
	}
	return f(z.zlib)
}

// exactly reads a stream of the size. Memory is allocated for the bytes that arrive, not
// for the announced size.
func exactly(in io.Reader, size int64) ([]byte, error) {
	if size < 0 || size > maxObject {
		return nil, fmt.Errorf("its size is %d", size)
	}
	var b bytes.Buffer
	b.Grow(int(min(size, 1<<20)) + bytes.MinRead)
	n, err := io.Copy(&b, io.LimitReader(in, size+1))
	if err == nil && n != size {
		err = fmt.Errorf("its size is not the %d that it says", size)
	}
	return b.Bytes(), err
}
