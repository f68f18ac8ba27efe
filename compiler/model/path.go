package model

import (
	"strconv"
	"strings"
)

// ParsePath reads a path of field names as users write it, and returns it as Ref
// writes it. It is more lenient than CUE, where reject-tags without
// quotes is no name: only a name with a dot, or that begins with a quote, needs
// them.
func ParsePath(s string) (string, bool) {
	path := ""
	for {
		name, rest, more := strings.Cut(s, ".")
		if strings.HasPrefix(s, `"`) {
			end := endOfString(s)
			unquoted, err := strconv.Unquote(s[:end])
			if err != nil {
				return "", false
			}
			name = unquoted
			if rest, more = strings.CutPrefix(s[end:], "."); !more && rest != "" {
				return "", false
			}
		}
		if name == "" || strings.TrimSpace(name) != name {
			return "", false
		}
		path = JoinPath(path, Label(name))
		if !more {
			return path, true
		}
		s = rest
	}
}

// endOfString returns where the string literal that s begins with ends.
func endOfString(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(s)
}
