package build

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// emissionHead is what every build needs of an assignment's emission.
//
// In the cache it is a byte of flags, the digest of the objects, the folder's tree
// id, and, as uvarints of their lengths with their bytes: the diagnostics in JSON,
// what Index needs to know, what outlives the assignment in JSON, and each file's path, followed by its id, its size and
// whether it is executable.
type emissionHead struct {
	failed, orphan bool
	// passing says that the next build may see something else, so that the head is
	// not kept.
	passing        bool
	hasDiagnostics bool
	objects        [objectsSize]byte
	tree           [idSize]byte
	diagnostics    []diag.Diagnostic
	shared         json.RawMessage
	retention      retention
	files          []tree.File

	rest []byte // what decodeHead has not looked at
}

const (
	headFailed = 1 << iota
	headOrphan
	headDiagnostics
)

// objectsSize is the size of a digest of objects, and idSize that of git's ids.
const (
	objectsSize = 16
	idSize      = 20
	fixedSize   = 1 + objectsSize + idSize
)

// objectsDigest identifies the objects of an emission, in any order.
func objectsDigest(objects []backends.Object) (digest [objectsSize]byte) {
	names := make([]string, len(objects))
	for i, o := range objects {
		names[i] = fmt.Sprintf("%q %q %q %q\n", o.Group, o.Kind, o.Namespace, o.Name)
	}
	slices.Sort(names)
	h := sha256.New()
	for _, name := range names {
		h.Write([]byte(name))
	}
	copy(digest[:], h.Sum(nil))
	return digest
}

func appendBytes[T ~string | ~[]byte](b []byte, s T) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

func (h *emissionHead) encode() []byte {
	flags := byte(0)
	for _, f := range []struct {
		set  bool
		flag byte
	}{{h.failed, headFailed}, {h.orphan, headOrphan}, {len(h.diagnostics) > 0, headDiagnostics}} {
		if f.set {
			flags |= f.flag
		}
	}
	b := append(append([]byte{flags}, h.objects[:]...), h.tree[:]...)
	if len(h.diagnostics) > 0 {
		text, _ := json.Marshal(h.diagnostics) // of strings and numbers
		b = appendBytes(b, text)
	}
	b = appendBytes(b, h.shared)
	b = appendBytes(b, h.retention.encode())
	for _, f := range h.files {
		id, _ := hex.DecodeString(string(f.ID)) // made by tree.BlobID
		b = append(appendBytes(b, f.Path), id...)
		b = appendBool(binary.AppendUvarint(b, uint64(f.Size)), f.Executable)
	}
	return b
}

// decodeHead reads the part of a head that has a fixed place.
func decodeHead(b []byte) (h emissionHead, ok bool) {
	if len(b) < fixedSize {
		return h, false
	}
	h = emissionHead{
		failed:         b[0]&headFailed != 0,
		orphan:         b[0]&headOrphan != 0,
		hasDiagnostics: b[0]&headDiagnostics != 0,
		rest:           b[fixedSize:],
	}
	copy(h.objects[:], b[1:])
	copy(h.tree[:], b[1+objectsSize:])
	return h, true
}

var errHead = errors.New("the head of an emission is damaged")

func takeBytes(b []byte) (taken, rest []byte, err error) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, errHead
	}
	return b[size : size+int(n)], b[size+int(n):], nil
}

func appendBool(b []byte, is bool) []byte {
	if is {
		return append(b, 1)
	}
	return append(b, 0)
}

func takeBool(b []byte) (is bool, rest []byte, err error) {
	if len(b) == 0 || b[0] > 1 {
		return false, nil, errHead
	}
	return b[0] == 1, b[1:], nil
}

// decodeDiagnostics reads the diagnostics of a head.
func (h *emissionHead) decodeDiagnostics() (ds []diag.Diagnostic, err error) {
	if !h.hasDiagnostics {
		return nil, nil
	}
	text, _, err := takeBytes(h.rest)
	if err == nil {
		err = json.Unmarshal(text, &ds)
	}
	return ds, err
}

// decodeShared reads what Index needs to know and what outlives the assignment, and
// returns what follows.
func (h *emissionHead) decodeShared() (rest []byte, err error) {
	rest = h.rest
	if h.hasDiagnostics {
		if _, rest, err = takeBytes(rest); err != nil {
			return nil, err
		}
	}
	text, rest, err := takeBytes(rest)
	if len(text) > 0 {
		h.shared = text
	}
	if err == nil {
		text, rest, err = takeBytes(rest)
	}
	if err == nil && len(text) > 0 {
		err = json.Unmarshal(text, &h.retention)
	}
	return rest, err
}

// decode reads all of a head.
func (h *emissionHead) decode() (err error) {
	if h.diagnostics, err = h.decodeDiagnostics(); err != nil {
		return err
	}
	rest, err := h.decodeShared()
	if err != nil {
		return err
	}
	var text []byte
	for len(rest) > 0 {
		if text, rest, err = takeBytes(rest); err != nil {
			return err
		}
		if len(rest) < idSize {
			return errHead
		}
		f := tree.File{Path: string(text), ID: tree.ID(hex.EncodeToString(rest[:idSize]))}
		size, n := binary.Uvarint(rest[idSize:])
		if n <= 0 {
			return errHead
		}
		f.Size = int64(size)
		if f.Executable, rest, err = takeBool(rest[idSize+n:]); err != nil {
			return err
		}
		h.files = append(h.files, f)
	}
	return nil
}

// encodeBody writes files and objects as uvarints of their numbers and, for each
// of their parts, of its length with its bytes. Whether a file is executable is a
// byte.
func encodeBody(files []backends.File, objects []backends.Object) []byte {
	b := binary.AppendUvarint(nil, uint64(len(files)))
	for _, f := range files {
		b = appendBool(appendBytes(appendBytes(b, f.Path), f.Data), f.Executable)
	}
	b = binary.AppendUvarint(b, uint64(len(objects)))
	for _, o := range objects {
		for _, s := range []string{o.Group, o.Kind, o.Namespace, o.Name} {
			b = appendBytes(b, s)
		}
	}
	return b
}

// decodeBody reads what encodeBody writes, and nothing else.
func decodeBody(b []byte) (files []backends.File, objects []backends.Object, err error) {
	take := func() []byte {
		if err != nil {
			return nil
		}
		var taken []byte
		taken, b, err = takeBytes(b)
		return taken
	}
	takeBool := func() (is bool) {
		if err == nil {
			is, b, err = takeBool(b)
		}
		return is
	}
	count := func() int {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)) {
			err = errHead
			return 0
		}
		b = b[size:]
		return int(n)
	}
	for range count() {
		files = append(files, backends.File{Path: string(take()), Data: take(), Executable: takeBool()})
	}
	if err != nil {
		return nil, nil, err
	}
	for range count() {
		objects = append(objects, backends.Object{Group: string(take()), Kind: string(take()), Namespace: string(take()), Name: string(take())})
	}
	if err == nil && len(b) > 0 {
		err = errHead
	}
	return files, objects, err
}
