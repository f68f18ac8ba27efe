package tree

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
)

// state is the content of a folder's own files.
type state struct {
	record      *Record // corrected with the journal; nil if there is no record
	recordBytes []byte  // as on the disk; nil if there is no record
	journal     *journal
	// unfinished are the journal's paths by their first element.
	unfinished map[string][]string
	// litter are files in ownFolder that a finished write left.
	litter []string
	// staging means that a killed write left staged files.
	staging bool
}

// problem is a diagnostic about a folder.
type problem struct {
	diag.Diagnostic
	// adoptable means that --adopt ignores the problem.
	adoptable bool
}

// load reads the state. A file that kalypso cannot read is a problem, and missing in the state.
func (d *Dir) load(s *survey, adopt bool) (*state, []problem, error) {
	st := &state{}
	own, err := s.look(ownFolder)
	if err != nil || own.kind == nothing {
		return st, nil, err
	}
	if own.kind != folder {
		return st, []problem{{d.foreign(ownFolder, "is not a folder, and kalypso keeps its record in it"),
			false}}, nil
	}
	problems, err := d.loadRecord(s, st)
	if err != nil {
		return nil, nil, err
	}
	more, err := d.loadJournal(s, st)
	if err != nil {
		return nil, nil, err
	}
	problems = append(problems, more...)
	if st.record != nil && st.journal != nil {
		more, err := d.recover(s, st, adopt)
		if err != nil {
			return nil, nil, err
		}
		problems = append(problems, more...)
	}
	for _, p := range []string{recordPath, journalPath, gitignorePath, indexPath} {
		if err := st.leave(s, tempPath(p)); err != nil {
			return nil, nil, err
		}
	}
	there, err := s.look(stagingFolder)
	st.staging = there.kind != nothing
	return st, problems, err
}

// leave adds a file to the litter if the file exists.
func (st *state) leave(s *survey, p string) error {
	there, err := s.look(p)
	if err == nil && there.kind != nothing {
		st.litter = append(st.litter, p)
	}
	return err
}

// loadRecord reads the record into the state.
func (d *Dir) loadRecord(s *survey, st *state) ([]problem, error) {
	data, problems, err := d.read(s, recordPath)
	if err != nil || data == nil {
		return problems, err
	}
	st.recordBytes = data
	st.record, err = ParseRecord(data, nil)
	if err != nil {
		return d.unreadable(recordPath, err), nil
	}
	r := st.record
	r.setSource(identified(
		func(name string) ([]byte, error) { return d.clusterTypeBytes(r.entry(name)) }),
		d.addLocation)
	return nil, nil
}

// clusterTypeBytes reads the record of a cluster type. If kalypso cannot use the file,
// the error is a RecordError.
func (d *Dir) clusterTypeBytes(e *ClusterTypeEntry) ([]byte, error) {
	if d.root == nil {
		return nil, fmt.Errorf("reading the record of cluster type %s: %s is closed", e.Name, d.dir)
	}
	s := newSurvey(d.root)
	defer s.close()
	p := ClusterTypeRecordPath(e.Name)
	there, err := s.look(p)
	switch {
	case err != nil:
		return nil, err
	case there.kind == nothing:
		return nil, d.addLocation(e.unusable(errors.New("it is not there")))
	case there.kind != regular:
		return nil, d.addLocation(e.unusable(errors.New("it is not a file")))
	case there.info.Size() > maxOwnFile:
		return nil, d.addLocation(e.unusable(errors.New("it is too large")))
	}
	return d.root.ReadFile(p)
}

// loadJournal reads the journal of an unfinished write into the state.
func (d *Dir) loadJournal(s *survey, st *state) ([]problem, error) {
	data, problems, err := d.read(s, journalPath)
	if err != nil || data == nil {
		return problems, err
	}
	j, err := parseJournal(data)
	switch {
	case err != nil:
		st.litter = append(st.litter, journalPath)
		return d.unreadable(journalPath, err), nil
	case j.Record != "" && st.recordBytes != nil && j.Record == BlobID(st.recordBytes):
		// It is out of date. A killed write left it, with the records of removed cluster types.
		for _, name := range slices.Sorted(maps.Keys(j.Records)) {
			if st.record.entry(name) == nil && st.record != nil {
				if err := st.leave(s, ClusterTypeRecordPath(name)); err != nil {
					return nil, err
				}
			}
		}
		st.litter = append(st.litter, journalPath) // last: it names the others
	default:
		st.journal = j
		st.unfinished = map[string][]string{}
		for _, p := range j.paths() {
			part := PartOf(p)
			st.unfinished[part] = append(st.unfinished[part], p)
		}
	}
	return nil, nil
}

