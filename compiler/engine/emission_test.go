package engine

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/testing/fieldtest"
)

func emissionOf(files ...backends.File) []byte {
	object := objectID(backends.Object{Group: "g", Kind: "k", Namespace: "n", Name: "o"})
	summary := emissionSummary{orphan: true, objects: object[:], shared: []byte(`{"a":1}`), diagnostics: []diag.Diagnostic{diag.New(diag.ForeignFile, "m")}}
	blobs := map[string]tree.Blob{}
	for _, f := range files {
		summary.files = append(summary.files, tree.FileOf(f))
		blobs[f.Path] = tree.BlobOf(f)
	}
	_, _ = hex.Decode(summary.tree[:], []byte(tree.TreeID(blobs)))
	return summary.encode()
}

var emitted = []backends.File{
	{Path: "a.yaml", Data: []byte("a: 1\n")},
	{Path: "run.sh", Data: []byte("#!/bin/sh\n"), Executable: true},
	{Path: "sub/empty", Data: []byte{}},
}

func TestEmissionsComeBack(t *testing.T) {
	encoded := emissionOf(emitted...)
	summary, ok := decodeSummary(encoded)
	if err := summary.decode(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	for i, f := range emitted {
		if summary.files[i] != tree.FileOf(f) {
			t.Errorf("%v comes back as %v", tree.FileOf(f), summary.files[i])
		}
	}
	if again := summary.encode(); !bytes.Equal(again, encoded) {
		t.Errorf("%q is %q", encoded, again)
	}
	for id := range summary.eachObject {
		if id != objectID(backends.Object{Group: "g", Kind: "k", Namespace: "n", Name: "o"}) {
			t.Errorf("the object comes back as %x", id)
		}
	}
}

// The cached form of an emission has every field of its summary.
func TestEmissionsHaveEveryField(t *testing.T) {
	base := func() *emissionSummary { return &emissionSummary{} }
	fieldtest.Check(t, base, func(s *emissionSummary) string {
		back, ok := decodeSummary(s.encode())
		if err := back.decode(); !ok || err != nil {
			t.Error(ok, err)
		}
		return string(back.encode())
	}, map[string]string{
		"passing":        "what passes is not remembered",
		"hasDiagnostics": "it follows from the diagnostics",
		"hasRequests":    "it follows from the requests",
		"requests":       "quantities have fields of their own",
		"objects":        "see TestEmissionsComeBack",
		"files":          "as objects",
		"rest":           "it is what decode reads",
	})
}

// Damaged summaries are not decoded: a file with an invalid mode, and a summary that is cut off
// or too long.
func TestDamagedEmissions(t *testing.T) {
	encoded := emissionOf(emitted[1])
	spoilt := bytes.Clone(encoded)
	spoilt[len(spoilt)-1] = 2
	for what, data := range map[string][]byte{"an unknown mode": spoilt, "no mode": encoded[:len(encoded)-1], "half a file": encoded[:len(encoded)-2]} {
		if summary, ok := decodeSummary(data); ok && summary.decode() == nil {
			t.Errorf("a summary with %s is read", what)
		}
	}
	many := bytes.Clone(encoded)
	many[fixedSize] = 200
	if _, ok := decodeSummary(many); ok {
		t.Error("a summary with more objects than it has room for is read")
	}
}

// Stored files can be read again, from memory and from the file. Files that cannot be stored
// cannot.
func TestSpill(t *testing.T) {
	s := &spill{}
	defer func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}()
	r := rand.New(rand.NewPCG(1, 2))
	var at []extent
	var want [][]backends.File
	for range 24 {
		var some [][]backends.File
		for range 1 + r.IntN(40) {
			random := make([]byte, r.IntN(200_000)) // random bytes do not compress
			for i := range random {
				random[i] = byte(r.Uint32())
			}
			some = append(some, append(slices.Clone(emitted), backends.File{Path: "random", Data: random}))
		}
		some = append(some, []backends.File{})
		at, want = append(at, s.add(some)...), append(want, some...)
	}
	if s.size == 0 {
		t.Error("nothing is in the file: the test does not test much")
	}
	s.broken, s.held = true, maxHeld
	lost := s.add(want[:1])
	for i, got := range s.read(append(slices.Clone(at), lost...)) {
		switch {
		case i == len(at):
			if got != nil {
				t.Error("what cannot be held comes back")
			}
		case !reflect.DeepEqual(got, want[i]):
			t.Fatalf("the files of %d come back as others", i)
		}
	}
}

// FuzzDecodeSummary checks that a decoded summary encodes to the same files.
func FuzzDecodeSummary(f *testing.F) {
	summary := emissionOf(emitted...)
	f.Add(summary)
	f.Add(make([]byte, fixedSize))
	f.Fuzz(func(t *testing.T, b []byte) {
		if summary, ok := decodeSummary(b); ok && summary.decode() == nil {
			again, _ := decodeSummary(summary.encode())
			if err := again.decode(); err != nil || !reflect.DeepEqual(again.files, summary.files) {
				t.Errorf("%q is read as %v, and that as %v, %v", b, summary.files, again.files, err)
			}
		}
	})
}
