package worker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// Workers speak in frames. A frame is eight bytes with the length of its body, the most
// significant byte first, and then the body: the binary form of a request or a reply.

// request is a job for a handler.
type request struct {
	Handler string
	Job     []byte
	Limit   int64 // the processor time that it may take, in nanoseconds
}

// reply is the answer of a worker.
type reply struct {
	Data []byte
	// Error is the text of the error that the handler returned instead of Data, or "".
	Error string
	// TooLong reports that the answer is larger than the limit, so there is no Data.
	TooLong bool
	// Late reports that the job took more time than its limit, so there is no Data. The
	// worker ends.
	Late bool
	// Spent reports that the worker ends now, because it has grown.
	Spent bool
}

func (r reply) err() error {
	switch {
	case r.TooLong:
		return tooLong()
	case r.Error != "":
		return errors.New(r.Error)
	}
	return nil
}

const (
	// maxAnswer bounds the size of a worker's answer.
	maxAnswer = 64 << 20
	// maxJob bounds a job: the largest source that is fetched, and then some.
	maxJob = 1 << 30
)

var errTooLong = errors.New("too long")

func writeFrame(w io.Writer, v any) error {
	b := model.Encode(v)
	if _, err := w.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b)))); err != nil {
		return err
	}
	_, err := w.Write(b)
	return err
}

// readFrame reads a frame of at most limit bytes. It returns errTooLong if the frame is
// longer, and io.EOF if the input ends before the frame.
func readFrame(r io.Reader, limit uint64, v any) error {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint64(head[:])
	if n > limit {
		return errTooLong
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return fmt.Errorf("read a frame of %d bytes: %w", n, err)
	}
	return model.Decode(b, v)
}
