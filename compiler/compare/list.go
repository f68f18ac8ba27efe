package compare

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// WriteList writes the pairs of a report without the differences of their files: a line for
// each entry, and a line of counts.
func WriteList(w io.Writer, r *Report) error {
	t := &textWriter{w: bufio.NewWriter(w), TextOptions: TextOptions{Unit: "assignment"}}
	table := tabwriter.NewWriter(t.w, 0, 0, 2, ' ', 0)
	for _, list := range []struct {
		change  string
		entries []Entry
		types   []string
	}{{"removed", r.Removed, r.ClusterTypes.Removed}, {"added", r.Added, r.ClusterTypes.Added},
		{"changed", r.Changed, r.ClusterTypes.Changed}} {
		for i := range list.entries {
			fmt.Fprintf(table, "%s\tassignment\t%s\n", list.change, t.entryText(&list.entries[i]))
		}
		for _, id := range list.types {
			fmt.Fprintf(table, "%s\tcluster type\t%s\n", list.change, printable(id))
		}
	}
	if c := r.Clusters; c != nil {
		for _, list := range []struct {
			change string
			ids    []string
		}{{"emptied", c.Emptied}, {"unlisted", c.Unlisted}, {"listed", c.Listed}} {
			if n := len(list.ids); n > named {
				fmt.Fprintf(table, "%s\tclusters\t%s and %d more\n", list.change,
					printable(strings.Join(list.ids[:named], ", ")), n-named)
				continue
			}
			for _, id := range list.ids {
				fmt.Fprintf(table, "%s\tcluster\t%s\n", list.change, printable(id))
			}
		}
	}
	_ = table.Flush() // t.w keeps the error
	fmt.Fprintln(t.w, Summary(r))
	return t.w.Flush()
}

// WriteEnds writes the removed and the added pairs of a report, and their numbers, unless they
// are 0. It writes at most a number of lines of each kind.
func WriteEnds(w io.Writer, environment string, r *Report, most int) error {
	removed, added := r.Total.Removed, r.Total.Added
	if r.Total == (Total{}) {
		return nil
	}
	t := &textWriter{w: bufio.NewWriter(w), TextOptions: TextOptions{Unit: "assignment"}}
	part := *r
	part.Removed, part.Changed = r.Removed[:min(len(r.Removed), most)],
		r.Changed[:min(len(r.Changed), most)]
	t.removals(&part)
	if more := max(0, len(r.Removed)-most) + max(0, len(r.Changed)-most); more > 0 {
		t.line("", '-', fmt.Sprintf("and %d more", more))
	}
	fmt.Fprintf(t.w, "%s: %d added, %d removed", printable(environment), added, removed)
	if n := r.Total.Changed; n > 0 {
		fmt.Fprintf(t.w, ", %s replaced", counted(n, "namespace", "namespaces"))
	}
	fmt.Fprintln(t.w)
	return t.w.Flush()
}

// pairLine is a pair as WriteLines writes it.
type pairLine struct {
	Change                    Kind     `json:"change"`
	Environment               string   `json:"environment"`
	ClusterType               string   `json:"clusterType"`
	DeploymentTarget          string   `json:"deploymentTarget"`
	Cluster                   string   `json:"cluster,omitempty"`
	Namespaces                []string `json:"namespaces,omitempty"`
	PersistentVolumeClaims    int      `json:"persistentVolumeClaims,omitempty"`
	CustomResourceDefinitions []string `json:"customResourceDefinitions,omitempty"`
	CustomResources           int      `json:"customResources,omitempty"`
	RenamedTo                 string   `json:"renamedTo,omitempty"`
	RenamedFrom               string   `json:"renamedFrom,omitempty"`
	Values                    []Value  `json:"values,omitempty"`
	Objects                   []string `json:"objects,omitempty"`
}

// WriteLines writes each pair of a report as a line of JSON: first the removed pairs, then the
// added and the changed ones, sorted as in the report.
func WriteLines(w io.Writer, r *Report) error {
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for _, entries := range [][]Entry{r.Removed, r.Added, r.Changed} {
		for i := range entries {
			e := &entries[i]
			names := e.Names()
			if len(names) == 0 {
				names = []string{""}
			}
			for _, name := range names {
				if err := enc.Encode(pairLine{e.kind, e.Environment, e.ClusterType, e.DeploymentTarget, name,
					e.Namespaces, e.PersistentVolumeClaims, e.CustomResourceDefinitions, e.CustomResources,
					e.RenamedTo, e.RenamedFrom, e.Values, e.Objects}); err != nil {
					return err
				}
			}
		}
	}
	return out.Flush()
}
