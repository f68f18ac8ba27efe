package compare

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/kalypso-io/kalypso/backends"
)

// changes are the changes of one folder.
type changes struct {
	list []Change
	// namespace is the namespace of the folder, if the folder has one and it did not
	// change.
	namespace string
	// of are the only clusters that changes are for; nil if they are for all.
	of map[string]bool
	// detail reports that no change does anything by itself on clusters.
	detail bool
}

// maxChanges is the largest number of changes of a file that are listed one by one. If a
// file has more, it is compared as text.
const maxChanges = 1000

// memo has the changes of files that were compared before, by their contents. It helps
// because the entries of clusters that move from one class to another are alike. A nil memo
// does not keep anything.
type memo map[digest][]Change

// maxKept is the largest number of changes that a memo keeps.
const maxKept = 1000

// compareFile is the function compareFile.
func (m memo) compareFile(name string, a, b []byte) []Change {
	if m == nil {
		return compareFile(name, a, b)
	}
	h := sha256.New()
	for _, text := range [][]byte{[]byte(name), a, b} {
		fmt.Fprintf(h, "%d:", len(text))
		h.Write(text)
	}
	key := digest(h.Sum(nil))
	found, known := m[key]
	if !known {
		if found = compareFile(name, a, b); len(m) < maxKept {
			m[key] = found
		}
	}
	return slices.Clone(found)
}

// compareFiles compares the files of two folders, which it gets by path.
func compareFiles(before, after map[string]backends.File, compared memo) *changes {
	c := &changes{namespace: namespaceOf(after)}
	if !sameNamespaces(before, after) && namespaceOf(before) != c.namespace {
		c.namespace = ""
	}
	all := maps.Clone(before)
	maps.Copy(all, after)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		a, inA := before[name]
		b, inB := after[name]
		var found []Change
		switch {
		case !inB:
			found = wholeFile(name, a.Data, Removed)
		case !inA:
			found = wholeFile(name, b.Data, Added)
		case !bytes.Equal(a.Data, b.Data):
			found = compared.compareFile(name, a.Data, b.Data)
		}
		if a.Executable != b.Executable {
			found = append(found, compareModes(a, b, inA, inB))
		}
		for i := range found {
			found[i].File = name
		}
		c.list = append(c.list, found...)
	}
	return c
}

// isYAML reports whether a file has values, by its name. JSON is YAML.
func isYAML(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// compareFile compares the two contents of a file, which differ.
func compareFile(name string, a, b []byte) []Change {
	if isYAML(name) {
		before, err1 := parseYAML(a)
		after, err2 := parseYAML(b)
		if err1 == nil && err2 == nil {
			found := compareDocuments(before, after)
			if len(found) > 0 && len(found) <= maxChanges {
				return found
			}
		}
	}
	return []Change{{Kind: Text, Diff: lines(a, b)}}
}

// compareModes reports that one of two files is executable, and the other is not or
// does not exist.
func compareModes(a, b backends.File, inA, inB bool) Change {
	c := Change{Kind: Mode}
	if inA {
		c.From = modeOf(a)
	}
	if inB {
		c.To = modeOf(b)
	}
	return c
}

// modeOf returns the mode of a file in a git tree, as JSON.
func modeOf(f backends.File) json.RawMessage {
	if f.Executable {
		return json.RawMessage(`"100755"`)
	}
	return json.RawMessage(`"100644"`)
}

// wholeFile reports the content of a file that was added or removed.
func wholeFile(name string, data []byte, kind Kind) []Change {
	if isYAML(name) {
		docs, err := parseYAML(data)
		var found []Change
		if err == nil && kind == Added {
			found = compareDocuments(nil, docs)
		} else if err == nil {
			found = compareDocuments(docs, nil)
		}
		if len(found) > 0 && len(found) <= maxChanges {
			return found
		}
	}
	c := Change{Kind: kind}
	content := value{kind: text, text: notShown(len(data))}
	if isText(data) && len(data) <= maxShown {
		content.text = string(data)
	}
	if kind == Added {
		c.To = content.json()
	} else {
		c.From = content.json()
	}
	return []Change{c}
}

// Bounds of texts, in bytes: of the files that are compared by lines, and of the shown
// texts.
const (
	maxText  = 1 << 20
	maxShown = 64 << 10
)

// lines returns how the lines of two texts differ.
func lines(a, b []byte) string {
	if !isText(a) || !isText(b) || len(a) > maxText || len(b) > maxText {
		return "-" + notShown(len(a)) + "\n+" + notShown(len(b)) + "\n"
	}
	d := string(diff.Diff("a", a, "b", b))
	for range 3 { // the names of the files
		_, d, _ = strings.Cut(d, "\n")
	}
	if len(d) <= maxShown {
		return d
	}
	cut := strings.LastIndexByte(d[:maxShown], '\n') + 1
	if cut == 0 {
		return "-" + notShown(len(a)) + "\n+" + notShown(len(b)) + "\n"
	}
	return d[:cut] + "\\ " + notShown(len(d)-cut) + "\n"
}

func isText(b []byte) bool { return utf8.Valid(b) && !bytes.ContainsRune(b, 0) }

// notShown replaces content that is not text, or is too long.
func notShown(n int) string { return fmt.Sprintf("(%d bytes)", n) }
