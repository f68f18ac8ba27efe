package tree

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
)

const journalKind = "Journal"

// journal is .kalypso/journal.json: it is there from before a write's first
// change to after its last, and names the files that the write makes or removes.
// If the process is killed in between, they are kalypso's as much as those of
// the record. (So is one that someone else makes at such a path before the next
// write: a path that is to be written is kalypso's to name.)
type journal struct {
	APIVersion  string `json:"apiVersion"`
	Kind        string `json:"kind"`
	Platform    string `json:"platform"`
	Environment string `json:"environment"`
	// Record is the blob id of the record that ends the write: once it is there,
	// the journal says nothing any more. It is "" where the record stays as it is.
	Record ID       `json:"record"`
	Write  []string `json:"write"`  // sorted
	Remove []string `json:"remove"` // sorted
}

// journalOf returns the journal of a write from the state before it. What an
// unfinished write left is still unfinished in this one.
func journalOf(p *plan, before *state) *journal {
	j := &journal{
		APIVersion: apiVersion, Kind: journalKind,
		Platform: p.next.Platform, Environment: p.next.Environment,
		Write: p.written(), Remove: p.removed,
	}
	if p.recorded {
		j.Record = BlobID(p.nextBytes)
	}
	if old := before.journal; old != nil {
		j.Write = union(j.Write, old.Write)
		j.Remove = union(j.Remove, old.Remove)
	}
	return j
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// parseJournal reads a journal, which need not be trusted: it names only paths
// that kalypso may write.
func parseJournal(data []byte) (*journal, error) {
	if err := checkHeader(data, journalKind); err != nil {
		return nil, err
	}
	var j journal
	if err := json.Unmarshal(data, &j); err != nil {
		return nil, err
	}
	for _, p := range j.paths() {
		if err := checkPath(p); err != nil {
			return nil, err
		}
	}
	return &j, nil
}

// paths returns all that a journal names; nothing of a nil journal.
func (j *journal) paths() []string {
	if j == nil {
		return nil
	}
	return union(j.Write, j.Remove)
}

// settle makes the record true of the folders that an unfinished write was at:
// the journal's files are in it with the ids that they have now, or are not in
// it. So such a folder can be kept as it is. Files at a cluster type's root that
// the record does not know stay the journal's.
func (s *survey) settle(r *Record, j *journal) error {
	for _, p := range j.paths() {
		files, name := r.owner(p)
		if files == nil {
			continue
		}
		there, err := s.look(p)
		if err != nil {
			return err
		}
		if there.kind != regular {
			delete(files, name)
			continue
		}
		data, err := s.root.ReadFile(p)
		if err != nil {
			return err
		}
		files[name] = BlobID(data)
	}
	for _, c := range r.ClusterTypes {
		for i := range c.Assignments {
			c.Assignments[i].Tree = TreeID(c.Assignments[i].Files)
		}
	}
	r.Tree = TreeID(r.Files())
	return nil
}

// owner returns the files of the record's folder that a path is in, and the
// path's name there; nil where the record has no such folder.
func (r *Record) owner(p string) (map[string]ID, string) {
	first, rest, _ := strings.Cut(p, "/")
	c := r.clusterType(first)
	if c == nil {
		return nil, ""
	}
	second, name, _ := strings.Cut(rest, "/")
	if a := c.assignment(second); a != nil && name != "" {
		return a.Files, name
	}
	if _, known := c.Files[rest]; known {
		return c.Files, rest
	}
	return nil, ""
}

// folders returns the folders of the paths, and those around them, each once,
// inner ones first. The environment's own is not among them.
func folders(paths []string) []string {
	seen := map[string]bool{}
	for _, p := range paths {
		for dir := path.Dir(p); dir != "." && !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
		}
	}
	var dirs []string
	for dir := range seen {
		dirs = append(dirs, dir)
	}
	slices.SortFunc(dirs, func(a, b string) int { return strings.Compare(b, a) })
	return dirs
}
