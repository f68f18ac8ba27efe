// Package pull writes the file of an inventory from existing sources. These are objects of
// Cluster API, Open Cluster Management, Fleet and Argo CD, contexts of a kubeconfig, and
// hosts of Ansible.
//
// A Reader takes only names, addresses and labels of clusters from texts or API servers. No
// token, certificate or variable leaves it. Merge compares them with the inventory's file,
// and returns the differences and the file's new text. A File is replaced at once, or not
// at all.
//
// Texts are not trusted: their size and depth are bounded. Messages about them are fit for
// a terminal.
package pull

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kalypso-io/kalypso/compiler/fleet"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/terminal"
)

// The names of sources of clusters.
const (
	ClusterAPI = "cluster-api"
	OCM        = "ocm"
	Fleet      = "fleet"
	ArgoCD     = "argocd"
	Kubeconfig = "kubeconfig"
	Ansible    = "ansible"
)

// Sources are all sources of clusters.
func Sources() []string { return []string{ClusterAPI, OCM, Fleet, ArgoCD, Kubeconfig, Ansible} }

// Cluster is a cluster as a source has it. Fields that the source lacks are "".
type Cluster struct {
	Name, ClusterType, Address, Description string
	Labels                                  map[string]string

	origin string // the word of the source for it, for people
}

// Reader collects clusters.
type Reader struct {
	// From is one of Sources.
	From string
	// NameLabels are labels with a cluster's name. The first one that an object has is used
	// instead of the object's own name.
	NameLabels []string
	// Selector selects the objects that count, by their labels; nil for all.
	Selector labels.Selector
	// Namespace is the namespace of the objects that count; "" for all.
	Namespace string
	// Context is the only context of a kubeconfig that is read; "" means all contexts.
	Context string

	clusters []Cluster
	notes    []string
	passed   map[string]int // objects of other kinds, by kind
}

const (
	maxClusters = 1_000_000
	maxNotes    = 20
)

// note keeps a message for people about the source.
func (r *Reader) note(format string, args ...any) {
	r.notes = append(r.notes, terminal.Line(fmt.Sprintf(format, args...)))
}

// Notes are the omitted and renamed values, a line each: the first few, and the number of
// the others.
func (r *Reader) Notes() []string {
	if more := len(r.notes) - maxNotes; more > 0 {
		return append(slices.Clone(r.notes[:maxNotes]), fmt.Sprintf("and the same for %d more", more))
	}
	return r.notes
}

// Clusters returns the clusters that were read, sorted by name. Two of one name are an
// error.
func (r *Reader) Clusters() ([]Cluster, error) {
	slices.SortStableFunc(r.clusters, func(a, b Cluster) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.origin, b.origin))
	})
	for i := 1; i < len(r.clusters); i++ {
		if a, b := r.clusters[i-1], r.clusters[i]; a.Name == b.Name {
			return nil, fmt.Errorf("%s and %s are both cluster %s: choose with --namespace, --context or "+
				"--selector, or name a label that holds other names with --name-label",
				terminal.Line(a.origin), terminal.Line(b.origin), a.Name)
		}
	}
	if len(r.clusters) == 0 && len(r.passed) > 0 {
		kinds := slices.Sorted(maps.Keys(r.passed))
		r.note("what was read is no cluster of %s: it has objects of %s", r.From,
			strings.Join(kinds[:min(len(kinds), 5)], ", "))
	}
	return r.clusters, nil
}

// add adds a cluster whose fields are as the source has them, and omits other fields.
func (r *Reader) add(c Cluster) error {
	if len(r.clusters) == maxClusters {
		return fmt.Errorf("there are more than %d clusters", maxClusters)
	}
	for _, l := range r.NameLabels {
		if name := c.Labels[l]; name != "" {
			c.Name = name
			break
		}
	}
	if name := nameOf(c.Name); !model.IsName(name) {
		r.note("%s is left out: %q cannot be the name of a cluster, which has at most 63 lower case "+
			"letters, digits and dashes", c.origin, c.Name)
		return nil
	} else if name != c.Name {
		r.note("%s is cluster %s", c.origin, name)
		c.Name = name
	}
	if c.Address != "" && !fleet.IsAddress(c.Address) {
		r.note("cluster %s has no address: %q is none", c.Name, c.Address)
		c.Address = ""
	}
	if c.ClusterType != "" && !model.IsName(c.ClusterType) {
		r.note("cluster %s has no cluster type: %q is none", c.Name, c.ClusterType)
		c.ClusterType = ""
	}
	c.Description = terminal.Line(c.Description)
	c.Labels = maps.Clone(c.Labels) // of an object that is not the reader's
	for _, k := range slices.Sorted(maps.Keys(c.Labels)) {
		v := c.Labels[k]
		if bad := append(validation.IsQualifiedName(k),
			validation.IsValidLabelValue(v)...); len(bad) > 0 {
			r.note("cluster %s is without %q: %q, which is no label", c.Name, k, v)
			delete(c.Labels, k)
		}
	}
	r.clusters = append(r.clusters, c)
	return nil
}

// nameOf returns a text as a name: in lower case, with a dash for characters that a name
// cannot have.
func nameOf(text string) string {
	words := strings.FieldsFunc(strings.ToLower(text), func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-'
	})
	return strings.Trim(strings.Join(words, "-"), "-")
}

// hostOf returns the host of the URL of an API server.
func hostOf(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		return ""
	}
	return u.Hostname()
}
