package diag

import "slices"

// Code identifies a kind of diagnostic for ever: K1 reading and evaluating the
// platform, K2 assigning and composing, K3 emitting, K4 writing. The second
// digit 9 marks warnings.
type Code string

// Explanation is the text of `kalypso explain CODE`.
type Explanation struct {
	Code     Code
	Severity Severity
	Title    string
	Text     string
}

// Severity returns how the code's diagnostics weigh by default.
func (c Code) Severity() Severity {
	if len(c) > 2 && c[2] == '9' {
		return Warning
	}
	return Error
}

// Explain returns the explanation of a code.
func Explain(c Code) (Explanation, bool) {
	i := slices.IndexFunc(Codes, func(e Explanation) bool { return e.Code == c })
	if i < 0 {
		return Explanation{}, false
	}
	return Codes[i], true
}
