package cache

import (
	"crypto/sha256"
	"encoding/binary"
)

// Every stored file begins with a header that repeats its name. So a file at another file's place
// is recognised as foreign, even if its hash is right:
//
//	magic    8 bytes
//	format   1 byte
//	kind     1 byte
//	level    2 bytes length, text
//	name     4 bytes length, text: the table's name, or the 32 bytes of an entry's key
//
// Numbers are big-endian here and in all files of the cache.
const (
	magic  = "kalypso\x00"
	format = 1
)

// kind is the kind of data after a header.
type kind byte

const (
	kindEntry kind = 'e' // a single result
	kindTable kind = 't' // the rows of a table
)

// A header describes the content of a file.
type header struct {
	kind  kind
	level Level
	name  string
}

// append appends the header in its file format.
func (h header) append(to []byte) []byte {
	to = append(to, magic...)
	to = append(to, format, byte(h.kind))
	to = binary.BigEndian.AppendUint16(to, uint16(len(h.level)))
	to = append(to, h.level...)
	to = binary.BigEndian.AppendUint32(to, uint32(len(h.name)))
	return append(to, h.name...)
}

// parseHeader returns a header and the data after it.
func parseHeader(data []byte) (h header, rest []byte, ok bool) {
	r := reader{data: data}
	if string(r.bytes(len(magic))) != magic || r.uint8() != format {
		return header{}, nil, false
	}
	h.kind = kind(r.uint8())
	h.level = Level(r.bytes(int(r.uint16())))
	h.name = string(r.bytes(int(r.uint32())))
	return h, r.data, !r.failed
}

// begin writes a header, with room for a payload of the given size, and for the seal.
func (h header) begin(size int) []byte {
	return h.append(make([]byte, 0, len(magic)+8+len(h.level)+len(h.name)+size+sha256.Size))
}

// seal returns a header with a payload, sealed, and its hash.
func (h header) seal(payload []byte) ([]byte, digest) {
	return seal(append(h.begin(len(payload)), payload...))
}

// seal adds a hash of a header and its payload, because bytes from a remote cache have no other
// proof that they are complete. It also returns the hash of the result.
func seal(data []byte) ([]byte, digest) {
	h := sha256.New()
	h.Write(data)
	data = h.Sum(data)
	h.Write(data[len(data)-sha256.Size:])
	return data, digest(h.Sum(nil))
}

// unseal is the reverse of seal. It shares the payload with data.
func unseal(data []byte) (h header, payload []byte, ok bool) {
	if len(data) < sha256.Size {
		return header{}, nil, false
	}
	body, sum := data[:len(data)-sha256.Size], data[len(data)-sha256.Size:]
	if sha256.Sum256(body) != digest(sum) {
		return header{}, nil, false
	}
	return parseHeader(body)
}

// open returns the payload of data, if h is the header of data.
func (h header) open(data []byte) ([]byte, bool) {
	got, payload, ok := unseal(data)
	return payload, ok && got == h
}

// A digest is a SHA-256 of bytes that the cache stores.
type digest = [sha256.Size]byte

// A reader takes values from the front of bytes. After the first missing value it has
// failed, and returns zeros.
type reader struct {
	data   []byte
	failed bool
}

// bytes returns the next n bytes; nil if there are fewer.
func (r *reader) bytes(n int) []byte {
	if r.failed || n < 0 || n > len(r.data) {
		r.failed, r.data = true, nil
		return nil
	}
	b := r.data[:n:n]
	r.data = r.data[n:]
	return b
}

func (r *reader) uint8() (n uint8) {
	if b := r.bytes(1); b != nil {
		n = b[0]
	}
	return n
}

func (r *reader) uint16() (n uint16) {
	if b := r.bytes(2); b != nil {
		n = binary.BigEndian.Uint16(b)
	}
	return n
}

func (r *reader) uint32() (n uint32) {
	if b := r.bytes(4); b != nil {
		n = binary.BigEndian.Uint32(b)
	}
	return n
}
