package archive

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// tree follows the links among the added entries and returns the files.
func (b *builder) tree() (*Tree, error) {
	w := &walk{builder: b, out: &Tree{Files: map[string]File{}, Refused: map[string]string{}},
		around: map[*node]bool{}}
	b.entries, b.total = 0, 0 // counted again, with the files that links repeat
	if err := w.folder(b.root, ""); err != nil {
		return nil, err
	}
	return w.out, nil
}

type walk struct {
	*builder
	out    *Tree
	around map[*node]bool // the folders that the walk is in
}

// folder adds the content of a folder to the tree at a path.
func (w *walk) folder(n *node, at string) error {
	w.around[n] = true
	defer delete(w.around, n)
	for _, name := range slices.Sorted(maps.Keys(n.children)) {
		if err := w.node(n.children[name], path.Join(at, name)); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) node(n *node, at string) error {
	if w.entries++; w.entries > w.limits.Entries {
		return w.tooMany(at)
	}
	if err := w.checkPath(at); err != nil {
		return err
	}
	if n.link != nil {
		target, problem := n.follow()
		if problem == "" && target.children != nil && w.around[target] {
			problem = "leads to a folder around it"
		}
		if problem != "" {
			w.out.Refused[at] = reason(fmt.Sprintf("is a link to %q, which %s", n.link.text, problem))
			return nil
		}
		n = target
	}
	switch {
	case n.children != nil:
		return w.folder(n, at)
	case n.refused != "":
		w.out.Refused[at] = n.refused
		return nil
	}
	if w.total += int64(len(n.file.Data)); w.total > w.limits.Total {
		return w.largeTotal()
	}
	w.out.Files[at] = *n.file
	return nil
}

// follow returns the final target of a link, which is not a link, or the reason why there is no
// target. It follows each link once, so that the costs of links to links are linear.
func (n *node) follow() (target *node, problem string) {
	l := n.link
	switch l.state {
	case looking:
		return nil, "goes in circles"
	case unknown:
		l.state = looking
		l.target, l.problem = n.parent.resolve(l.text)
		l.state = known
	}
	return l.target, l.problem
}

// resolve walks from a folder along the target of a link.
func (n *node) resolve(target string) (*node, string) {
	if strings.HasPrefix(target, "/") {
		return nil, "is an absolute path"
	}
	at := n
	for element := range strings.SplitSeq(target, "/") {
		switch element {
		case "", ".":
			continue
		case "..":
			if at.parent == nil {
				return nil, "leaves the tree"
			}
			at = at.parent
			continue
		}
		child, ok := at.children[element]
		if !ok {
			return nil, "is not there"
		}
		if child.link != nil {
			var problem string
			if child, problem = child.follow(); problem != "" {
				return nil, problem
			}
		}
		at = child
	}
	return at, ""
}
