package model

import (
	"bytes"
	"encoding/hex"
	"runtime"
	"strings"
	"testing"
)

func number(t testing.TB, s string) Value {
	t.Helper()
	v, err := NumberOf(s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestBinary(t *testing.T) {
	secret := SecretOf(Field{"store", StringOf("vault")}, Field{"key", StringOf("db")})
	seen := map[string]string{}
	for _, v := range []Value{
		{}, BoolOf(false), BoolOf(true), IntOf(0), IntOf(-12), number(t, "123456789012345678901234567890"), number(t, "1.0"),
		number(t, "-1.25e-9"), number(t, "1e400"), StringOf(""), StringOf("1"), StringOf("true"), StringOf("é\x00\"\n"), StringOf(strings.Repeat("x", 300)),
		ListOf(), ListOf(Value{}), ListOf(ListOf(), ListOf(IntOf(1))), StructOf(), SecretOf(), StructOf(Field{"", Value{}}),
		StructOf(Field{"store", StringOf("vault")}, Field{"key", StringOf("db")}), secret,
		StructOf(Field{"b", ListOf(secret, IntOf(1))}, Field{"a", StructOf(Field{"c d", number(t, "1.5")})}),
	} {
		b := v.AppendBinary([]byte("before"))
		if !bytes.HasPrefix(b, []byte("before")) {
			t.Fatalf("%s: what was there is gone", v)
		}
		b = b[len("before"):]
		if other, twice := seen[string(b)]; twice {
			t.Errorf("%s and %s have the same form", v, other)
		}
		seen[string(b)] = v.String()
		got, rest, err := DecodeValue(append(bytes.Clone(b), "after"...))
		if err != nil || !got.Equal(v) || string(rest) != "after" {
			t.Errorf("%s is read as %s, then %q: %v", v, got, rest, err)
		}
		for n := range b {
			if got, _, err := DecodeValue(b[:n]); err == nil {
				t.Errorf("%s is read as %s from its first %d bytes", v, got, n)
			}
		}
	}
}

func TestDecodeValueRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":                      "",
		"no kind":                      "08",
		"a bool of 2":                  "0102",
		"an int with a leading zero":   "02023031",
		"an int that is a float":       "0203312e30",
		"a float that is an int":       "030131",
		"a float with leading zeros":   "030430312e30",
		"a number that is no number":   "02017b",
		"more text than there is":      "040261",
		"a length without end":         "04ffffffffffffffffffff01",
		"a length that is too long":    "04810061",
		"more elements than there are": "050200",
		"a count beyond all memory":    "05ffffffffffffffff7f",
		"fields that are not sorted":   "0602016200016100",
		"a field twice":                "0602016100016100",
	} {
		t.Run(name, func(t *testing.T) {
			b, err := hex.DecodeString(text)
			if err != nil {
				t.Fatal(err)
			}
			if v, _, err := DecodeValue(b); err == nil {
				t.Errorf("read as %s", v)
			}
		})
	}
}

// TestDecodeValueIsBounded decodes lists that each claim all remaining bytes. Memory must grow
// with the number of bytes, and not with its square.
func TestDecodeValueIsBounded(t *testing.T) {
	hostile := bytes.Repeat([]byte{byte(List), 0xff, 0x3f}, 5_000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, _, err := DecodeValue(hostile); err == nil {
		t.Fatal("no error")
	}
	runtime.ReadMemStats(&after)
	allocated := after.TotalAlloc - before.TotalAlloc
	if most := uint64(200 * len(hostile)); allocated > most {
		t.Errorf("%d bytes allocated for %d, more than %d", allocated, len(hostile), most)
	}
	if _, _, err := DecodeValue(bytes.Repeat([]byte{byte(List), 1}, maxDepth+2)); err == nil || !strings.Contains(err.Error(), "levels") {
		t.Errorf("lists without end: %v", err)
	}
}

// FuzzDecodeValue checks that a decoded value encodes to the same bytes.
func FuzzDecodeValue(f *testing.F) {
	for _, v := range []Value{{}, BoolOf(true), number(f, "1.5"), ListOf(StringOf("a"), IntOf(7)),
		StructOf(Field{"s", SecretOf(Field{"store", StringOf("v")})}, Field{"t", StructOf()})} {
		f.Add(v.AppendBinary(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, rest, err := DecodeValue(b)
		if err != nil {
			return
		}
		if again := append(v.AppendBinary(nil), rest...); !bytes.Equal(again, b) {
			t.Errorf("%x is read as %s, which is written %x", b, v, again)
		}
	})
}
