package compare

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// groups are changes by their common part in many folders: a digest of the change
// without the parts that are particular to a folder.
type groups map[digest]*group

// group is a change, and the jobs whose folders have it.
type group struct {
	owner ownerKind // folders of this kind
	// concrete is the change in one of the folders, and general is the common form of the
	// change in all of them.
	concrete, general Change
	// varies marks the parts of it, by number, that differ between the folders.
	varies [parts]bool
	jobs   []int
}

// ownerKind is the owner of a folder.
type ownerKind string

const (
	ownerAssignment  ownerKind = "assignment"
	ownerClusterType ownerKind = "cluster type"
	ownerCluster     ownerKind = "cluster"
)

func (f *Folder) owner() ownerKind {
	switch {
	case f.Cluster != "":
		return ownerCluster
	case f.Assignment == "":
		return ownerClusterType
	}
	return ownerAssignment
}

type digest [sha256.Size]byte

// The parts of a change that may have names of a folder in them.
const (
	partFile = iota
	partNamespace
	partName
	partPath
	partFrom
	partTo
	partDiff
	parts
)

// compareParts notes which parts of another folder's change are different.
func (g *group) compareParts(c *Change) {
	g.concrete.detail = g.concrete.detail && c.detail
	var a, b Object
	if g.concrete.Object != nil && c.Object != nil {
		a, b = *g.concrete.Object, *c.Object
	}
	for i, differs := range [parts]bool{
		partFile:      g.concrete.File != c.File,
		partNamespace: a.Namespace != b.Namespace,
		partName:      a.Name != b.Name,
		partPath:      g.concrete.Path != c.Path,
		partFrom:      !bytes.Equal(g.concrete.From, c.From),
		partTo:        !bytes.Equal(g.concrete.To, c.To),
		partDiff:      g.concrete.Diff != c.Diff,
	} {
		g.varies[i] = g.varies[i] || differs
	}
}

// change is the change in a report: varying parts are in general terms, and the others
// as they are.
func (g *group) change() Change {
	c, general := g.concrete.clone(), display(g.general)
	if c.Object != nil {
		pick(&c.Object.Namespace, general.Object.Namespace, g.varies[partNamespace])
		pick(&c.Object.Name, general.Object.Name, g.varies[partName])
	}
	pick(&c.File, general.File, g.varies[partFile])
	pick(&c.Path, general.Path, g.varies[partPath])
	pick(&c.From, general.From, g.varies[partFrom])
	pick(&c.To, general.To, g.varies[partTo])
	pick(&c.Diff, general.Diff, g.varies[partDiff])
	return c
}

func pick[T any](to *T, from T, really bool) {
	if really {
		*to = from
	}
}

// add adds the changes of a job. Only the first of equal changes is kept. A folder that has a
// change twice counts once for it.
func (g groups) add(number int, j *job) {
	ns := namesOf(j.after, j.found.namespace)
	in := j.after.owner()
	for _, c := range j.found.list {
		general := ns.generalize(c)
		key := digestOf(general, in)
		known := g[key]
		if known == nil {
			known = &group{owner: in, concrete: c, general: general}
			g[key] = known
		}
		known.compareParts(&c)
		if n := len(known.jobs); n == 0 || known.jobs[n-1] != number {
			known.jobs = append(known.jobs, number)
		}
	}
}

// digestOf returns the digest of a change with marked names.
func digestOf(c Change, in ownerKind) digest {
	h := sha256.New()
	var o Object
	if c.Object != nil {
		o = *c.Object
	}
	for _, s := range []string{string(c.Kind), c.File, o.APIVersion, o.Kind, o.Namespace, o.Name,
		c.Path, string(c.From), string(c.To), c.Diff} {
		fmt.Fprintf(h, "%d:%s", len(s), s)
	}
	fmt.Fprintf(h, "%d %v %v %v %v", c.Document, c.Object != nil, c.From != nil, c.To != nil, in)
	return digest(h.Sum(nil))
}

// list returns the groups in the order of a report. clustersOf returns the names of the
// clusters on which the folder of a job differs, or nil if none are listed.
func (g groups) list(c *comparison, clustersOf func(j *job) []string) []Group {
	type item struct {
		Group
		text string
	}
	items := make([]item, 0, len(g))
	for _, known := range g {
		out := Group{Change: known.change(), Assignments: []string{}, ClusterTypes: []string{},
			jobs: known.jobs}
		if c.targets {
			out.Change = out.Change.replaced(targetNames)
		}
		names := map[string]bool{}
		for _, n := range known.jobs {
			j := &c.jobs[n]
			switch id := j.after.owner(); {
			case j.pair != nil:
				clusters := clustersOf(j)
				if clusters == nil && j.pair.Way.Clusters != nil {
					continue // it differs on no cluster
				}
				out.Assignments = append(out.Assignments, idOf(j.after))
				out.Count += max(1, len(clusters))
				out.Detail = known.concrete.detail
				for _, name := range clusters {
					names[name] = true
				}
			case id == ownerCluster:
				out.Clusters = append(out.Clusters, j.after.ID())
			default:
				out.ClusterTypes = append(out.ClusterTypes, idOf(j.after))
				out.Detail = known.concrete.detail
			}
		}
		for _, ids := range []*[]string{&out.Assignments, &out.ClusterTypes} {
			slices.Sort(*ids)
			*ids = slices.Compact(*ids)
		}
		if len(names) > 0 {
			out.names = slices.Sorted(maps.Keys(names))
		}
		if len(out.Assignments)+len(out.ClusterTypes)+len(out.Clusters) > 0 {
			items = append(items, item{out, headline(&out) + "\x00" + sortText(&out)})
		}
	}
	slices.SortFunc(items, func(a, b item) int {
		return cmp.Or(
			cmp.Compare(b.Count, a.Count),
			cmp.Compare(len(b.ClusterTypes), len(a.ClusterTypes)),
			cmp.Compare(len(b.Clusters), len(a.Clusters)),
			strings.Compare(a.text, b.text),
		)
	})
	out := make([]Group, len(items))
	for i := range items {
		out[i] = items[i].Group
	}
	return out
}

// targetNames are the names in general changes of applications, which have targets.
var targetNames = strings.NewReplacer("<clusterType>", "<target>")

// idOf returns the id of an assignment's folder, or of a cluster type's own files, without the
// class.
func idOf(f *Folder) string {
	plain := *f
	plain.ClusterType = model.TypeOfFolder(f.ClusterType)
	return plain.ID()
}

// sortText distinguishes groups that look alike in a line.
func sortText(g *Group) string {
	b, err := json.Marshal(g)
	if err != nil {
		panic(fmt.Sprintf("compare: encoding a change: %v", err)) // From and To are JSON
	}
	return string(b)
}
