package plain

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/forge"
)

// notesRef is the ref of the notes.
const notesRef = "refs/notes/kalypso"

// noteLine is a line of a note. At is for people, and makes a repeated status a new line:
// Statuses uses the commit's date.
type noteLine struct {
	Name        string      `json:"name"`
	State       forge.State `json:"state"`
	Description string      `json:"description,omitempty"`
	URL         string      `json:"url,omitempty"`
	At          string      `json:"at"`
}

// encodeLine returns the line of a status.
func encodeLine(s forge.Status, at time.Time) string {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	// Encoding this type cannot fail.
	_ = encoder.Encode(noteLine{Name: s.Name, State: s.State, Description: s.Description, URL: s.URL,
		At: at.UTC().Format(time.RFC3339)})
	return strings.TrimSpace(line.String())
}

// decodeLine returns the status of a line, if it is one: people write notes too.
func decodeLine(line string) (forge.Status, bool) {
	var s noteLine
	if json.Unmarshal([]byte(line), &s) != nil || s.Name == "" {
		return forge.Status{}, false
	}
	switch s.State {
	case forge.Pending, forge.Success, forge.Failure:
		return forge.Status{Name: s.Name, State: s.State, Description: s.Description, URL: s.URL}, true
	}
	return forge.Status{}, false
}

// Statuses implements forge.Forge.
func (f *Forge) Statuses(ctx context.Context, commits []git.Hash) (map[git.Hash][]forge.Status,
	error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	tip, err := f.tip(ctx, notesRef)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", notesRef, err)
	}
	statuses, err := f.history(ctx, tip, commits, f.notes)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", notesRef, err)
	}
	return statuses, nil
}

// line is a line of the note of a commit.
type line struct {
	about git.Hash
	text  string
}

// history returns the statuses in the notes at a commit, with their authors. For each line it
// goes back to the oldest commit that has it, through the first parent with that line.
func (f *Forge) history(ctx context.Context, tip git.Hash, about []git.Hash,
	n *notes) (map[git.Hash][]forge.Status, error) {
	if tip.IsZero() {
		return nil, nil
	}
	wanted, err := n.all(tip, about)
	if err != nil {
		return nil, err
	}
	found := map[line]forge.Status{}
	for waiting := (queue{tip: slices.Clone(wanted)}); len(waiting) > 0; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		id, lines := waiting.pop()
		c, err := n.commit(id)
		if err != nil {
			return nil, err
		}
		lines, err = n.older(c, lines, waiting)
		if err != nil {
			return nil, err
		}
		if len(lines) == 0 {
			continue
		}
		by, at, err := f.author(c)
		if err != nil {
			return nil, fmt.Errorf("the commit %s: %w", git.Short(id), err)
		}
		for _, l := range lines {
			s, _ := decodeLine(l.text)
			s.By, s.At = by, at
			found[l] = s
		}
	}
	// Sorted by time, and then in the note's order.
	slices.SortStableFunc(wanted, func(a, b line) int { return found[a].At.Compare(found[b].At) })
	statuses := map[git.Hash][]forge.Status{}
	for _, l := range wanted {
		statuses[l.about] = append(statuses[l.about], found[l])
	}
	return statuses, nil
}

// queue has commits of the notes, each with the lines that may be from an older commit.
type queue map[git.Hash][]line

func (q queue) pop() (git.Hash, []line) {
	for id, lines := range q {
		delete(q, id)
		return id, lines
	}
	return git.Hash{}, nil
}

// all returns the statuses in the notes of some commits, as lines in their order.
func (n *notes) all(tip git.Hash, about []git.Hash) ([]line, error) {
	c, err := n.commit(tip)
	if err != nil {
		return nil, err
	}
	var all []line
	seen := map[git.Hash]bool{}
	for _, commit := range about {
		if seen[commit] {
			continue
		}
		seen[commit] = true
		ids, err := n.find(c.tree(), commit.String())
		if err != nil {
			return nil, err
		}
		texts, err := n.lines(ids)
		if err != nil {
			return nil, err
		}
		for _, text := range texts {
			if _, ok := decodeLine(text); ok {
				all = append(all, line{commit, text})
			}
		}
	}
	return all, nil
}

// older queues the lines that a parent has, and returns the others.
func (n *notes) older(c object, lines []line, waiting queue) ([]line, error) {
	for _, parent := range c.parents() {
		p, err := n.commit(parent)
		if err != nil {
			return nil, err
		}
		has := map[line]bool{}
		for _, about := range subjects(lines) {
			ids, err := n.find(p.tree(), about.String())
			if err != nil {
				return nil, err
			}
			texts, err := n.lines(ids)
			if err != nil {
				return nil, err
			}
			for _, text := range texts {
				has[line{about, text}] = true
			}
		}
		var left []line
		for _, l := range lines {
			if has[l] {
				waiting[parent] = append(waiting[parent], l)
			} else {
				left = append(left, l)
			}
		}
		lines = left
	}
	return lines, nil
}

// subjects returns the commits of the notes that have lines, each once.
func subjects(lines []line) []git.Hash {
	var all []git.Hash
	seen := map[git.Hash]bool{}
	for _, l := range lines {
		if !seen[l.about] {
			seen[l.about] = true
			all = append(all, l.about)
		}
	}
	return all
}

