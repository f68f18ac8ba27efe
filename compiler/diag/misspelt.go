package diag

import "strings"

// minWord is how many letters a word needs for one edit to be a likely mistake:
// east and west, or s1 and l1, are different words.
const minWord = 5

// Misspelt says whether a was probably meant to be b: the two differ in one word,
// of at least minWord letters each, by one letter that is missing, too many,
// wrong or swapped with its neighbour, and that is neither the first letter, which
// people seldom mistype, nor a digit, which tells lines and sites apart.
func Misspelt(a, b string) bool {
	as, bs := splitWords(a), splitWords(b)
	if len(as) != len(bs) {
		return false
	}
	different := 0
	for i := range as {
		if as[i] == bs[i] {
			continue
		}
		different++
		sameStart := strings.EqualFold(as[i][:1], bs[i][:1])
		if !sameStart || min(letters(as[i]), letters(bs[i])) < minWord || digits(as[i]) != digits(bs[i]) || !oneEdit(as[i], bs[i]) {
			return false
		}
	}
	return different == 1
}

// OneEditAway says whether a, which nothing has, is one edit away from b, which something has. Another first letter
// or digit makes another name: west and rest, or s1 and s2.
func OneEditAway(a, b string) bool {
	a, b = strings.ToLower(a), strings.ToLower(b)
	return a != "" && b != "" && a[0] == b[0] && digits(a) == digits(b) && oneEdit(a, b)
}

func splitWords(s string) []string {
	return strings.FieldsFunc(s, func(c rune) bool { return strings.ContainsRune("-_./: ", c) })
}

// digits returns the digits of s.
func digits(s string) string {
	return strings.Map(func(c rune) rune {
		if c < '0' || c > '9' {
			return -1
		}
		return c
	}, s)
}

// letters counts what is no digit in s.
func letters(s string) int { return len(s) - len(digits(s)) }

// oneEdit says whether a and b differ by one byte inserted, removed or replaced,
// or by two neighbours swapped.
func oneEdit(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	switch rest := b[i:]; {
	case len(b) == len(a)+1:
		return a[i:] == rest[1:]
	case len(a) != len(b) || rest == "":
		return false
	default:
		swapped := len(rest) > 1 && a[i] == rest[1] && a[i+1] == rest[0] && a[i+2:] == rest[2:]
		return a[i+1:] == rest[1:] || swapped
	}
}
