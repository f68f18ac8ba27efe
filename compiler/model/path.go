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

// Elements splits a path of field names, as Ref writes it, into the names. An index stays
// with the name before it.
func Elements(path string) []string {
	var out []string
	for path != "" {
		if path[0] != '"' {
			name, rest, _ := strings.Cut(path, ".")
			out, path = append(out, name), rest
			continue
		}
		end := 1
		for end < len(path) && path[end] != '"' {
			if path[end] == '\\' {
				end++
			}
			end++
		}
		name, err := strconv.Unquote(path[:min(end+1, len(path))])
		if err != nil {
			name = path
			end = len(path)
		}
		out, path = append(out, name), strings.TrimPrefix(path[min(end+1, len(path)):], ".")
	}
	return out
}
