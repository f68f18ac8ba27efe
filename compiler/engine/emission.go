package engine

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// emissionSummary is the part of an assignment's emission that every build needs.
//
// In the cache it is a byte of flags, the folder's tree id, the number of objects as a uvarint,
// and their ids. After these come four texts, each with its length as a uvarint before its bytes:
//   - the diagnostics in JSON, only with summaryDiagnostics;
//   - the quota requests in JSON, only with summaryRequests;
//   - the shared part for Index;
//   - the retention in JSON.
//
// The last part is the files, each as its path, its id, its size and whether it is executable.
type emissionSummary struct {
	failed, orphan bool
	// passing reports whether the next build may have another result, so that the cache does not
	// keep the summary.
	passing        bool
	hasDiagnostics bool
	hasRequests    bool
	objects        []byte // an objectDigest of each, in the order of the emission
	tree           [idSize]byte
	diagnostics    []diag.Diagnostic
	requests       kubernetes.Requests // nil if its workspace has no quota
	shared         json.RawMessage
	retention      retention
	files          []tree.File

	rest []byte // the part that decodeSummary has not decoded
}

const (
	summaryFailed = 1 << iota
	summaryOrphan
	summaryDiagnostics
	summaryRequests
)

// idSize is the size of git's ids.
const (
	idSize    = 20
	fixedSize = 1 + idSize
)

// objectDigest identifies an object. Objects with the same digest are compared.
type objectDigest [8]byte

func objectID(o backends.Object) objectDigest {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q", o.Group, o.Kind, o.Namespace, o.Name))
	return objectDigest(sum[:8])
}

func appendBytes[T ~string | ~[]byte](b []byte, s T) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

func (h *emissionSummary) encode() []byte {
	flags := byte(0)
	for _, f := range []struct {
		set  bool
		flag byte
	}{{h.failed, summaryFailed}, {h.orphan, summaryOrphan}, {len(h.diagnostics) > 0,
		summaryDiagnostics}, {h.requests != nil, summaryRequests}} {
		if f.set {
			flags |= f.flag
		}
	}
	b := binary.AppendUvarint(append([]byte{flags}, h.tree[:]...),
		uint64(len(h.objects)/len(objectDigest{})))
	b = append(b, h.objects...)
	if len(h.diagnostics) > 0 {
		text, _ := json.Marshal(h.diagnostics) // of strings and numbers
		b = appendBytes(b, text)
	}
	if h.requests != nil {
		text, _ := json.Marshal(h.requests)
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

// decodeSummary decodes the part of a summary that every build needs. ok is false if the summary
// is damaged.
func decodeSummary(b []byte) (h emissionSummary, ok bool) {
	if len(b) < fixedSize {
		return h, false
	}
	h = emissionSummary{
		failed:         b[0]&summaryFailed != 0,
		orphan:         b[0]&summaryOrphan != 0,
		hasDiagnostics: b[0]&summaryDiagnostics != 0,
		hasRequests:    b[0]&summaryRequests != 0,
		rest:           b[fixedSize:],
	}
	copy(h.tree[:], b[1:])
	n, size := binary.Uvarint(h.rest)
	if size <= 0 || n > uint64(len(h.rest)-size)/uint64(len(objectDigest{})) {
		return h, false
	}
	h.objects, h.rest = h.rest[size:size+int(n)*len(objectDigest{})],
		h.rest[size+int(n)*len(objectDigest{}):]
	return h, true
}

// eachObject yields the ids of the objects of a decoded summary.
func (h *emissionSummary) eachObject(yield func(objectDigest) bool) {
	for rest := h.objects; len(rest) > 0; rest = rest[len(objectDigest{}):] {
		if !yield(objectDigest(rest[:len(objectDigest{})])) {
			return
		}
	}
}

var errSummary = errors.New("the summary of an emission is damaged")

func takeBytes(b []byte) (taken, rest []byte, err error) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, errSummary
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
		return false, nil, errSummary
	}
	return b[0] == 1, b[1:], nil
}

