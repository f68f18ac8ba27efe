package tree

import (
	"maps"
	"slices"
)

// Changes are what a write did, or would do. Paths are sorted, and those in
// .kalypso are not among them.
type Changes struct {
	Written     []string // new files and files with new content
	Removed     []string
	Unchanged   int // files, kept ones included
	Assignments AssignmentChanges
	// Recorded says that the record itself is new or changed, as it is when the
	// source changed and the tree did not.
	Recorded bool
	// Record describes the tree that was, or would be, written.
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

// Compare returns what differs between a previous record, nil for none, and a
// tree. It looks at no folder, so files count as written or removed by what the
// record says of them. It fails as Dir.Write does for a tree that is impossible.
func Compare(previous *Record, t *Tree, o Options) (*Changes, error) {
	out, err := outcomeOf(t, previous, o)
	if err != nil {
		return nil, err
	}
	c := &Changes{Record: out.record, Assignments: compareAssignments(previous, out.record)}
	if c.Recorded, err = differ(previous, out.record); err != nil {
		return nil, err
	}
	before := previous.Files()
	for p, id := range out.record.each {
		if before[p] == id {
			c.Unchanged++
		} else {
			c.Written = append(c.Written, p)
		}
		delete(before, p)
	}
	slices.Sort(c.Written)
	c.Removed = slices.Sorted(maps.Keys(before))
	return c, nil
}

func differ(previous, next *Record) (bool, error) {
	b, err := next.Encode()
	if err != nil || previous == nil {
		return true, err
	}
	a, err := previous.Encode()
	return string(a) != string(b), err
}

// compareAssignments sorts out the assignments of two records of one
// environment. The first may be nil.
func compareAssignments(previous, next *Record) AssignmentChanges {
	var changes AssignmentChanges
	for _, c := range next.ClusterTypes {
		before := previous.clusterType(c.Name)
		for _, a := range c.Assignments {
			id := next.Environment + "/" + c.Name + "/" + a.DeploymentTarget
			switch b := before.assignment(a.DeploymentTarget); {
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
	if previous == nil {
		return changes
	}
	for _, c := range previous.ClusterTypes {
		after := next.clusterType(c.Name)
		for _, a := range c.Assignments {
			if after.assignment(a.DeploymentTarget) == nil {
				changes.Removed = append(changes.Removed, next.Environment+"/"+c.Name+"/"+a.DeploymentTarget)
			}
		}
	}
	return changes
}
