package tree

import (
	"maps"
	"slices"
)

// Drift is a file of kalypso's that is not what the record says.
type Drift struct {
	Path string `json:"path"` // in the environment's folder
	// Gone says that it is not there any more; else it has other content, or is
	// something else than a file.
	Gone bool `json:"gone,omitempty"`
}

// Drift returns what somebody else did to the files of the environment in a folder of
// the branch, sorted by path. Files that kalypso did not write are none of its
// concern. Only cluster types whose folders do not have the recorded ids are looked
// into. A record that cannot be read is a *RecordError.
func (b *Branch) Drift(dir string) ([]Drift, error) {
	root, _, err := b.environment(dir)
	if err != nil {
		return nil, err
	}
	st, problems, err := b.load(dir)
	if err != nil || st.record == nil || len(problems) > 0 {
		return nil, err
	}
	s := newGitSurvey(b.repository.git, root)
	var out []Drift
	for i := range st.record.ClusterTypes {
		more, err := s.drift(st.record, &st.record.ClusterTypes[i])
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// drift compares a cluster type's files with its record.
func (s *gitSurvey) drift(record *Record, e *ClusterTypeEntry) ([]Drift, error) {
	id, err := s.id(e.Name)
	if err != nil || id == e.Tree {
		return nil, err
	}
	recorded, err := record.read(e.Name)
	if err != nil {
		return nil, err
	}
	want := map[string]Blob{}
	maps.Insert(want, recorded.each)
	var out []Drift
	for _, p := range slices.Sorted(maps.Keys(want)) {
		there, _, err := s.entry(p)
		switch {
		case err != nil:
			return nil, err
		case there == nil:
			out = append(out, Drift{Path: p, Gone: true})
		case kindOf(*there) != regular || there.ID != hash(want[p].ID) || there.Mode != want[p].mode():
			out = append(out, Drift{Path: p})
		}
	}
	return out, nil
}