// decodeDiagnostics decodes the diagnostics of a summary. It returns nil if it has no diagnostics.
func (h *emissionSummary) decodeDiagnostics() (ds []diag.Diagnostic, err error) {
	if !h.hasDiagnostics {
		return nil, nil
	}
	text, _, err := takeBytes(h.rest)
	if err == nil {
		err = json.Unmarshal(text, &ds)
	}
	return ds, err
}

// decodeRequests decodes the quota requests of a summary. It returns nil if it has no requests.
func (h *emissionSummary) decodeRequests() (r kubernetes.Requests, err error) {
	if !h.hasRequests {
		return nil, nil
	}
	rest := h.rest
	if h.hasDiagnostics {
		if _, rest, err = takeBytes(rest); err != nil {
			return nil, err
		}
	}
	text, _, err := takeBytes(rest)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	return r, err
}

// parts returns the encoded shared part for Index, the encoded retention, and the rest of a
// summary.
func (h *emissionSummary) parts() (shared, retained, rest []byte, err error) {
	rest = h.rest
	for _, has := range []bool{h.hasDiagnostics, h.hasRequests} {
		if !has {
			continue
		}
		if _, rest, err = takeBytes(rest); err != nil {
			return nil, nil, nil, err
		}
	}
	if shared, rest, err = takeBytes(rest); err == nil {
		retained, rest, err = takeBytes(rest)
	}
	return shared, retained, rest, err
}

// decodeShared decodes the shared part for Index and the retention. It returns the rest of the
// summary.
func (h *emissionSummary) decodeShared() (rest []byte, err error) {
	shared, retained, rest, err := h.parts()
	if len(shared) > 0 {
		h.shared = shared
	}
	if err == nil && len(retained) > 0 {
		err = json.Unmarshal(retained, &h.retention)
	}
	return rest, err
}

// decode decodes all of a summary.
func (h *emissionSummary) decode() (err error) {
	if h.diagnostics, err = h.decodeDiagnostics(); err != nil {
		return err
	}
	if h.requests, err = h.decodeRequests(); err != nil {
		return err
	}
	rest, err := h.decodeShared()
	if err != nil {
		return err
	}
	var text []byte
	const usual = 4 // files of an assignment
	h.files = make([]tree.File, 0, usual)
	ids := make([]byte, 0, usual*2*idSize)
	for len(rest) > 0 {
		if text, rest, err = takeBytes(rest); err != nil {
			return err
		}
		if len(rest) < idSize {
			return errSummary
		}
		f := tree.File{Path: string(text)}
		ids = hex.AppendEncode(ids, rest[:idSize])
		size, n := binary.Uvarint(rest[idSize:])
		if n <= 0 {
			return errSummary
		}
		f.Size = int64(size)
		if f.Executable, rest, err = takeBool(rest[idSize+n:]); err != nil {
			return err
		}
		h.files = append(h.files, f)
	}
	all := tree.ID(ids) // the ids of all files share its memory
	for i := range h.files {
		h.files[i].ID, all = all[:2*idSize], all[2*idSize:]
	}
	return nil
}

// retention describes the objects of a rendered workload that outlive its assignment, and the
// definitions that other assignments may bring as well.
type retention struct {
	// Kept are the objects that stay on the cluster, as kubernetes.KeptOf returns them.
	Kept []string `json:"kept,omitempty"`
	// Definitions are the CustomResourceDefinitions by name. The values are digests of their
	// definitions.
	Definitions map[string]string `json:"definitions,omitempty"`
}

// encode returns the JSON of r. It returns nil for the zero value.
func (r retention) encode() []byte {
	if len(r.Kept)+len(r.Definitions) == 0 {
		return nil
	}
	b, _ := json.Marshal(r) // of strings, with sorted keys
	return b
}

func retentionOf(backend backends.Backend, a *backends.Assignment) retention {
	if !a.Render {
		return retention{}
	}
	r := retention{Kept: kubernetes.KeptOf(a), Definitions: kubernetes.DefinitionsOf(a.Projection)}
	if backend.Traits().KeepsDefinitions {
		for name := range r.Definitions {
			r.Kept = append(r.Kept, definitionKind+name)
		}
		slices.Sort(r.Kept)
		r.Kept = slices.Compact(r.Kept)
	}
	return r
}

// definitionKind is the prefix of CustomResourceDefinitions in Kept.
const definitionKind = "CustomResourceDefinition "
