package tree

import "slices"

// Changes are what a write did, or would do. Paths are sorted, and those in
// .kalypso are not among them. What concerns cluster types that are Outside is
// not among them either.
type Changes struct {
	Written     []string // new files and files with new content
	Removed     []string
	Unchanged   int // files, kept ones included
	Assignments AssignmentChanges
	// Recorded says that a record itself is new or changed, as it is when the
	// source changed and the tree did not.
	Recorded bool
	// Record describes the tree that was, or would be, written. Its cluster types
	// are read from the folder, which must be open then, or made from the tree.
	Record *Record
}

// AssignmentChanges are the assignments of a tree against those of the previous
// record, as <environment>/<clusterType>/<workload>-<target>, sorted by cluster
// type and deployment target. Each is in one list, or counted in Unchanged.
type AssignmentChanges struct {
	Added, Changed, Removed, Kept []string
	Unchanged                     int
}

// Empty says whether there is nothing to write.
func (c *Changes) Empty() bool {
	return len(c.Written) == 0 && len(c.Removed) == 0 && !c.Recorded
}

// add adds those of the cluster type that follows.
func (a *AssignmentChanges) add(b *AssignmentChanges) {
	a.Added = append(a.Added, b.Added...)
	a.Changed = append(a.Changed, b.Changed...)
	a.Removed = append(a.Removed, b.Removed...)
	a.Kept = append(a.Kept, b.Kept...)
	a.Unchanged += b.Unchanged
}

// compareAssignments sorts out the assignments of two records of one cluster
// type, each of which may be nil.
func compareAssignments(environment string, before, after *ClusterTypeRecord) AssignmentChanges {
	var changes AssignmentChanges
	if after != nil {
		for i := range after.Assignments {
			a := &after.Assignments[i]
			id := environment + "/" + after.Name + "/" + a.DeploymentTarget
			switch b := before.Assignment(a.DeploymentTarget); {
			case a.Kept != nil:
				changes.Kept = append(changes.Kept, id)
			case b == nil:
				changes.Added = append(changes.Added, id)
			case a.Tree != b.Tree:
				changes.Changed = append(changes.Changed, id)
			default:
				changes.Unchanged++
			}
		}
	}
	if before != nil {
		for i := range before.Assignments {
			target := before.Assignments[i].DeploymentTarget
			if after.Assignment(target) == nil {
				changes.Removed = append(changes.Removed, environment+"/"+before.Name+"/"+target)
			}
		}
	}
	return changes
}

// changes returns what the plan is, or was.
func (p *writePlan) changes() *Changes {
	c := &Changes{Recorded: p.recorded, Record: p.next}
	for _, part := range p.parts {
		c.Written = slices.AppendSeq(c.Written, part.written)
		c.Removed = append(c.Removed, part.removed...)
		c.Unchanged += part.unchanged
		c.Assignments.add(&part.assignments)
	}
	// Cluster types are sorted by name, which is not the order of whole paths.
	slices.Sort(c.Written)
	slices.Sort(c.Removed)
	return c
}
