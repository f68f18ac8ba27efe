// Package spelling finds the known word that a misspelt one was probably meant to be.
package spelling

import (
	"slices"
	"strings"
)

// DidYouMean returns a hint that names the nearest candidate. If none is near, the hint lists the
// candidates.
func DidYouMean(word string, candidates []string) string {
	if near := Meant(word, candidates); near != "" {
		return "did you mean " + near + "?"
	}
	if len(candidates) == 0 {
		return ""
	}
	const most = 12
	list := slices.Sorted(slices.Values(candidates))
	if len(list) > most {
		return "there are, among others: " + strings.Join(list[:most], ", ")
	}
	return "there are: " + strings.Join(list, ", ")
}

// Nearest returns the candidate that a misspelt word was probably meant to be. It is the
// candidate with the fewest edits, two at most and fewer than half the word. Nearest returns ""
// if there is no such candidate.
func Nearest(word string, candidates []string) string {
	best, least := "", 3
	for _, c := range candidates {
		if n := edits(strings.ToLower(word), strings.ToLower(c)); n < least && 2*n < max(len(word), 3) {
			best, least = c, n
		}
	}
	return best
}

// Meant returns the candidate that a wrong word was probably meant to be. This is the nearest
// candidate, else the only one that is a shorter or longer form of the word, such as repo for
// repository or stage for staging. It returns "" if there is no such candidate.
func Meant(word string, candidates []string) string {
	if near := Nearest(word, candidates); near != "" {
		return near
	}
	found := ""
	for _, c := range candidates {
		if !sameStem(strings.ToLower(word), strings.ToLower(c)) {
			continue
		}
		if found != "" && found != c {
			return ""
		}
		found = c
	}
	return found
}

// shortestStem is the smallest number of letters that two forms of one word have in common.
const shortestStem = 3

// sameStem reports whether the longer word begins with the shorter one. The last letter of the
// shorter one does not matter if the rest is longer than shortestStem.
func sameStem(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(a) < shortestStem || len(b) < shortestStem {
		return false
	}
	last := len(a) - 1
	return strings.HasPrefix(b, a) || last > shortestStem && a[last] >= 'a' && a[last-1] != '-' &&
		strings.HasPrefix(b, a[:last])
}

// edits is the optimal string alignment distance: insertions, deletions,
// substitutions and swaps of neighbours
// (https://en.wikipedia.org/wiki/Damerau-Levenshtein_distance).
func edits(a, b string) int {
	d := make([][]int, len(a)+1)
	for i := range d {
		d[i] = make([]int, len(b)+1)
		d[i][0] = i
	}
	for j := range d[0] {
		d[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			d[i][j] = min(d[i-1][j]+1, d[i][j-1]+1, d[i-1][j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}

// minWord is the smallest number of letters of a word in which one edit is a likely mistake. east
// and west, or s1 and l1, are different words.
const minWord = 5

// Misspelt reports whether a was probably meant to be b. The two must differ in one word, and both
// forms of it need at least minWord letters. The difference must be one letter that is missing, too
// many, wrong or swapped with its neighbour. This must not be the first letter, because people
// seldom mistype it. It must not be a digit, because digits distinguish lines and sites.
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
		if !sameStart || min(letters(as[i]), letters(bs[i])) < minWord ||
			digits(as[i]) != digits(bs[i]) || !oneEdit(as[i], bs[i]) {
			return false
		}
	}
	return different == 1
}

// OneEditAway reports whether a, an unknown name, is one edit away from b, a known one. It returns
// false if the first letters or the digits differ, because they mean a different name. Examples
// are west and rest, or s1 and s2.
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

// letters counts the characters of s that are not digits.
func letters(s string) int { return len(s) - len(digits(s)) }

// oneEdit reports whether a and b differ by one byte inserted, removed or replaced, or
// by two neighbours swapped.
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
