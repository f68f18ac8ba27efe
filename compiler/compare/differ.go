package compare

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// differ collects the differing values of a document. If the documents are exchanged, From
// and To are exchanged, and otherwise only the order of changes differs.
type differ struct {
	found []Change
	most  int // changes to collect
	// within reports that the document is a string in another.
	within bool
}

func (d *differ) add(kind Kind, path string, from, to *value) {
	if len(d.found) > d.most {
		return
	}
	c := Change{Kind: kind, Path: path}
	name := path[strings.LastIndexByte(path, '.')+1:]
	if from != nil {
		c.From = from.masked(name).json()
	}
	if to != nil {
		c.To = to.masked(name).json()
	}
	d.found = append(d.found, c)
}

// values compares two values at a path.
func (d *differ) values(path string, a, b *value) {
	switch {
	case a.kind == mapping && b.kind == mapping:
		for i, j := 0, 0; i < len(a.keys) || j < len(b.keys); {
			switch {
			case j == len(b.keys) || i < len(a.keys) && a.keys[i] < b.keys[j]:
				d.add(Removed, join(path, a.keys[i]), &a.items[i], nil)
				i++
			case i == len(a.keys) || b.keys[j] < a.keys[i]:
				d.add(Added, join(path, b.keys[j]), nil, &b.items[j])
				j++
			default:
				d.values(join(path, a.keys[i]), &a.items[i], &b.items[j])
				i, j = i+1, j+1
			}
		}
	case a.kind == list && b.kind == list:
		d.lists(path, a, b)
	case !equal(a, b) && !d.embedded(path, a, b):
		d.add(Changed, path, a, b)
	}
}

// document reports whether a text may be a YAML document of several values: it has
// several lines, or is JSON.
func document(text string) bool {
	return strings.Contains(text, "\n") || strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[")
}

// embedded compares strings that are YAML documents themselves, such as those in a
// ConfigMap. It reports whether it found the differences. A document embedded in such a
// document is compared as a string.
func (d *differ) embedded(path string, a, b *value) bool {
	if d.within || a.kind != text || b.kind != text || !document(a.text) && !document(b.text) {
		return false
	}
	before, err1 := parseYAML([]byte(a.text))
	after, err2 := parseYAML([]byte(b.text))
	if err1 != nil || err2 != nil || len(before) != 1 || len(after) != 1 {
		return false
	}
	if kind := before[0].kind; kind != after[0].kind || kind != mapping && kind != list {
		return false
	}
	e := differ{most: d.most, within: true}
	e.values("", &before[0], &after[0])
	for _, c := range e.found {
		c.Path = path + "#" + c.Path
		d.found = append(d.found, c)
	}
	return len(e.found) > 0
}

// lists compares elements by their names, if all elements have one. Otherwise it compares
// elements that stayed at their places by place. If any element moved, it compares the
// lists as bags.
func (d *differ) lists(path string, a, b *value) {
	if equal(a, b) {
		return
	}
	if ka, kb, ok := names(a, b); ok {
		at := make(map[string]int, len(kb))
		for j, name := range kb {
			at[name] = j
		}
		var common []string
		for i, name := range ka {
			here := path + "[name=" + pathName(name) + "]"
			j, there := at[name]
			if !there {
				d.add(Removed, here, &a.items[i], nil)
				continue
			}
			common = append(common, name)
			d.values(here, &a.items[i], &b.items[j])
			delete(at, name)
		}
		var commonAfter []string
		for j, name := range kb {
			if _, isNew := at[name]; isNew {
				d.add(Added, path+"[name="+pathName(name)+"]", nil, &b.items[j])
			} else {
				commonAfter = append(commonAfter, name)
			}
		}
		if !slices.Equal(common, commonAfter) {
			d.add(Reordered, path, listOf(common), listOf(commonAfter))
		}
		return
	}
	ea, eb := encoded(a), encoded(b)
	if inPlace(ea, eb) {
		for i := range a.items {
			d.values(path+"["+strconv.Itoa(i)+"]", &a.items[i], &b.items[i])
		}
		return
	}
	d.bags(path, a, b, ea, eb)
}

// names returns the names of the elements of two lists, if all have one and it
// identifies them.
func names(a, b *value) (ka, kb []string, ok bool) {
	for _, side := range []struct {
		of  *value
		out *[]string
	}{{a, &ka}, {b, &kb}} {
		seen := make(map[string]bool, len(side.of.items))
		for i := range side.of.items {
			name := side.of.items[i].string("name")
			if name == "" || seen[name] {
				return nil, nil, false
			}
			seen[name] = true
			*side.out = append(*side.out, name)
		}
	}
	return ka, kb, true
}

func listOf(names []string) *value {
	v := &value{kind: list}
	for _, s := range names {
		v.items = append(v.items, value{kind: text, text: s})
	}
	return v
}

// encoded returns the elements of a list as JSON.
func encoded(v *value) []string {
	out := make([]string, len(v.items))
	for i := range v.items {
		out[i] = string(v.items[i].json())
	}
	return out
}

// inPlace reports whether two lists have the same length, and no element has moved. An
// element has moved if the other list has it only at other places.
func inPlace(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	differing := map[string]bool{}
	for i := range a {
		if a[i] != b[i] {
			differing[a[i]] = true
		}
	}
	for i := range b {
		if a[i] != b[i] && differing[b[i]] {
			return false
		}
	}
	return true
}

// bags reports the elements that only one of the lists has, or that it has more
// often, and whether the others changed their order.
func (d *differ) bags(path string, a, b *value, ea, eb []string) {
	common, inB := count(ea), count(eb)
	for e, n := range common {
		common[e] = min(n, inB[e])
	}
	stayed := func(v *value, encoded []string, kind Kind) []string {
		left := maps.Clone(common)
		var out []string
		for i, e := range encoded {
			switch {
			case left[e] > 0:
				left[e]--
				out = append(out, e)
			case kind == Removed:
				d.add(Removed, path+"[]", &v.items[i], nil)
			default:
				d.add(Added, path+"[]", nil, &v.items[i])
			}
		}
		return out
	}
	sa, sb := stayed(a, ea, Removed), stayed(b, eb, Added)
	if !slices.Equal(sa, sb) && len(d.found) <= d.most {
		array := func(elements []string) json.RawMessage {
			return json.RawMessage("[" + strings.Join(elements, ",") + "]")
		}
		d.found = append(d.found, Change{Kind: Reordered, Path: path, From: array(sa), To: array(sb)})
	}
}

func count(elements []string) map[string]int {
	n := make(map[string]int, len(elements))
	for _, e := range elements {
		n[e]++
	}
	return n
}

// join adds a key to a path.
func join(path, key string) string {
	if name := pathName(key); name != key {
		return path + "[" + name + "]"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// pathName returns a name in the form that it has in a path. A name is quoted if it has
// characters with a meaning in paths.
func pathName(s string) string {
	for _, r := range s {
		if r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') {
			return strconv.Quote(s)
		}
	}
	if s == "" {
		return `""`
	}
	return s
}
