package tree

import (
	"fmt"
	"slices"
	"strings"
)

// Check compares all that is in the folder of an environment with what its records list,
// which is what Drift finds, and the records with each other, and takes the word of none
// for another. It returns what is not as it should be, a line each, in an order; none
// where there is no record. A record that cannot be read is a *RecordError.
func (b *Branch) Check(dir string) ([]string, error) {
	drift, err := b.drift(dir, true)
	if err != nil {
		return nil, err
	}
	st, problems, err := b.load(dir)
	if err != nil || st.record == nil || len(problems) > 0 {
		return nil, err
	}
	c := &checker{record: st.record}
	if id := c.record.treeID(); id != c.record.Tree {
		c.problem("the record says that the tree is %s, and what it lists makes %s", c.record.Tree, id)
	}
	for i := range c.record.ClusterTypes {
		e := &c.record.ClusterTypes[i]
		if slices.ContainsFunc(drift, func(d Drift) bool { return d.Path == ClusterTypeRecordPath(e.Name) }) {
			continue // it cannot be read
		}
		if err := c.clusterType(e); err != nil {
			return nil, err
		}
	}
	for _, d := range drift {
		c.problem("%s", d)
	}
	return c.problems, nil
}

// checker compares one environment.
type checker struct {
	record   *Record
	problems []string
}

func (c *checker) problem(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

// clusterType compares the record of a cluster type with itself.
func (c *checker) clusterType(e *ClusterTypeEntry) error {
	recorded, err := c.record.read(e.Name)
	if err != nil {
		return err
	}
	want := map[string]Blob{}
	for p, b := range recorded.each {
		want[strings.TrimPrefix(p, e.Name+"/")] = b
	}
	if made := TreeID(want); made != e.Tree {
		c.problem("the record says that the folder %s is %s, and the files that it lists make %s", e.Name, e.Tree, made)
	}
	for i := range recorded.Assignments {
		a := &recorded.Assignments[i]
		if id := TreeID(a.Files); id != a.Tree {
			c.problem("the record says that the folder %s/%s is %s, and the files that it lists make %s",
				e.Name, a.DeploymentTarget, a.Tree, id)
		}
	}
	return nil
}
