package yamlnodes

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

func TestCost(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       Cost
	}{
		{"nothing", "", Cost{}},
		{"scalar", "abc", Cost{Bytes: 4, Entries: 1, Pairs: 1}},
		{"fields", "a: 1\nb: 2\n", Cost{Bytes: 12, Entries: 3, Levels: 4, Pairs: 1 + 4}},
		{"nested", "- - - x\n", Cost{Bytes: 11, Entries: 4, Levels: 6, Pairs: 4}},
		{"alias", "- &a [x]\n- *a\n", Cost{Bytes: 14, Entries: 5, Aliased: 2, AliasedFlow: 1, Levels: 6, Pairs: 1 + 4 + 2}},
		{"merge", "- &a {x: 1}\n- {<<: *a, y: 2}\n", Cost{Bytes: 25, Entries: 7, Aliased: 3, AliasedFlow: 1, Levels: 18, Pairs: 1 + 4 + 1 + 1 + 4, Merged: 4}},
		{"documents", "1\n---\n2\n", Cost{Bytes: 4, Entries: 2, Pairs: 4}},
		{"anchor of another document", "&a 1\n---\n*a\n", Cost{Bytes: 4, Entries: 2, Aliased: 1, Pairs: 4}},
	} {
		_, got, err := Parse([]byte(c.text))
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v\nwant %+v", c.name, got, err, c.want)
		}
	}
}

// TestCostOfBombs checks that a cost beyond the largest number is the largest number.
func TestCostOfBombs(t *testing.T) {
	for name, text := range map[string]string{
		"aliases": doubled(80, "[*a%d, *a%[1]d]"),
		"merges":  doubled(80, "{<<: [*a%d, *a%[1]d]}"),
	} {
		_, got, err := Parse([]byte(text))
		if err != nil || got.Bytes != math.MaxInt64 || got.Aliased != math.MaxInt64 || got.AliasedFlow != math.MaxInt64 || got.Pairs != math.MaxInt64 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// doubled returns n mappings, each of which contains its predecessor twice.
func doubled(n int, format string) string {
	var b strings.Builder
	b.WriteString("a0: &a0 {x: 1}\n")
	for i := range n {
		fmt.Fprintf(&b, "a%d: &a%[1]d "+strings.ReplaceAll(strings.ReplaceAll(format, "%[1]d", "%[2]d"), "%d", "%[2]d")+"\n", i+1, i)
	}
	return b.String()
}

func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name, text   string
		line, column int
		unbounded    bool
		want         string
	}{
		{"syntax", "a: 1\nb: [\n", 2, 1, false, "did not find expected node content"},
		{"no character", "a: 1\nb: \xff\n", 2, 1, false, "invalid leading UTF-8 octet"},
		{"unknown anchor", "a: 1\n# *x\nb: [*x]\nc: *y\n", 3, 5, false, "unknown anchor 'x'"},
		{"in itself", "a: &x [*x]\n", 1, 8, true, "anchor x contains itself"},
		{"merged into itself", "a: &x\n  <<: *x\n", 2, 7, true, "anchor x contains itself"},
		{"merged into itself in a list", "a: &x\n  <<: [{b: 1}, *x]\n", 2, 16, true, "anchor x contains itself"},
		{"key of itself", "? &x {*x : 1}\n: 2\n", 1, 7, true, "anchor x contains itself"},
		{"lists", strings.Repeat("[", 2000) + strings.Repeat("]", 2000), 1, 1002, true, "nests deeper than 1000 levels"},
		{"lists of many lines", strings.Repeat("- ", 2000), 1, 2003, true, "nests deeper than 1000 levels"},
		{"keys", strings.Repeat("? ", 2000), 1, 2003, true, "nests deeper than 1000 levels"},
		{"without end", strings.Repeat("[", 100_000), 1, 1, false, "exceeded max depth of 10000"},
		{"deep by aliases", deepened(20, 100), 11, 111, true, "nests deeper than 1000 levels"},
		{"directives", directives("%%TAG !a%d! b\n", 200) + "--- c\n", 101, 1, true, "there are more than 100 %TAG directives"},
		{"directives in UTF-16", utf16(directives("%%TAG !a%d! b\n", 200) + "--- c\n"), 101, 1, true, "there are more than 100 %TAG directives"},
	} {
		_, _, err := Parse([]byte(c.text))
		var e *Error
		if !errors.As(err, &e) || e.Line != c.line || e.Column != c.column || e.Unbounded != c.unbounded || !strings.Contains(e.Message, c.want) {
			t.Errorf("%s: %+v, want %d:%d %s", c.name, e, c.line, c.column, c.want)
		}
	}
}

// TestNoDirectives checks that text that only mentions directives has none.
func TestNoDirectives(t *testing.T) {
	if _, _, err := Parse([]byte("a: |\n" + strings.Repeat("  %TAG\n", 1000))); err != nil {
		t.Error(err)
	}
}

// deepened nests n anchors, each of which adds deep levels.
func deepened(n, deep int) string {
	var b strings.Builder
	b.WriteString("a0: &a0 x\n")
	for i := range n {
		fmt.Fprintf(&b, "a%d: &a%d %s*a%d%s\n", i+1, i+1, strings.Repeat("[", deep), i, strings.Repeat("]", deep))
	}
	return b.String()
}

func directives(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

func utf16(s string) string { return "\xff\xfe" + strings.Join(strings.Split(s, ""), "\x00") + "\x00" }

// FuzzParse checks that a text has at most as many nodes as Most returns. An accepted text must
// not contain itself, and must match its Cost.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"a: 1\n---\nb: [yes, {c: d, e}]\n", "a: &x [*x]", "a: &x {<<: *x}", "? a\n: &b [x]\n? *b\n", "{\"a\":1,[b]:c}", "--- |\n%TAG\n",
		"- - a\n  -\n-\t-\r- \n", "?\n?", "\xff\xfea\x00", "\r\r0", doubled(3, "{<<: [*a%d, *a%[1]d]}"), deepened(2, 3), directives("%%TAG !a%d! b\n", 3) + "--- !a1!x y",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if strings.HasPrefix(string(text), "\xff\xfe") || strings.HasPrefix(string(text), "\xfe\xff") {
			return // Most is for UTF-8
		}
		docs, cost, err := Parse(text)
		if err != nil {
			return
		}
		var entries int64
		written := int64(len(docs))
		for _, d := range docs {
			entries += in(d) + 1
			if cost.Entries < 1<<16 {
				written += writtenOut(d)
			}
		}
		if most := Most(text); entries > most+2 {
			t.Errorf("%q has %d entries, more than %d", text, entries, most)
		}
		if cost.Entries < 1<<16 && written != cost.Entries {
			t.Errorf("%q has %d entries written out, not %d", text, written, cost.Entries)
		}
	})
}

// in counts the entries below a node, without the targets of aliases.
func in(n *yaml.Node) (entries int64) {
	for i, c := range n.Content {
		if n.Kind == yaml.SequenceNode || n.Kind == yaml.MappingNode && i%2 == 1 {
			entries++
		}
		entries += in(c)
	}
	return entries
}

// writtenOut counts the entries below a node like in, with the targets of aliases.
func writtenOut(n *yaml.Node) (entries int64) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	for i, c := range n.Content {
		if n.Kind == yaml.SequenceNode || n.Kind == yaml.MappingNode && i%2 == 1 {
			entries++
		}
		entries += writtenOut(c)
	}
	return entries
}
