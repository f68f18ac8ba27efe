package tree

import (
	"bytes"
	"slices"
	"strings"
	"sync"
)

// recordLines is the record of a cluster type as Encode writes it. It has a line for each
// assignment, and most of them are never parsed.
type recordLines struct {
	before, after []byte // the lines, without the comma between them
	lines         []recordLine
}

// recordLine is the line of an assignment.
type recordLine struct {
	text              []byte
	target, namespace string
	tree              ID
}

// retains reports whether anything outlives the assignment.
func (l *recordLine) retains() bool {
	before, _, _ := bytes.Cut(l.text, []byte(`,"tree":"`))
	return bytes.Contains(before, []byte(`,"retained":[`))
}

// splitRecord splits the record of a cluster type. It returns nil if the record does not have the
// form that Encode writes. It does not check the whole record.
func splitRecord(data []byte) *recordLines {
	const begin, next, end = "\n  \"assignments\": [", "\n    ", "\n  ]"
	at := bytes.Index(data, []byte(begin))
	if at < 0 {
		return nil
	}
	at += len(begin)
	l := &recordLines{before: data[:at:at]}
	for rest := data[at:]; ; {
		line, found := bytes.CutPrefix(rest, []byte(next))
		if !found {
			l.after = rest
			break
		}
		n := bytes.IndexByte(line, '\n')
		if n < 0 {
			return nil
		}
		r := recordLine{text: bytes.TrimSuffix(line[:n:n], []byte(","))}
		if !r.parse() || len(l.lines) > 0 && l.lines[len(l.lines)-1].target >= r.target {
			return nil
		}
		l.lines, rest = append(l.lines, r), line[n:]
	}
	if !bytes.HasPrefix(l.after, []byte(end)) {
		return nil
	}
	return l
}

// parse reads the fields at the beginning of the line.
func (l *recordLine) parse() bool {
	rest, lead := l.text, byte('{')
	for _, name := range []string{`"deploymentTarget":"`, `"workspace":"`, `"workload":"`,
		`"namespace":"`} {
		if len(rest) == 0 || rest[0] != lead || !bytes.HasPrefix(rest[1:], []byte(name)) {
			return false
		}
		value, after, ok := bytes.Cut(rest[1+len(name):], []byte{'"'})
		if !ok || bytes.IndexByte(value, '\\') >= 0 {
			return false
		}
		switch rest, lead = after, ','; name {
		case `"deploymentTarget":"`:
			l.target = string(value)
		case `"namespace":"`:
			l.namespace = string(value)
		}
	}
	_, after, _ := bytes.Cut(l.text, []byte(`,"tree":"`))
	id, _, ok := bytes.Cut(after, []byte{'"'})
	l.tree = ID(id)
	return ok
}

// part returns the record with only the wanted lines, by number. It need not be trusted.
func (l *recordLines) part(wanted func(i int) bool) []byte {
	out := slices.Clone(l.before)
	for i, n := 0, 0; i < len(l.lines); i++ {
		if wanted(i) {
			out = append(appendNext(out, n), l.lines[i].text...)
			n++
		}
	}
	return append(out, l.after...)
}

// setSource sets the source of the cluster types' records. read returns the bytes of a record with
// their id, and they need not be trusted. addLocation adds the location to an error about a record.
func (r *Record) setSource(read func(name string) ([]byte, ID, error),
	addLocation func(error) error) {
	r.bytes = func(name string) ([]byte, error) {
		data, id, err := read(name)
		if err == nil {
			err = r.entry(name).verify(id)
		}
		return data, addLocation(err)
	}
	known := new(entryFilesRead)
	r.parse = func(name string, data []byte) (*ClusterTypeRecord, error) {
		c, err := r.entry(name).parseAny(data, known)
		return c, addLocation(err)
	}
	r.load = func(name string) (*ClusterTypeRecord, error) {
		data, err := r.bytes(name)
		if err != nil {
			return nil, err
		}
		return r.parse(name, data)
	}
}

// lines returns the lines of a listed cluster type's record, and reads it once. It returns nil if
// the record must be read as a whole.
func (r *Record) lines(name string) (*recordLines, error) {
	r.mu.Lock()
	_, whole := r.loaded[name]
	split, known := r.split[name]
	if !known && !whole && r.bytes != nil {
		split = sync.OnceValues(func() (*recordLines, error) {
			data, err := r.bytes(name)
			return splitRecord(data), err
		})
		if r.split == nil {
			r.split = map[string]func() (*recordLines, error){}
		}
		r.split[name] = split
	}
	r.mu.Unlock()
	if whole || split == nil {
		return nil, nil
	}
	return split()
}

