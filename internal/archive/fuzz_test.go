package archive

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
)

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// For any input, the result is within the limits and below the root, and packing it changes
// nothing.
func FuzzRead(f *testing.F) {
	limits := Limits{Entries: 40, Total: 10_000, File: 4_000, Path: 100, Depth: 5}
	for _, headers := range [][]tar.Header{
		{file("a/b", "1"), file("c", strings.Repeat("x", 600))},
		{symlink("l", "d/e"), file("d/e/f", "1"), symlink("m", "l/f"), hardlink("h", "d/e/f")},
		{symlink("a", "b"), symlink("b", "a"), symlink("c", "../x"), folder("d")},
		{file("../a", "1")},
		{special("p", tar.TypeFifo)},
	} {
		data := entries(f, headers...)
		f.Add(data)
		f.Add(zipped(f, data))
		f.Add(data[:len(data)/2])
	}
	f.Add(Pack(&Tree{Files: map[string]File{"a": {}}, Refused: map[string]string{"b": "is a submodule"}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		tree, err := limits.Read(data)
		if err != nil {
			var entry *EntryError
			var limit *LimitError
			var format *FormatError
			if tree != nil || !errors.As(err, &entry) && !errors.As(err, &limit) && !errors.As(err, &format) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		within(t, limits, tree)
		packed := Pack(tree)
		again, err := limits.Read(packed)
		if err != nil {
			t.Fatal(err)
		}
		if show(again) != show(tree) || !bytes.Equal(Pack(again), packed) {
			t.Errorf("got:\n%s\nwant:\n%s", show(again), show(tree))
		}
	})
}

func within(t *testing.T, l Limits, tree *Tree) {
	total := int64(0)
	if n := len(tree.Files) + len(tree.Refused); n > l.Entries {
		t.Errorf("%d entries", n)
	}
	for name, f := range tree.Files {
		total += int64(len(f.Data))
		if int64(len(f.Data)) > l.File || len(name) > l.Path || pathProblem(name) != "" {
			t.Errorf("%q: %d bytes", name, len(f.Data))
		}
		if _, ok := tree.Refused[name]; ok {
			t.Errorf("%q is there, and refused", name)
		}
	}
	for name := range tree.Refused {
		if pathProblem(name) != "" {
			t.Errorf("%q is refused", name)
		}
	}
	if total > l.Total {
		t.Errorf("%d bytes", total)
	}
}
