package archive

import (
	"fmt"
	"iter"
	"path"
	"strings"
)

// Entry is a part of a tree: a file, a link, or a path that is refused. At most one of
// Link, Refused and Data is set.
type Entry struct {
	Path       string
	Data       []byte
	Executable bool
	// Link is the target of a symbolic link, from the link's folder.
	Link string
	// Refused is the reason why the content is not available; see [Tree].
	Refused string

	folder bool
	hard   string // the path of an entry before this one with the same content
}

// Build makes a tree of entries in any order, within [DefaultLimits]. Links that
// stay in the tree become the files and folders that they lead to; others are
// refused. An error of the sequence is returned as it is; others are *EntryError
// and *LimitError.
func Build(entries iter.Seq2[Entry, error]) (*Tree, error) { return DefaultLimits.Build(entries) }

// Build is [Build] within other limits.
func (l Limits) Build(entries iter.Seq2[Entry, error]) (*Tree, error) {
	b := &builder{limits: l, root: &node{children: map[string]*node{}}}
	for e, err := range entries {
		if err != nil {
			return nil, err
		}
		if err := b.add(e); err != nil {
			return nil, err
		}
	}
	return b.tree()
}

// node is a path of a tree that is being built. It is a folder if it has children, else a file, a
// link or a refused path.
type node struct {
	parent   *node // nil for the root
	children map[string]*node
	file     *File
	link     *link
	refused  string
}

// link is a symbolic link, and its target once that is known.
type link struct {
	text    string
	state   linkState
	target  *node // no link itself; nil if there is a problem
	problem string
}

type linkState uint8

const (
	unknown linkState = iota
	looking
	known
)

type builder struct {
	limits  Limits
	root    *node
	entries int
	total   int64
}

// add brings an entry into the tree, below folders that it makes.
func (b *builder) add(e Entry) error {
	name, problem := entryPath(e.Path)
	if problem != "" {
		return &EntryError{Entry: e.Path, Problem: problem}
	}
	if err := b.checkPath(name); err != nil {
		return err
	}
	if name == "" {
		if e.folder {
			return nil
		}
		return &EntryError{Entry: e.Path, Problem: "is the root, and not a folder"}
	}
	dir, err := b.folder(path.Dir(name))
	if err != nil {
		return err
	}
	base := path.Base(name)
	if e.folder {
		_, err := b.child(dir, base, name)
		return err
	}
	if old, ok := dir.children[base]; ok {
		if old.children != nil {
			return &EntryError{Entry: name, Problem: "is a file and the folder of another"}
		}
		return &EntryError{Entry: name, Problem: "is there twice"}
	}
	n, err := b.node(e)
	if err != nil {
		return err
	}
	return b.put(dir, base, n)
}

// put brings a node into a folder.
func (b *builder) put(dir *node, element string, n *node) error {
	if b.entries++; b.entries > b.limits.Entries {
		return b.tooMany(element)
	}
	n.parent = dir
	dir.children[element] = n
	return nil
}

// node makes the node of an entry that is no folder.
func (b *builder) node(e Entry) (*node, error) {
	switch {
	case e.Refused != "":
		return &node{refused: reason(e.Refused)}, nil
	case len(e.Link) > b.limits.Path:
		return &node{refused: "is a link that is longer than any path"}, nil
	case e.Link != "":
		return &node{link: &link{text: e.Link}}, nil
	case e.hard != "":
		// Make the node of a further name of a file: tar has it after the file.
		target, problem := entryPath(e.hard)
		if problem != "" {
			return nil, &EntryError{Entry: e.Path,
				Problem: fmt.Sprintf("is a hard link to %q, which %s", e.hard, problem)}
		}
		n := b.root
		for element := range strings.SplitSeq(target, "/") {
			if n = n.children[element]; n == nil {
				return nil, &EntryError{Entry: e.Path,
					Problem: fmt.Sprintf("is a hard link to %q, which is not before it", e.hard)}
			}
		}
		if n.children != nil {
			return nil, &EntryError{Entry: e.Path,
				Problem: fmt.Sprintf("is a hard link to the folder %q", e.hard)}
		}
		return &node{file: n.file, link: n.link, refused: n.refused}, nil
	case int64(len(e.Data)) > b.limits.File:
		return nil, &LimitError{Entry: e.Path,
			Most: fmt.Sprintf("files of at most %d bytes", b.limits.File)}
	}
	if b.total += int64(len(e.Data)); b.total > b.limits.Total {
		return nil, b.largeTotal()
	}
	return &node{file: &File{Data: e.Data, Executable: e.Executable}}, nil
}

// folder returns the folder at a path. It makes the folder if it is missing.
func (b *builder) folder(name string) (*node, error) {
	dir := b.root
	if name == "." {
		return dir, nil
	}
	for element := range strings.SplitSeq(name, "/") {
		var err error
		if dir, err = b.child(dir, element, name); err != nil {
			return nil, err
		}
	}
	return dir, nil
}

// child returns the child that is a folder. It makes the folder if it is missing. name is the
// final path, for errors.
func (b *builder) child(dir *node, element, name string) (*node, error) {
	child, ok := dir.children[element]
	if !ok {
		child = &node{children: map[string]*node{}}
		return child, b.put(dir, element, child)
	}
	if child.children == nil {
		return nil, &EntryError{Entry: name,
			Problem: fmt.Sprintf("is in or at %q, which is no folder", element)}
	}
	return child, nil
}

func (b *builder) checkPath(name string) error {
	if len(name) > b.limits.Path {
		return &LimitError{Entry: name[:min(len(name), 80)] + "...",
			Most: fmt.Sprintf("paths of at most %d bytes", b.limits.Path)}
	}
	if depth := strings.Count(name, "/") + 1; depth > b.limits.Depth {
		return &LimitError{Entry: name, Most: fmt.Sprintf("paths of at most %d elements", b.limits.Depth)}
	}
	return nil
}

func (b *builder) tooMany(entry string) error {
	return &LimitError{Entry: entry, Most: fmt.Sprintf("at most %d entries", b.limits.Entries)}
}

func (b *builder) largeTotal() error {
	return &LimitError{Most: fmt.Sprintf("at most %d bytes", b.limits.Total)}
}
