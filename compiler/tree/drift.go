package tree

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/internal/git"
)

// Drift is a file of an environment's tree that changed after kalypso wrote it.
type Drift struct {
	Path string // in the environment's folder
	Kind DriftKind
}

// String returns the path and the kind of drift.
func (d Drift) String() string { return d.Path + " " + string(d.Kind) }

// DriftKind is the kind of a change to a file.
type DriftKind string

// The kinds of drift.
const (
	Gone DriftKind = "is gone"
	// its content, its mode, or the file is now a folder or a link
	Changed DriftKind = "is not what the record says"
	Added   DriftKind = "is none of kalypso's files"
	Spaced  DriftKind = "has other spaces than kalypso writes" // in the record
)

// Drift returns other people's changes to the environment in a folder of the branch. Cluster types
// come first, by name, with their paths sorted, then the files beside them, and then kalypso's own
// files. Drift returns nil if there is no record. It reads only cluster types whose folders do not
// have the recorded ids, if these ids are consistent.
//
// Files at the root of the folder are allowed if readers of GitOps trees ignore them. If kalypso
// cannot read a record, the error is a *RecordError.
func (b *Branch) Drift(dir string) ([]Drift, error) { return b.drift(dir, false) }

// drift is Drift. With thorough, it trusts only the recorded ids of files.
func (b *Branch) drift(dir string, thorough bool) ([]Drift, error) {
	root, _, err := b.environment(dir)
	if err != nil {
		return nil, err
	}
	st, problems, err := b.load(dir)
	if err != nil || st.record == nil || len(problems) > 0 {
		return nil, err
	}
	s := &driftSurvey{gitSurvey: newGitSurvey(b.repository.git, root), record: st.record}
	s.thorough = thorough || !st.record.Whole()
	for i := range st.record.ClusterTypes {
		if err := s.clusterType(&st.record.ClusterTypes[i]); err != nil {
			return nil, err
		}
	}
	if err := s.others(); err != nil {
		return nil, err
	}
	if err := s.own(); err != nil {
		return nil, err
	}
	if spaced(st.recordBytes, st.record.Encode()) {
		s.add(recordPath, Spaced)
	}
	return s.found, nil
}

// spaced reports whether two texts differ only in their spaces. Any other difference may come from
// another version of kalypso.
func spaced(text, from []byte) bool {
	if bytes.Equal(text, from) {
		return false
	}
	var a, b bytes.Buffer
	return json.Compact(&a, text) == nil && json.Compact(&b, from) == nil &&
		bytes.Equal(a.Bytes(), b.Bytes())
}

// driftSurvey compares one environment with its record.
type driftSurvey struct {
	*gitSurvey
	record   *Record
	thorough bool
	found    []Drift
}

func (s *driftSurvey) add(p string, kind DriftKind) { s.found = append(s.found, Drift{p, kind}) }

// clusterType compares a cluster type's folder with its record.
func (s *driftSurvey) clusterType(e *ClusterTypeEntry) error {
	at := ClusterTypeRecordPath(e.Name)
	switch known, _, err := s.entry(at); {
	case err != nil:
		return err
	case known == nil:
		s.add(at, Gone)
		return nil
	case known.Mode != git.FileMode || ID(known.ID.String()) != e.Record:
		s.add(at, Changed)
		return nil
	}
	id, err := s.id(e.Name)
	if err != nil || id == e.Tree && !s.thorough {
		return err
	}
	recorded, err := s.record.read(e.Name)
	if errors.As(err, new(*RecordError)) {
		s.add(at, Changed)
		return nil
	}
	if err != nil {
		return err
	}
	want := recorded.inFolder()
	if id == TreeID(want) || id == "" && len(want) == 0 {
		return nil
	}
	found, err := s.files(e.Name)
	if err != nil {
		return err
	}
	for _, p := range slices.Sorted(maps.Keys(want)) {
		switch b, there := found[p]; {
		case !there:
			s.add(path.Join(e.Name, p), Gone)
		case b != want[p]:
			s.add(path.Join(e.Name, p), Changed)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(found)) {
		if _, known := want[p]; !known {
			s.add(path.Join(e.Name, p), Added)
		}
	}
	return nil
}

// files returns the files in a folder, by path in it. Links and submodules have no id.
func (s *driftSurvey) files(dir string) (map[string]Blob, error) {
	out := map[string]Blob{}
	at, _, err := s.entry(dir)
	if err != nil || at == nil {
		return out, err
	}
	if kindOf(*at) != folder {
		return map[string]Blob{"": {}}, nil
	}
	entries, err := s.read(dir)
	if err != nil {
		return nil, err
	}
	for name, e := range entries {
		switch kindOf(e) {
		case folder:
			below, err := s.files(path.Join(dir, name))
			if err != nil {
				return nil, err
			}
			for p, b := range below {
				out[path.Join(name, p)] = b
			}
		case regular:
			out[name] = Blob{ID(e.ID.String()), e.Mode == git.ExecutableMode}
		default:
			out[name] = Blob{}
		}
	}
	return out, nil
}

// others finds foreign files in the folder beside cluster types.
func (s *driftSurvey) others() error {
	if s.root.IsZero() {
		return nil
	}
	entries, err := s.read(".")
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		switch {
		case name == ownFolder || s.record.entry(name) != nil || isBeside(entries[name]):
		case name == backends.EntriesDir && slices.ContainsFunc(s.record.ClusterTypes,
			func(e ClusterTypeEntry) bool { return IsShard(e.Name) }):
			shards, err := s.read(name)
			if err != nil {
				return err
			}
			for _, shard := range slices.Sorted(maps.Keys(shards)) {
				if s.record.entry(name+"/"+shard) == nil {
					s.add(name+"/"+shard, Added)
				}
			}
		default:
			s.add(name, Added)
		}
	}
	return nil
}