// maxOwnFile limits the size of a record on the disk, which may come from anywhere. The record of a
// cluster type with 100,000 assignments has about 70 MB.
const maxOwnFile = 1 << 30

// MaxRecord limits the size of a record in git, in bytes. Forges accept no larger files.
const MaxRecord = 256 << 20

// read returns a file of ownFolder; nil if it does not exist.
func (d *Dir) read(s *survey, p string) ([]byte, []problem, error) {
	there, err := s.look(p)
	switch {
	case err != nil || there.kind == nothing:
		return nil, nil, err
	case there.kind != regular:
		return nil, []problem{{d.foreign(p, "is not a file"), false}}, nil
	case there.info.Size() > maxOwnFile:
		return nil, d.unreadable(p, errors.New("it is too large")), nil
	}
	data, err := s.root.ReadFile(p)
	return data, nil, err
}

const journalKind = "Journal"

// journal is .kalypso/journal.json. It exists from before a write's first change until after
// its last one, and names the files that the write makes or removes. If the process is killed
// in between, these files belong to kalypso, like the files in the record. (A file that
// someone else makes at such a path before the next write also counts as kalypso's: kalypso
// owns the paths that it writes.)
type journal struct {
	APIVersion  string `json:"apiVersion"`
	Kind        string `json:"kind"`
	Platform    string `json:"platform"`
	Environment string `json:"environment"`
	// Record is the blob id of the record that ends the write: once that record exists, the journal
	// is out of date. It is "" if the record does not change.
	Record ID       `json:"record"`
	Write  []string `json:"write"`
	Remove []string `json:"remove"`
	// Records are the cluster types whose records the write makes or removes, by
	// name, with the blob ids that they may have until it ends, sorted.
	Records map[string][]ID `json:"records,omitempty"`
}

// journalOf returns the journal of a write without the plan's own paths. It has the paths of an
// earlier unfinished write, which is still unfinished during this one.
func journalOf(p *writePlan) *journal {
	j := &journal{
		APIVersion: apiVersion, Kind: journalKind,
		Platform: p.next.Platform, Environment: p.next.Environment,
		Records: map[string][]ID{},
	}
	if p.header {
		j.Record = BlobID(p.nextBytes)
	}
	if old := p.before.journal; old != nil {
		j.Write, j.Remove = old.Write, old.Remove
		maps.Copy(j.Records, old.Records)
	}
	for _, part := range p.parts {
		if part.record {
			j.Records[part.name] = union(j.Records[part.name], []ID{part.next.Record})
		} else if part.next == nil && part.before != nil {
			j.Records[part.name] = union(j.Records[part.name], nil)
		}
	}
	return j
}

// writeJournal writes the journal with the plan's paths, each on a line.
func (p *writePlan) writeJournal(w io.Writer, j *journal) error {
	header, err := encode(struct {
		*journal
		Write  *struct{} `json:"write,omitempty"`
		Remove *struct{} `json:"remove,omitempty"`
	}{journal: j})
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, 1<<18)
	out.Write(header[:len(header)-1]) // without the closing brace; out keeps the error
	var line []byte
	list := func(name string, before []string, each func(yield func(string) bool)) {
		known := map[string]bool{}
		for _, p := range before {
			known[p] = true
		}
		out.WriteString(",\n\"" + name + "\":[")
		first := true
		add := func(p string) bool {
			line = line[:0]
			if !first {
				line = append(line, ',')
			}
			first = false
			line = appendString(append(line, '\n'), p)
			_, err := out.Write(line)
			return err == nil
		}
		for _, p := range before {
			add(p)
		}
		for p := range each {
			if !known[p] && !add(p) {
				return
			}
		}
		out.WriteString("]")
	}
	list("write", j.Write, func(yield func(string) bool) {
		for _, part := range p.parts {
			for path := range part.written {
				if !yield(path) {
					return
				}
			}
		}
	})
	list("remove", j.Remove, func(yield func(string) bool) {
		for _, part := range p.parts {
			for _, path := range part.removed {
				if !yield(path) {
					return
				}
			}
		}
	})
	out.WriteString("}\n")
	return out.Flush()
}

