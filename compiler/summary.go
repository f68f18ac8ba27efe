package compiler

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
	there := map[folderKey]bool{}
	for _, ct := range e.Tree.ClusterTypes {
		for _, f := range ct.Folders {
			there[folderKey{ct.Name, f.Info.DeploymentTarget}] = true
			if f.Kept != nil {
				s.Kept++
			} else {
				s.Assignments++
			}
		}
	}
	for _, a := range e.Schedule.Assignments {
		if !there[folderKey{a.ClusterType.Name, a.Target.FullName}] {
			s.Failed++
		}
	}
	return s
}
