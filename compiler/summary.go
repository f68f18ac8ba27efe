package compiler

import "github.com/kalypso-io/kalypso/compiler/diag"

// Summary counts what an environment's build gave.
type Summary struct {
	ClusterTypes int `json:"clusterTypes"`
	Assignments  int `json:"assignments"` // that were built
	Kept         int `json:"kept"`        // folders that stay as they were
	Failed       int `json:"failed"`      // assignments with an error and nothing to keep
}

// Summary counts what the environment's build gave.
func (e *Environment) Summary() Summary {
	var s Summary
	if e.Tree == nil {
		return s
	}
	s.ClusterTypes = len(e.Tree.ClusterTypes)
	for _, ct := range e.Tree.ClusterTypes {
		for _, f := range ct.Folders {
			if f.Kept != nil {
				s.Kept++
			} else {
				s.Assignments++
			}
		}
	}
	failed := map[string]bool{}
	for _, d := range e.diagnostics {
		if d.Severity == diag.Error {
			for _, a := range d.Assignments {
				failed[a] = true
			}
		}
	}
	for _, ct := range e.Tree.ClusterTypes {
		for _, f := range ct.Folders {
			delete(failed, e.Name+"/"+ct.Name+"/"+f.Info.DeploymentTarget)
		}
	}
	s.Failed = len(failed)
	return s
}
