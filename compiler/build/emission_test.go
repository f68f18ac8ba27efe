package build

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

func emissionOf(files ...backends.File) ([]byte, []byte) {
	head := emissionHead{orphan: true, shared: []byte(`{"a":1}`), diagnostics: []diag.Diagnostic{diag.New(diag.ForeignFile, "m")}}
	blobs := map[string]tree.Blob{}
	for _, f := range files {
		head.files = append(head.files, tree.FileOf(f))
		blobs[f.Path] = tree.BlobOf(f)
	}
	_, _ = hex.Decode(head.tree[:], []byte(tree.TreeID(blobs)))
	return head.encode(), encodeBody(files, []backends.Object{{Group: "g", Kind: "k", Namespace: "n", Name: "o"}})
}

var emitted = []backends.File{
	{Path: "a.yaml", Data: []byte("a: 1\n")},
	{Path: "run.sh", Data: []byte("#!/bin/sh\n"), Executable: true},
	{Path: "sub/empty", Data: []byte{}},
}

func TestEmissionsComeBack(t *testing.T) {
	encoded, body := emissionOf(emitted...)
	head, ok := decodeHead(encoded)
	if err := head.decode(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	for i, f := range emitted {
		if head.files[i] != tree.FileOf(f) {
			t.Errorf("%v comes back as %v", tree.FileOf(f), head.files[i])
		}
	}
	if again := head.encode(); !bytes.Equal(again, encoded) {
		t.Errorf("%q is %q", encoded, again)
	}
	files, objects, err := decodeBody(body)
	if err != nil || !reflect.DeepEqual(files, emitted) || len(objects) != 1 || objects[0].Name != "o" {
		t.Errorf("%v %v %v", files, objects, err)
	}
}

// Only what was written is read: a file with a mode that is none, and what is cut
// off or too long, are damage.
func TestDamagedEmissions(t *testing.T) {
	encoded, body := emissionOf(emitted[1])
	mode := bytes.Index(body, []byte("#!/bin/sh\n")) + len("#!/bin/sh\n")
	spoilt := bytes.Clone(body)
	spoilt[mode] = 2
	if _, _, err := decodeBody(spoilt); err == nil {
		t.Error("a body with an unknown mode is read")
	}
	if _, _, err := decodeBody(append(bytes.Clone(body), 0)); err == nil {
		t.Error("a body that is too long is read")
	}
	spoilt = bytes.Clone(encoded)
	spoilt[len(spoilt)-1] = 2
	for what, data := range map[string][]byte{"an unknown mode": spoilt, "no mode": encoded[:len(encoded)-1], "half a file": encoded[:len(encoded)-2]} {
		if head, ok := decodeHead(data); ok && head.decode() == nil {
			t.Errorf("a head with %s is read", what)
		}
	}
	for n := range body {
		if _, _, err := decodeBody(body[:n]); err == nil {
			t.Errorf("%d bytes of a body are read", n)
		}
	}
}

func FuzzDecodeBody(f *testing.F) {
	_, body := emissionOf(emitted...)
	f.Add(body)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		files, objects, err := decodeBody(b)
		if err != nil {
			return
		}
		again, _, err := decodeBody(encodeBody(files, objects))
		if err != nil || len(again) != len(files) {
			t.Errorf("%q is read as %v, and that as %v, %v", b, files, again, err)
		}
	})
}

func FuzzDecodeHead(f *testing.F) {
	head, _ := emissionOf(emitted...)
	f.Add(head)
	f.Add(make([]byte, fixedSize))
	f.Fuzz(func(t *testing.T, b []byte) {
		if head, ok := decodeHead(b); ok && head.decode() == nil {
			again, _ := decodeHead(head.encode())
			if err := again.decode(); err != nil || !reflect.DeepEqual(again.files, head.files) {
				t.Errorf("%q is read as %v, and that as %v, %v", b, head.files, again.files, err)
			}
		}
	})
}
