package engine

import "github.com/kalypso-io/kalypso/compiler/tree"

// Counts counts what an environment's build gave.
type Counts struct {
	ClusterTypes int `json:"clusterTypes"`
	Assignments  int `json:"assignments"` // that were built
	Kept         int `json:"kept"`        // folders that stay as they were
	Failed       int `json:"failed"`      // assignments with an error and nothing to keep
}

func (s *Counts) add(t Counts) {
	s.ClusterTypes += t.ClusterTypes
	s.Assignments += t.Assignments
	s.Kept += t.Kept
	s.Failed += t.Failed
}

// count counts folders.
func (s *Counts) count(folders []tree.Folder) {
	for _, f := range folders {
		if f.Kept != nil {
			s.Kept++
		} else {
			s.Assignments++
		}
	}
}
