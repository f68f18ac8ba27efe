package archive

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// entryPath returns the path of an entry without a final slash and leading "./",
// which tar writes; "" is the root itself. The problem follows the path in a
// sentence, and is "" for a path that is sound.
func entryPath(name string) (clean, problem string) {
	clean = strings.TrimRight(name, "/")
	if clean == "" && name != "" {
		return "", "is an absolute path"
	}
	for {
		rest, ok := strings.CutPrefix(clean, "./")
		if !ok {
			break
		}
		clean = strings.TrimLeft(rest, "/")
	}
	if clean == "" || clean == "." {
		return "", ""
	}
	return clean, pathProblem(clean)
}

// pathProblem returns the problem of a path, or "".
func pathProblem(p string) string {
	if strings.HasPrefix(p, "/") {
		return "is an absolute path"
	}
	for e := range strings.SplitSeq(p, "/") {
		if problem := NameProblem(e); problem != "" {
			return problem
		}
	}
	return ""
}

// maxElement is the largest length of an element of a path, in bytes. No file system accepts
// more.
const maxElement = 255

// NameProblem returns the problem of one element of a path, as text that follows the path in a
// sentence, or "". It refuses names of git's own folder in the forms that Windows and HFS+ accept
// too, because a tree may be written to such a disk. These are the name in any case, its short
// name, the name with a colon and text after it, and the name with final dots or spaces.
func NameProblem(e string) string {
	switch {
	case e == "":
		return "has an empty name in it"
	case e == ".":
		return `has "." in it`
	case e == "..":
		return `has ".." in it`
	case len(e) > maxElement:
		return "has a name in it that no file system takes"
	case !utf8.ValidString(e):
		return "is not written in UTF-8"
	case strings.ContainsFunc(e,
		func(r rune) bool { return r == '\\' || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }):
		return "has a backslash or an invisible character in it"
	}
	name, _, _ := strings.Cut(e, ":")
	name = strings.ToLower(strings.TrimRight(name, ". "))
	if name == ".git" || name == "git~1" {
		return "is in a folder of git's own"
	}
	return ""
}
