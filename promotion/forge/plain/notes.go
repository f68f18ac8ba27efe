package plain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/lazyregexp"
)

// fanOut is the largest number of notes in one folder. Beyond that, each note is in a folder of
// the first two digits of its name. git reads all forms, including nested ones
// (https://git-scm.com/docs/git-notes, NOTES).
const fanOut = 1000

// notes reads notes, and caches them.
type notes struct {
	from    objects
	trees   map[git.Hash][]git.Entry
	texts   map[git.Hash]string
	commits map[git.Hash]object
}

// objects are the source of notes.
type objects interface {
	Object(id git.Hash) (git.Object, error)
}

func readNotes(from objects) *notes {
	return &notes{from: from, trees: map[git.Hash][]git.Entry{}, texts: map[git.Hash]string{},
		commits: map[git.Hash]object{}}
}

// tree returns the entries of a folder. The zero Hash has no entries.
func (n *notes) tree(id git.Hash) ([]git.Entry, error) {
	if entries, ok := n.trees[id]; ok || id.IsZero() {
		return entries, nil
	}
	o, err := n.from.Object(id)
	if err != nil {
		return nil, err
	}
	if o.Kind != git.TreeKind {
		return nil, fmt.Errorf("the notes have a %s where a tree should be: %s", o.Kind, git.Short(id))
	}
	entries, err := git.ParseTree(o.Data)
	n.trees[id] = entries
	return entries, err
}

// find returns the ids of the notes of a name below a folder: one, unless different
// programs have written several.
func (n *notes) find(folder git.Hash, name string) ([]git.Hash, error) {
	entries, err := n.tree(folder)
	if err != nil {
		return nil, err
	}
	var found []git.Hash
	for _, e := range entries {
		switch {
		case e.Name == name && e.Mode != git.FolderMode:
			found = append(found, e.ID)
		case len(name) > 2 && e.Name == name[:2] && e.Mode == git.FolderMode:
			deeper, err := n.find(e.ID, name[2:])
			if err != nil {
				return nil, err
			}
			found = append(found, deeper...)
		}
	}
	return found, nil
}

// lines returns the lines of notes, without duplicates.
func (n *notes) lines(ids []git.Hash) ([]string, error) {
	var lines []string
	seen := map[string]bool{}
	for _, id := range ids {
		if _, ok := n.texts[id]; !ok {
			o, err := n.from.Object(id)
			if err != nil {
				return nil, err
			}
			n.texts[id] = string(o.Data)
		}
		for line := range strings.SplitSeq(n.texts[id], "\n") {
			if line = strings.TrimSpace(line); line != "" && !seen[line] {
				seen[line] = true
				lines = append(lines, line)
			}
		}
	}
	return lines, nil
}

// writing collects the objects of a change to the notes.
type writing struct {
	*notes
	objects map[git.Hash]git.Object
}

func (w *writing) add(kind git.Kind, data []byte) git.Hash {
	if w.objects == nil {
		w.objects = map[git.Hash]git.Object{}
	}
	id := git.ID(kind, data)
	w.objects[id] = git.Object{Kind: kind, Data: data}
	return id
}

// put returns a folder with a note that replaces all of its name.
func (w *writing) put(folder git.Hash, name string, note git.Hash) (git.Hash, error) {
	entries, err := w.tree(folder)
	if err != nil {
		return git.Hash{}, err
	}
	entries = slices.Clone(entries)
	if flat := slices.DeleteFunc(slices.Clone(entries),
		func(e git.Entry) bool { return !isNote(e) }); len(flat) >= fanOut {
		if entries, err = w.spread(entries); err != nil {
			return git.Hash{}, err
		}
	}
	entries = slices.DeleteFunc(entries,
		func(e git.Entry) bool { return e.Name == name && e.Mode != git.FolderMode })
	if len(name) <= 2 || !slices.ContainsFunc(entries, isFan) {
		return w.write(append(entries, git.Entry{Name: name, Mode: git.FileMode, ID: note})), nil
	}
	return w.addToFolder(entries, name, note)
}

// addToFolder adds a note to the folder of its first two digits.
func (w *writing) addToFolder(entries []git.Entry, name string, note git.Hash) (git.Hash, error) {
	at := slices.IndexFunc(entries, func(e git.Entry) bool { return isFan(e) && e.Name == name[:2] })
	if at < 0 {
		at = len(entries)
		entries = append(entries, git.Entry{Name: name[:2], Mode: git.FolderMode})
	}
	folder, err := w.put(entries[at].ID, name[2:], note)
	entries[at].ID = folder
	return w.write(entries), err
}

// spread moves all notes of a folder into folders named by their first two digits.
func (w *writing) spread(entries []git.Entry) ([]git.Entry, error) {
	fans := map[string][]git.Entry{}
	for _, e := range entries {
		if isFan(e) {
			there, err := w.tree(e.ID)
			if err != nil {
				return nil, err
			}
			fans[e.Name] = append(fans[e.Name], there...)
		}
	}
	var rest []git.Entry
	for _, e := range entries {
		switch {
		case isNote(e):
			moved, err := w.joined(fans[e.Name[:2]], git.Entry{Name: e.Name[2:], Mode: e.Mode, ID: e.ID})
			if err != nil {
				return nil, err
			}
			fans[e.Name[:2]] = moved
		case !isFan(e):
			rest = append(rest, e)
		}
	}
	for name, notes := range fans {
		rest = append(rest, git.Entry{Name: name, Mode: git.FolderMode, ID: w.write(notes)})
	}
	return rest, nil
}

// joined adds a note to a folder. If the folder has a note of that name, from a program with
// another form, joined keeps all lines of both.
func (w *writing) joined(folder []git.Entry, note git.Entry) ([]git.Entry, error) {
	at := slices.IndexFunc(folder,
		func(e git.Entry) bool { return e.Name == note.Name && e.Mode != git.FolderMode })
	if at < 0 {
		return append(folder, note), nil
	}
	lines, err := w.lines([]git.Hash{folder[at].ID, note.ID})
	if err == nil {
		folder[at].ID = w.add(git.BlobKind, []byte(strings.Join(lines, "\n")+"\n"))
	}
	return folder, err
}

// write adds a folder, and caches it.
func (w *writing) write(entries []git.Entry) git.Hash {
	data := git.EncodeTree(entries)
	id := w.add(git.TreeKind, data)
	w.trees[id] = entries
	return id
}

var (
	noteName = lazyregexp.New(`^[0-9a-f]{3,40}$`)
	fanName  = lazyregexp.New(`^[0-9a-f]{2}$`)
)

func isNote(e git.Entry) bool { return e.Mode != git.FolderMode && noteName.MatchString(e.Name) }

func isFan(e git.Entry) bool { return e.Mode == git.FolderMode && fanName.MatchString(e.Name) }