// commit reads a commit of the notes.
func (n *notes) commit(id git.Hash) (object, error) {
	if c, ok := n.commits[id]; ok {
		return c, nil
	}
	o, err := n.from.Object(id)
	if err != nil {
		return object{}, err
	}
	if o.Kind != git.CommitKind {
		return object{}, fmt.Errorf("%s is a %s where a commit should be", git.Short(id), o.Kind)
	}
	n.commits[id] = parseCommit(o.Data)
	return n.commits[id], nil
}

func (o object) tree() git.Hash { return plumbing.NewHash(o.header("tree")) }

func (o object) parents() (ids []git.Hash) {
	for _, h := range o.headers {
		if h[0] == "parent" && plumbing.IsHash(h[1]) {
			ids = append(ids, plumbing.NewHash(h[1]))
		}
	}
	return ids
}

// author returns the author and the time of a commit of the notes: the principal of the key
// that it is signed with, or else its committer. An invalid signature is ignored.
func (f *Forge) author(c object) (string, time.Time, error) {
	by, at, err := c.person("committer")
	if err != nil {
		return "", time.Time{}, err
	}
	if key, err := c.key(); err == nil {
		if principal, ok := f.signers.principal(key, at); ok {
			return principal, at, nil
		}
	}
	return by, at, nil
}

// setStatus adds a line, unless the newest one of the viewer is the same.
func (f *Forge) setStatus(ctx context.Context, commit git.Hash, s forge.Status) error {
	tip, err := f.tip(ctx, notesRef)
	if err != nil {
		return err
	}
	history, err := f.history(ctx, tip, []git.Hash{commit}, f.notes)
	if err != nil {
		return err
	}
	at := f.o.Now().Truncate(time.Second)
	viewer := f.viewer(at)
	if forge.Newest(history[commit], s.Name,
		func(author string) bool { return author == viewer }).Same(s) {
		return nil
	}
	w := &writing{notes: f.notes}
	id, err := f.add(w, tip, commit, s, at)
	if err != nil {
		return err
	}
	if h := f.held; h != nil {
		if len(h.objects) == 0 {
			h.old = tip
		}
		maps.Copy(h.objects, w.objects)
		h.tip, h.statuses = id, append(h.statuses, heldStatus{commit, s})
		return nil
	}
	return f.send(ctx, notesRef, tip, id, w.objects)
}

// send pushes a ref of notes with the objects of a change.
func (f *Forge) send(ctx context.Context, ref string, old, new git.Hash,
	objects map[git.Hash]git.Object) error {
	return f.repository.Push(ctx, ref, old, new, func(pack *git.PackWriter) error {
		for _, o := range objects {
			if _, err := pack.Add(o.Kind, o.Data); err != nil {
				return err
			}
		}
		return nil
	})
}

// add makes the commit that adds a line to a note.
func (f *Forge) add(w *writing, tip, about git.Hash, s forge.Status, at time.Time) (git.Hash,
	error) {
	message := fmt.Sprintf("%s of %s is %s", s.Name, git.Short(about), s.State)
	return f.commit(w, tip, about, message, at, func(old []string, at time.Time) []byte {
		return []byte(strings.Join(append(old, encodeLine(s, at)), "\n") + "\n")
	})
}

// commit makes a commit of the notes that changes one of them. change returns the new note,
// given its lines and the time of the commit.
func (f *Forge) commit(w *writing, tip, about git.Hash, message string, at time.Time,
	change func(old []string, at time.Time) []byte) (git.Hash, error) {
	var old git.Hash
	var parents []git.Hash
	if !tip.IsZero() {
		c, err := w.commit(tip)
		if err != nil {
			return git.Hash{}, err
		}
		// A clock that is late must not put a status before earlier ones.
		if _, before, err := c.person("committer"); err == nil && before.After(at) {
			at = before
		}
		old, parents = c.tree(), []git.Hash{tip}
	}
	ids, err := w.find(old, about.String())
	if err != nil {
		return git.Hash{}, err
	}
	text, err := w.lines(ids)
	if err != nil {
		return git.Hash{}, err
	}
	tree, err := w.put(old, about.String(), w.add(git.BlobKind, change(text, at)))
	if err != nil {
		return git.Hash{}, err
	}
	by := f.o.By
	by.When = at
	data, err := f.encode(
		git.Commit{Tree: tree, Parents: parents, Author: by, Committer: by, Message: message})
	return w.add(git.CommitKind, data), err
}

// Annotate sets the note of a commit in a ref of notes, such as refs/notes/hydrator.metadata, to
// a text. It writes nothing if the note has the text already. It retries after lost races.
func (f *Forge) Annotate(ctx context.Context, ref string, about git.Hash, text string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.retry(ctx, func() error {
		tip, err := f.tip(ctx, ref)
		if err != nil {
			return err
		}
		w := &writing{notes: f.notes}
		same := false
		message := "Note " + git.Short(about)
		id, err := f.commit(w, tip, about, message, f.o.Now().Truncate(time.Second),
			func(old []string, _ time.Time) []byte {
				same = strings.Join(old, "\n") == text
				return []byte(text + "\n")
			})
		if err != nil || same {
			return err
		}
		return f.send(ctx, ref, tip, id, w.objects)
	})
}
