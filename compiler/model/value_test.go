package model

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"
)

func TestNumberOf(t *testing.T) {
	for in, want := range map[string]string{
		"0": "0", "-0": "0", "007": "7", "-12": "-12", "123456789012345678901234567890": "123456789012345678901234567890",
		"1.0": "1.0", "1.50": "1.50", "-0.0": "-0.0", "1e3": "1e3", "1E+3": "1e+3", "100.0": "100.0", "150e1": "150e1",
		".5": "0.5", "1.": "1.0", "1.e3": "1.0e3", "007.50": "7.50", "-2.5E-400": "-2.5e-400", "0e9": "0e9", "1e100000": "1e100000",
	} {
		v, err := NumberOf(in)
		if err != nil || v.Text() != want {
			t.Errorf("NumberOf(%s) = %s, %v, want %s", in, v.Text(), err, want)
		}
		float := strings.ContainsAny(in, ".eE")
		if float != (v.Kind() == Float) {
			t.Errorf("NumberOf(%s) is of kind %s", in, v.Kind())
		}
	}
	for _, bad := range []string{"", "-", "1a", "1.2.3", "e5", "1e", "1e1e1", "0x10", " 1", "1 ", ".", "-.e1", "1e100001", "1e-99999999999999999999", "NaN"} {
		if v, err := NumberOf(bad); err == nil {
			t.Errorf("NumberOf(%q) = %s", bad, v.Text())
		}
	}
}

func TestCanonical(t *testing.T) {
	for in, want := range map[string]string{
		"1.0": "1.0", "1.50": "1.5", "-0.0": "0.0", "1e3": "1000.0", "1e+3": "1000.0", "1e2": "100.0", "150e1": "1500.0",
		"0.000001": "0.000001", "1e-7": "1.0e-7", "1.25e-9": "1.25e-9", "1e20": "100000000000000000000.0", "1e21": "1.0e+21",
		"1e400": "1.0e+400", "-2.5E-400": "-2.5e-400", "0e9": "0.0", "1e100000": "1.0e+100000", "12": "12",
	} {
		v, err := NumberOf(in)
		if err != nil || v.Canonical().Text() != want {
			t.Errorf("the canonical form of %s is %s, %v, want %s", in, v.Canonical().Text(), err, want)
		}
	}
	number := func(s string) Value {
		v, err := NumberOf(s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	in := func(v Value) Value { return ListOf(StructOf(Field{"a", v}), StringOf("1.50")) }
	for _, test := range []struct {
		a, b string
		same bool
	}{{"1.5", "1.50", true}, {"1e2", "100.0", true}, {"0.0", "-0.0", true}, {"1", "1.0", false}, {"1.5", "1.51", false}, {"10.10", "10.1", true}} {
		a, b := number(test.a), number(test.b)
		if a.Same(b) != test.same || in(a).Same(in(b)) != test.same {
			t.Errorf("%s and %s are the same: %v", a, b, !test.same)
		}
		if a.Equal(b) || in(a).Equal(in(b)) {
			t.Errorf("%s and %s are equal", a, b)
		}
	}
}

// FuzzNumberOf checks that a number keeps its value, and that its text is JSON and reads as the
// same number again.
func FuzzNumberOf(f *testing.F) {
	for _, s := range []string{"0", "-1.5e3", "1e-30", "12345678901234567890.5", "0.00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !json.Valid([]byte(s)) || strings.TrimLeft(s, "-0123456789") == s || len(s) > 60 {
			return
		}
		v, err := NumberOf(s)
		if err != nil {
			return
		}
		if !json.Valid([]byte(v.Text())) {
			t.Fatalf("%s became %s, which is no JSON", s, v.Text())
		}
		if i := strings.IndexAny(s, "eE"); i >= 0 && len(s)-i > 5 {
			return // too large to compare
		}
		before, ok := new(big.Rat).SetString(s)
		after, also := new(big.Rat).SetString(v.Text())
		if ok != also || ok && before.Cmp(after) != 0 {
			t.Fatalf("%s became %s", s, v.Text())
		}
		if again, err := NumberOf(v.Text()); err != nil || !again.Equal(v) {
			t.Fatalf("%s is not its own text: %s, %v", v.Text(), again.Text(), err)
		}
		canonical, ok := new(big.Rat).SetString(v.Canonical().Text())
		if !ok || canonical.Cmp(after) != 0 || !v.Canonical().Same(v) {
			t.Fatalf("%s has the canonical form %s", v, v.Canonical())
		}
	})
}

func TestValueJSON(t *testing.T) {
	const text = `{"a":[1,1.0,"1",true,null,{}],"b":{"<x>":"é\u0001\n"}}`
	var v Value
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	if v.String() != text {
		t.Errorf("got  %s\nwant %s", v, text)
	}
	one, _ := NumberOf("1")
	if one.Equal(StringOf("1")) || one.Equal(BoolOf(true)) {
		t.Error("values of different kinds are equal")
	}
	float, _ := FloatOf("1")
	if one.Equal(float) {
		t.Error("1 and 1.0 are equal")
	}
	if s := StructOf(Field{"b", one}, Field{"a", float}); s.String() != `{"a":1.0,"b":1}` {
		t.Errorf("fields are not sorted: %s", s)
	}
}