// own finds foreign files in the folder of kalypso's own files.
func (s *driftSurvey) own() error {
	own, err := s.files(ownFolder)
	if err != nil {
		return err
	}
	for _, p := range slices.Sorted(maps.Keys(own)) {
		full := path.Join(ownFolder, p)
		name := recordedBy(path.Base(p))
		if full == gitignorePath && own[p] == BlobOf(backends.File{Data: []byte(gitignore)}) {
			continue
		}
		if full == recordPath && own[p].Executable {
			s.add(full, Changed)
		}
		if full != recordPath && (s.record.entry(name) == nil || full != ClusterTypeRecordPath(name)) {
			s.add(full, Added)
		}
	}
	return nil
}

// rootFiles returns the allowed files at the root beside the environment's files.
func (s *gitSurvey) rootFiles() (map[string]git.Entry, error) {
	if s.root.IsZero() {
		return nil, nil
	}
	entries, err := s.read(".")
	out := maps.Clone(entries)
	maps.DeleteFunc(out, func(_ string, e git.Entry) bool { return !isBeside(e) })
	return out, err
}

// isBeside reports whether a file may be at the root of an environment's folder beside kalypso's
// files. Such files are for people and forges, and readers of GitOps trees ignore them. The files
// of a submodule are in another repository.
func isBeside(e git.Entry) bool {
	text := slices.Contains([]string{".md", ".txt", ".adoc", ".rst"}, path.Ext(e.Name))
	return kindOf(e) == regular && text || e.Mode == git.SubmoduleMode ||
		slices.Contains(besideNames, e.Name)
}

// besideNames are names of files and folders that may be beside kalypso's files.
var besideNames = []string{
	"README", "LICENSE", "CODEOWNERS", ".gitattributes", ".gitignore", ".gitmodules", ".editorconfig",
	".github", ".gitlab", ".gitlab-ci.yml", ".gitea", ".forgejo", ".woodpecker.yml",
	"hydrator.metadata",
}

// Check compares all files in the folder of an environment with its records, as Drift does, and
// the records with each other. It trusts no record without a check. It returns the problems in a
// fixed order, one line each; nil if there is no record. If kalypso cannot read a record, the
// error is a *RecordError.
func (b *Branch) Check(dir string) ([]string, error) {
	drift, err := b.drift(dir, true)
	if err != nil {
		return nil, err
	}
	st, problems, err := b.load(dir)
	if err != nil || st.record == nil || len(problems) > 0 {
		return nil, err
	}
	var found []string
	problem := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	if id := st.record.treeID(); id != st.record.Tree {
		problem("the record says that the tree is %s, and what it lists makes %s", st.record.Tree, id)
	}
	for i := range st.record.ClusterTypes {
		e := &st.record.ClusterTypes[i]
		at := ClusterTypeRecordPath(e.Name)
		if slices.ContainsFunc(drift, func(d Drift) bool { return d.Path == at }) {
			continue // it cannot be read
		}
		recorded, err := st.record.read(e.Name)
		if err != nil {
			return nil, err
		}
		if made := TreeID(recorded.inFolder()); made != e.Tree {
			problem("the record says that the folder %s is %s, and the files that it lists make %s",
				e.Name, e.Tree, made)
		}
		for i := range recorded.Assignments {
			a := &recorded.Assignments[i]
			if id := TreeID(a.Files); id != a.Tree {
				problem("the record says that the folder %s/%s is %s, and the files that it lists make %s",
					e.Name, a.DeploymentTarget, a.Tree, id)
			}
		}
	}
	for _, d := range drift {
		problem("%s", d)
	}
	return found, nil
}
