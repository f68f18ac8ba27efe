package compare

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// A mark replaces a name. It begins with a byte that nothing else in a change has: JSON and
// paths escape that byte, and a file with it is not text.
const mark = '\x00'

// shown are the marks as a report has them.
var shown = strings.NewReplacer("\x00e", "<environment>", "\x00c", "<clusterType>", "\x00t",
	"<deploymentTarget>", "\x00n", "<namespace>", "\x00k", "<cluster>",
	"\x00i", "<environment>/<clusterType>", "\x00j", "<environment>-<clusterType>")

func display(c Change) Change { return c.replaced(shown) }

// replaced returns a change with replaced words.
func (c Change) replaced(words *strings.Replacer) Change {
	c = c.clone()
	c.File, c.Path, c.Diff = words.Replace(c.File), words.Replace(c.Path), words.Replace(c.Diff)
	if c.Object != nil {
		c.Object.Namespace, c.Object.Name = words.Replace(c.Object.Namespace),
			words.Replace(c.Object.Name)
	}
	for _, v := range []*json.RawMessage{&c.From, &c.To} {
		if *v != nil {
			*v = json.RawMessage(words.Replace(string(*v)))
		}
	}
	return c
}

// particular are the names that are particular to a folder, with their marks,
// the longest first.
type particular struct {
	// names are searched in paths and in the names of objects, values in values. In values,
	// only names count that are unlikely to be other words.
	names, values []name
}

type name struct {
	text string
	mark byte
}

func namesOf(f *Folder, namespace string) particular {
	in := func(all ...name) []name {
		all = slices.DeleteFunc(all, func(n name) bool { return n.text == "" })
		slices.SortStableFunc(all, func(a, b name) int { return cmp.Compare(len(b.text), len(a.text)) })
		return all
	}
	if f.Cluster != "" {
		return particular{names: in(name{f.Cluster, 'k'}, name{f.Environment, 'e'}),
			values: in(name{f.Cluster, 'k'})}
	}
	values := []name{
		{namespace, 'n'}, {f.Assignment, 't'},
		{f.Environment + "/" + f.ClusterType, 'i'}, {f.Environment + "-" + f.ClusterType, 'j'},
	}
	return particular{names: in(append(values, name{f.Environment, 'e'}, name{f.ClusterType, 'c'})...),
		values: in(slices.Clone(values)...)}
}

// generalize returns a change with marks instead of names.
func (p particular) generalize(c Change) Change {
	c = c.clone()
	c.File, c.Path, c.Diff = markNames(c.File, p.names, false), markNames(c.Path, p.names, false),
		markNames(c.Diff, p.values, false)
	if c.Object != nil {
		c.Object.Namespace, c.Object.Name = markNames(c.Object.Namespace, p.names, false),
			markNames(c.Object.Name, p.names, false)
	}
	for _, v := range []*json.RawMessage{&c.From, &c.To} {
		if *v != nil {
			*v = json.RawMessage(markNames(string(*v), p.values, true))
		}
	}
	return c
}

// markNames replaces names that are whole words, not parts of a word. In JSON it does so
// only in strings.
func markNames(s string, names []name, isJSON bool) string {
	if !slices.ContainsFunc(names, func(n name) bool { return strings.Contains(s, n.text) }) {
		return s
	}
	var b bytes.Buffer
	inString, within := !isJSON, false // within: after a letter or digit
	for len(s) > 0 {
		if inString && !within {
			if n, ok := leading(s, names); ok {
				b.WriteByte(mark)
				b.WriteByte(n.mark)
				s, within = s[len(n.text):], true
				continue
			}
		}
		n := 1
		switch {
		case isJSON && inString && s[0] == '\\':
			if n = 2; s[1] == 'u' {
				n = 6
			}
			within = false
		case isJSON && s[0] == '"':
			inString, within = !inString, false
		default:
			within = isWord(s[0])
		}
		b.WriteString(s[:n])
		s = s[n:]
	}
	return b.String()
}

// leading returns the first of the names that a text begins with as a word.
func leading(s string, names []name) (name, bool) {
	for _, n := range names {
		if strings.HasPrefix(s, n.text) && (len(s) == len(n.text) || !isWord(s[len(n.text)])) {
			return n, true
		}
	}
	return name{}, false
}

// isWord reports whether a byte belongs to a word: a letter, a digit, or a byte that is not
// ASCII.
func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
