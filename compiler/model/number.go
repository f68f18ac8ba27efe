package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// NumberOf returns the int or float that s writes. As in CUE, the spelling decides: a number
// with a point or an exponent is a float. An int is converted to its canonical form. A float
// keeps its digits, as for FloatOf.
func NumberOf(s string) (Value, error) {
	if strings.ContainsAny(s, ".eE") {
		return FloatOf(s)
	}
	digits, neg := strings.CutPrefix(s, "-")
	if !isDigits(digits) {
		return Value{}, fmt.Errorf("invalid number %q", s)
	}
	s = strings.TrimLeft(digits, "0")
	switch {
	case s == "":
		s = "0"
	case neg:
		s = "-" + s
	}
	return Value{data: integer(s)}, nil
}

// maxExponent bounds the exponents of floats. It is the bound of CUE's arithmetic, which reads
// a number beyond it as 0 or rejects it.
const maxExponent = 100_000

// FloatOf returns the float that s writes, even if it is spelt like an int. The text of the
// float keeps the digits of s: 1.50, 3.10 and 1e3 do not change. FloatOf only changes spellings
// that JSON does not allow, as cue fmt does: .5 becomes 0.5, and 1E3 becomes 1e3. It returns an
// error for an exponent beyond 100,000.
func FloatOf(s string) (Value, error) {
	mantissa, exponent, scientific := strings.Cut(strings.ToLower(s), "e")
	sign := ""
	if rest, neg := strings.CutPrefix(mantissa, "-"); neg {
		sign, mantissa = "-", rest
	}
	whole, fraction, point := strings.Cut(mantissa, ".")
	if !isDigits(whole+fraction) || scientific && !validExponent(exponent) {
		return Value{}, fmt.Errorf("invalid number %q", s)
	}
	if whole = strings.TrimLeft(whole, "0"); whole == "" {
		whole = "0"
	}
	text := sign + whole
	if point || !scientific {
		if fraction == "" {
			fraction = "0"
		}
		text += "." + fraction
	}
	if scientific {
		text += "e" + exponent
	}
	return Value{data: float(text)}, nil
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

func validExponent(s string) bool {
	e, err := strconv.Atoi(s)
	return err == nil && -maxExponent <= e && e <= maxExponent
}

// canonicalFloat writes the number of a float exactly, without trailing zeros. It writes a
// short number with a decimal point, and a long one with an exponent, in scientific notation.
// Both forms are floats for JSON, YAML 1.1 and YAML 1.2. Equal numbers have equal texts.
func canonicalFloat(f float) float {
	mantissa, e, _ := strings.Cut(string(f), "e")
	exponent, _ := strconv.Atoi(e) // 0 if there is no exponent
	mantissa, neg := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	exponent -= len(fraction)
	significant := strings.TrimRight(digits, "0")
	exponent += len(digits) - len(significant)
	if digits = significant; digits == "" {
		return "0.0"
	}
	var out string
	switch first := len(digits) + exponent - 1; { // the exponent of the first digit
	case first < -6 || first > 20:
		rest := digits[1:]
		if rest == "" {
			rest = "0"
		}
		out = fmt.Sprintf("%c.%se%+d", digits[0], rest, first)
	case exponent >= 0:
		out = digits + strings.Repeat("0", exponent) + ".0"
	case first >= 0:
		out = digits[:first+1] + "." + digits[first+1:]
	default:
		out = "0." + strings.Repeat("0", -first-1) + digits
	}
	if neg {
		out = "-" + out
	}
	return float(out)
}

// Canonical returns the value with its numbers in canonical form. Values that are the Same are
// then Equal, with equal bytes.
func (v Value) Canonical() Value {
	if !v.hasFloat() {
		return v
	}
	switch data := v.data.(type) {
	case float:
		return Value{data: canonicalFloat(data)}
	case []Value:
		elems := make([]Value, len(data))
		for i, e := range data {
			elems[i] = e.Canonical()
		}
		return Value{data: elems}
	case structure:
		return Value{data: structure(canonicalFields(data))}
	case secret:
		return Value{data: secret(canonicalFields(data))}
	}
	return v
}

func canonicalFields(fields []Field) []Field {
	out := make([]Field, len(fields))
	for i, f := range fields {
		out[i] = Field{f.Name, f.Value.Canonical()}
	}
	return out
}

func (v Value) hasFloat() bool {
	return v.Kind() == Float || slices.ContainsFunc(v.Elems(), Value.hasFloat) ||
		slices.ContainsFunc(v.Fields(), func(f Field) bool { return f.Value.hasFloat() })
}

// Same reports whether two values are equal, comparing numbers by their amounts: 1.5 and 1.50
// are the same. As in CUE, 1 and 1.0 are not.
func (v Value) Same(w Value) bool { return v.Equal(w) || v.Canonical().Equal(w.Canonical()) }