// Part returns the record of a cluster type with only the wanted assignments. wanted selects them
// by deployment target, namespace, and whether anything outlives them. Part returns nil if the
// record does not list the cluster type. The other assignments need not be read, so they cost
// little. Part may be called by several goroutines, and returns the same errors as ClusterType.
func (r *Record) Part(name string,
	wanted func(target, namespace string, retains bool) bool) (*ClusterTypeRecord, error) {
	if r.entry(name) == nil {
		return nil, nil
	}
	l, err := r.lines(name)
	if err != nil {
		return nil, err
	}
	if l != nil {
		return r.parse(name, l.part(func(i int) bool {
			line := &l.lines[i]
			return wanted(line.target, line.namespace, line.retains())
		}))
	}
	c, err := r.ClusterType(name)
	if err != nil {
		return nil, err
	}
	some := *c
	some.Assignments = slices.DeleteFunc(slices.Clone(c.Assignments), func(a AssignmentRecord) bool {
		return !wanted(a.DeploymentTarget, a.Namespace, len(a.Retained) > 0)
	})
	return &some, nil
}

// Outline is the part of a recorded assignment that shows whether the assignment has changed.
type Outline struct {
	DeploymentTarget, Namespace string
	Tree                        ID
}

// Outlines returns the assignments of a cluster type, sorted by deployment target; nil if the
// record does not list the cluster type. It costs little, because it skips most of the record. It
// returns the same errors as ClusterType.
func (r *Record) Outlines(name string) ([]Outline, error) {
	if r.entry(name) == nil {
		return nil, nil
	}
	l, err := r.lines(name)
	if err != nil {
		return nil, err
	}
	if l != nil {
		out := make([]Outline, len(l.lines))
		for i := range l.lines {
			out[i] = Outline{l.lines[i].target, l.lines[i].namespace, l.lines[i].tree}
		}
		return out, nil
	}
	c, err := r.ClusterType(name)
	if err != nil {
		return nil, err
	}
	out := make([]Outline, len(c.Assignments))
	for i := range c.Assignments {
		a := &c.Assignments[i]
		out[i] = Outline{a.DeploymentTarget, a.Namespace, a.Tree}
	}
	return out, nil
}

// lines returns the lines of a folder's record; nil if the whole record is needed. A folder on the
// disk is compared file by file, and kept files need the full record.
func (pl *planner) lines(p *typePlan) *recordLines {
	if pl.dir != nil || p.before == nil || p.wanted == nil || p.wanted.Digest == "" {
		return nil
	}
	// the caller then reads the whole record, and returns the error
	l, _ := pl.before.record.lines(p.name)
	return l
}

// differing removes unchanged assignments from an outcome. An assignment is unchanged if its line
// in the previous record is the same, and its folder matches that record. differing returns the
// previous record without them, and fills in the changes of the assignments.
func (pl *planner) differing(s surveyor, p *typePlan, out *outcome,
	old *recordLines) (*ClusterTypeRecord, error) {
	all, err := s.holdsTree(p.name, p.before.Tree)
	if err != nil {
		return nil, err
	}
	same, stays, err := sameLines(old, out, func(a *AssignmentRecord) (bool, error) {
		if all {
			return true, nil
		}
		return s.holdsTree(p.name+"/"+a.DeploymentTarget, a.Tree)
	})
	if err != nil {
		return nil, err
	}
	before, err := pl.before.record.parse(p.name, old.part(func(i int) bool { return !same[i] }))
	if err != nil {
		return nil, err
	}
	after := *out.record
	after.Assignments = nil
	for n := range out.record.Assignments {
		if !stays[n] {
			after.Assignments = append(after.Assignments, out.record.Assignments[n])
		}
	}
	p.assignments = compareAssignments(pl.o.Environment, before, &after)
	p.assignments.Unchanged += len(stays)
	out.groups = slices.DeleteFunc(out.groups, func(g group) bool {
		if !stays[g.folder] {
			return false
		}
		p.unchanged += len(g.files)
		out.staying = append(out.staying, g.dir+"/"+g.files[0].Path)
		return true
	})
	return before, nil
}

// sameLines returns the numbers of the equal lines in a record and in an outcome. It includes only
// lines whose folders match, as held reports.
func sameLines(old *recordLines, out *outcome, held func(*AssignmentRecord) (bool, error)) (same,
	stays map[int]bool, err error) {
	same, stays = map[int]bool{}, map[int]bool{}
	for i, n := 0, 0; i < len(old.lines) && n < len(out.lines); {
		a := &out.record.Assignments[n]
		switch c := strings.Compare(old.lines[i].target, a.DeploymentTarget); {
		case c < 0:
			i++
		case c > 0:
			n++
		default:
			if bytes.Equal(old.lines[i].text, out.encoded[out.lines[n][0]:out.lines[n][1]]) {
				is, err := held(a)
				if err != nil {
					return nil, nil, err
				}
				if is {
					same[i], stays[n] = true, true
				}
			}
			i, n = i+1, n+1
		}
	}
	return same, stays, nil
}
