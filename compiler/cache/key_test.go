package cache

import (
	"encoding/hex"
	"math"
	"testing"
)

// Different sequences of parts have different keys, even if their bytes are similar.
func TestHashCollides(t *testing.T) {
	k := NewHash("k").Sum()
	sequences := map[string]*Hash{
		"nothing":            NewHash(""),
		"kind":               NewHash("a"),
		"string":             NewHash("").String("a"),
		"bytes":              NewHash("").Bytes([]byte("a")),
		"kind and string":    NewHash("a").String("b"),
		"longer kind":        NewHash("ab"),
		"longer string":      NewHash("").String("ab"),
		"two strings":        NewHash("").String("a").String("b"),
		"empty first":        NewHash("").String("").String("ab"),
		"empty last":         NewHash("").String("ab").String(""),
		"key":                NewHash("").Key(k),
		"key as bytes":       NewHash("").Bytes(k[:]),
		"key as string":      NewHash("").String(string(k[:])),
		"zero":               NewHash("").Int(0),
		"zero and a string":  NewHash("").Int(0).String(""),
		"a string and zero":  NewHash("").String("").Int(0),
		"one":                NewHash("").Int(1),
		"minus one":          NewHash("").Int(-1),
		"largest":            NewHash("").Int(math.MaxInt),
		"what a prefix is":   NewHash("").String("i\x00\x00\x00\x00\x00\x00\x00\x01"),
		"an empty string":    NewHash("").String(""),
		"empty bytes":        NewHash("").Bytes(nil),
		"twice empty string": NewHash("").String("").String(""),
	}
	seen := map[Key]string{}
	for name, h := range sequences {
		if other, ok := seen[h.Sum()]; ok {
			t.Errorf("%s has the key of %s", name, other)
		}
		seen[h.Sum()] = name
	}
}

func TestHashIsStable(t *testing.T) {
	h := NewHash("kalypso test v1").String("s").Bytes([]byte{1, 2}).Int(-3).Key(Key{4})
	const want = "7b40"
	first := h.Sum()
	if got := first.String(); got[:4] != want {
		t.Errorf("key %s does not begin with %s: what is in caches is lost", got, want)
	}
	if hex.EncodeToString(first[:]) != first.String() {
		t.Error("not hexadecimal")
	}
	if h.Sum() != first {
		t.Error("Sum changes what it sums")
	}
	if h.Int(1).Sum() == first {
		t.Error("a part after Sum is lost")
	}
	if h.Reset("kalypso test v1").String("s").Bytes([]byte{1, 2}).Int(-3).Key(Key{4}).Sum() != first {
		t.Error("Reset leaves something behind")
	}
}