// union returns the elements of both lists, sorted, each once.
func union[T cmp.Ordered](a, b []T) []T {
	all := slices.Concat([]T{}, a, b)
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
	for name, ids := range j.Records {
		if err := checkPartName(name); err != nil {
			return nil, err
		}
		if err := checkIDs(ids...); err != nil {
			return nil, err
		}
	}
	return &j, nil
}

// paths returns all paths that a journal names; nil if the journal is nil.
func (j *journal) paths() []string {
	if j == nil {
		return nil
	}
	return union(j.Write, j.Remove)
}

// recover corrects the record for the folders that an unfinished write changed. The record then has
// the journal's files with their current ids and modes, or does not list missing ones. So such a
// folder can be kept unchanged. Files at a cluster type's root that the record does not list still
// belong to the journal.
func (d *Dir) recover(s *survey, st *state, adopt bool) ([]problem, error) {
	r, j := st.record, st.journal
	var problems []problem
	var bad []string
	for i := range r.ClusterTypes {
		e := &r.ClusterTypes[i]
		_, rewritten := j.Records[e.Name]
		if len(st.unfinished[e.Name]) == 0 && !rewritten {
			continue
		}
		c, err := d.halfWritten(e, j.Records[e.Name])
		if err == nil {
			err = s.correct(c, st.unfinished[e.Name])
		}
		var unusable *RecordError
		switch {
		case errors.As(err, &unusable):
			problems = append(problems, problem{unusable.Diagnostic(), unusable.adoptable()})
			bad = append(bad, e.Name)
			continue
		case err != nil:
			return nil, err
		}
		*e = c.entry("", nil)
		e.corrected = true
		r.remember(e.Name, func() (*ClusterTypeRecord, error) { return c, nil })
	}
	if adopt {
		r.ClusterTypes = slices.DeleteFunc(r.ClusterTypes,
			func(e ClusterTypeEntry) bool { return slices.Contains(bad, e.Name) })
	}
	r.Tree = r.treeID()
	return problems, nil
}

// halfWritten reads the record of a cluster type during an unfinished write. It accepts the
// previous record, or one with one of the ids. (The records are put into their places after all
// other files: if the record is new, the folder matches it.)
func (d *Dir) halfWritten(e *ClusterTypeEntry, ids []ID) (*ClusterTypeRecord, error) {
	data, err := d.clusterTypeBytes(e)
	if err != nil {
		return nil, err
	}
	if id := BlobID(data); !slices.Contains(ids, id) {
		err = e.verify(id)
	}
	if err != nil {
		return nil, d.addLocation(err)
	}
	c, err := e.parseAny(data, new(entryFilesRead))
	return c, d.addLocation(err)
}

// correct updates the record of a cluster type with the actual files at the paths.
func (s *survey) correct(c *ClusterTypeRecord, paths []string) error {
	for _, p := range paths {
		files, name := c.owner(p)
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
		files[name] = Blob{BlobID(data), IsExecutable(there.info, files[name].Executable)}
	}
	for i := range c.Assignments {
		c.Assignments[i].Tree = TreeID(c.Assignments[i].Files)
	}
	return nil
}

// owner returns the files of the record's folder that contains a path, and the path's name there.
// The caller may change the files. owner returns nil if the record has no such folder.
func (c *ClusterTypeRecord) owner(p string) (map[string]Blob, string) {
	rest := strings.TrimPrefix(p, c.Name+"/")
	second, name, _ := strings.Cut(rest, "/")
	if a := c.Assignment(second); a != nil && name != "" {
		return a.Files, name
	}
	if e := c.entryOf(second); e != nil && name != "" {
		e.Files = maps.Clone(e.Files) // other entries may share them
		return e.Files, name
	}
	if _, known := c.Files[rest]; known {
		return c.Files, rest
	}
	return nil, ""
}

// folders returns the folders of the paths, with their parent folders, each once, inner ones first.
// It omits the environment's own folder.
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
