package project

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Workers are spoken to in frames: eight bytes with the length of what follows,
// the most significant first, then JSON. A frame with a Job is answered by one
// with a reply.

// reply is what a worker answers.
type reply struct {
	Outcome Outcome
	// Error is what Render returned beside the outcome; "" for nothing.
	Error string `json:",omitempty"`
	// Spent says that the worker ends now, as it has grown.
	Spent bool `json:",omitempty"`
}

const (
	// maxReply bounds what a worker may answer. JSON needs more for some characters
	// than the manifests that it is made from.
	maxReply = 64 << 20
	// maxJob bounds a job: the largest source that is fetched, and then some.
	maxJob = 1 << 30
)

var errTooLong = errors.New("too long")

func writeFrame(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write a frame: %w", err)
	}
	return writeBytes(w, b)
}

func writeBytes(w io.Writer, b []byte) error {
	if _, err := w.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b)))); err != nil {
		return err
	}
	_, err := w.Write(b)
	return err
}

// readFrame reads a frame of at most limit bytes: errTooLong where it is longer,
// io.EOF where there is none.
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
	return json.Unmarshal(b, v)
}
