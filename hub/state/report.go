package state

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/kalypso-io/kalypso/compiler/origin"
)

// Report is the observed state of a cluster.
type Report struct {
	Cluster string
	// Environments limits the environments that the reporter may report about. It may not report
	// about a cluster that is in others too.
	Environments Environments
	// At is when the state was observed, by the clock of the reporter; Received is the hub's clock.
	// Reports about a cluster are ordered by At, and At is never after Received.
	At, Received time.Time
	By           string // the reporter, for people
	// Snapshot means that Items are all items of the cluster. It has no assignments other than
	// these.
	Snapshot bool
	// Digest is a digest of the Items of a snapshot. If the last snapshot had the same digest, the
	// report may have no items, and Same is true.
	Digest string
	Same   bool
	// UID distinguishes the cluster of a snapshot from others with its name; "" if it is not known.
	UID   string
	Items []Item
}

// longest limits the bytes of names and of the texts of a report, because databases have indexes of
// them.
const longest = 2000

// storable reports whether a database can keep texts, and find them.
func storable(texts ...string) bool {
	for _, s := range texts {
		if len(s) > longest || !utf8.ValidString(s) || strings.Contains(s, "\x00") {
			return false
		}
	}
	return true
}

// Valid reports whether a database can keep the texts of a report.
func (r *Report) Valid() bool {
	if !storable(r.Cluster, r.By, r.Digest, r.UID) ||
		strings.ContainsFunc(r.Cluster, func(c rune) bool { return !unicode.IsPrint(c) }) {
		return false
	}
	for i := range r.Items {
		if it := &r.Items[i]; !storable(it.Commit, it.Before, it.Applied, it.Origin.Repository,
			it.Origin.Branch, it.Origin.Path, it.Digest, it.Message) {
			return false
		}
	}
	return true
}

// Item is the state of one assignment, as it was observed.
type Item struct {
	// Assignment is <environment>/<clusterType>/<target>. It may have the folder of a class instead
	// of the cluster type, as the tree does. It is "" if Object identifies the assignment.
	Assignment string
	// Object is the name of the reconciler's object that applies the folder.
	Object string
	// Commit is the commit of the GitOps branch that the state is about; "" if it is not known.
	// Digest is the digest of the folder, from reporters that know it: then Commit does not matter.
	Commit, Digest string
	// Origin is the source from which the reconciler takes the folder, as far as it is known.
	Origin origin.Origin
	// Applied is the commit that was applied last, if that is not Commit. It is Unknown if the
	// reconciler does not name it.
	Applied string
	// Before is the commit that was applied, and ok, until the reconciler began to apply Commit.
	Before  string
	State   ReportedState
	Message string
	Since   time.Time // since when, by the reporter's clock; zero if it is not known
}

// origin returns the source of the folder. If a report names a class and no source, it is the
// class's folder in any tree.
func (it *Item) origin() origin.Origin {
	from := it.Origin.Clean()
	_, folder, _ := strings.Cut(it.Assignment, "/")
	if name, _, _ := strings.Cut(folder, "/"); from == (origin.Origin{}) &&
		strings.Contains(name, ".") {
		from.Path = folder
	}
	return from
}

// Unknown is the Applied of an item whose applied commit is not known.
const Unknown = "unknown"

// ReportedState is a state in the view of reporters, who do not know the wanted state. Databases
// contain its numbers.
type ReportedState uint8

// The reported states. Nothing is for an assignment that was on the cluster before and is absent
// from a snapshot.
const (
	Nothing ReportedState = iota
	ReportedOK
	ReportedProgressing
	ReportedDrifted
	ReportedFailed
	ReportedSuspended // it is suspended in the reconciler
)

var reportedRanks = [...]int{Nothing: 0, ReportedOK: 1, ReportedProgressing: 2,
	ReportedSuspended: 3, ReportedDrifted: 4, ReportedFailed: 5}

// Compare orders states, the worst last.
func (r ReportedState) Compare(other ReportedState) int {
	return cmp.Compare(reportedRanks[r], reportedRanks[other])
}

// Outcome describes the parts of a report that the hub could not use.
type Outcome struct {
	Unlisted  bool // no environment has the cluster
	Early     bool // and the report is kept until an environment has it
	Elsewhere bool // the reporter may not report about it: another environment has it
	Resend    bool // the items are needed: the last snapshot had another digest
	// Unknown are the items that do not match assignments of the cluster: their ids, or the names
	// of objects. It is sorted.
	Unknown []string
}

// Clusters counts the clusters of an environment: those that report, those whose last contact is
// too old, and those that have never reported.
func (f *Fleet) Clusters(environment string) (reporting, stale, never int) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	e := f.environments[environment]
	if e == nil {
		return 0, 0, 0
	}
	for _, c := range e.clusters {
		switch {
		case c.contact.last.IsZero():
			never++
		case c.stale:
			stale++
		default:
			reporting++
		}
	}
	return reporting, stale, never
}

// News is the last contact of a cluster, as answers have it.
type News struct {
	Cluster string
	Last    time.Time // zero if it has never reported
	By      string
	// Environments are the environments that have the cluster.
	Environments []string
}

// News returns the last contact of a cluster. It returns false if no environment has the cluster.
func (f *Fleet) News(cluster string) (News, bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	n := News{Cluster: cluster}
	for _, name := range f.names {
		if e := f.environments[name]; e != nil && e.byClust[cluster] != nil {
			n.Environments = append(n.Environments, name)
		}
	}
	if h := f.seen[cluster]; h != nil {
		n.Last, n.By = h.last, h.by
	}
	return n, len(n.Environments) > 0
}

// Contact is the most recent report of a cluster, as the store keeps it, without its items.
type Contact struct {
	Cluster        string
	Last, Snapshot time.Time // of any contact, and of the last snapshot, by the reporter's clock
	Digest, By     string    // of that snapshot, "" if its items are needed again; the last reporter
	Partial        bool      // some items of that snapshot did not match assignments of the cluster
	// UID is the uid of the last snapshot that had one, and Before is the different uid before it.
	// Conflict is when Before last returned after UID, by the hub's clock: two clusters then have
	// the same name.
	UID, Before string
	Conflict    time.Time
}

// conflictHolds is how long a conflict of two clusters with one name lasts after they last took
// turns.
const conflictHolds = time.Hour

// Problem explains why the known state of a cluster may belong to another one. It returns "" if
// there is no conflict.
func (h *Contact) Problem() string {
	if h.Conflict.IsZero() || h.Last.Sub(h.Conflict) > conflictHolds {
		return ""
	}
	return "two clusters report as " + h.Cluster + " in turns, last at " +
		h.Conflict.UTC().Format(time.RFC3339) +
		", and each replaces what the other has reported: have one of them report by its own name; or, " +
		"where it is one cluster, end one of two observers that see different objects"
}

// Conflicts returns the clusters of an environment that have a Problem, sorted.
func (f *Fleet) Conflicts(environment string) []string {
	f.mu.RLock()
	defer f.mu.RUnlock()
	e := f.environments[environment]
	if e == nil {
		return nil
	}
	var out []string
	for _, c := range e.clusters {
		if is := c.contact.contactOf(c.name); is.Problem() != "" {
			out = append(out, c.name)
		}
	}
	return out
}

// Contact returns the most recent report of a cluster. Its times are zero if the cluster has never
// reported.
func (f *Fleet) Contact(cluster string) Contact {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.seen[cluster].contactOf(cluster)
}

func (h *contact) contactOf(cluster string) Contact {
	if h == nil {
		return Contact{Cluster: cluster}
	}
	return Contact{cluster, h.last, h.snapshot, h.digest, h.by, h.partial, h.uid, h.before, h.conflict}
}

// State is the state of an assignment on a cluster. Databases contain its numbers.
type State uint8

// The states.
const (
	OK          State = iota // runs the wanted content, and is ready
	Progressing              // is about to
	Behind                   // runs earlier content of its branch
	Drifted                  // runs content that was never promoted, or was changed on the cluster
	Stale                    // the cluster has reported, but not lately
	Missing                  // there is no report, or it is not on the cluster
	Failed                   // runs the wanted content, and fails, or could not apply anything
	Suspended                // is suspended in its reconciler
	numStates
)

var names = [numStates]string{"ok", "progressing", "behind", "drifted", "stale", "missing",
	"failed", "suspended"}

// order has all states, the worst last.
var order = [numStates]State{OK, Progressing, Behind, Drifted, Suspended, Stale, Missing, Failed}

// States returns all states, the worst last.
func States() []State { return slices.Clone(order[:]) }

// Names returns the names of all states, in their order.
func Names() (out []string) {
	for _, s := range order {
		out = append(out, s.String())
	}
	return out
}

// String returns the name that the API uses.
func (s State) String() string { return names[s] }

// MarshalText returns the name of the state.
func (s State) MarshalText() ([]byte, error) { return []byte(names[s]), nil }

// UnmarshalText reads the name of a state.
func (s *State) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	*s = parsed
	return err
}

// Parse returns the state with a name.
func Parse(name string) (State, error) {
	for i, n := range names {
		if n == name {
			return State(i), nil
		}
	}
	return 0, fmt.Errorf("%.40q is no state: there are %v", name, Names())
}

// Tally counts assignments on clusters by their state. The states add up to Wanted.
type Tally [numStates]int

// Wanted returns the number of assignments in all states.
func (t *Tally) Wanted() int {
	n := 0
	for _, c := range t {
		n += c
	}
	return n
}

// Add adds the counts of another tally.
func (t *Tally) Add(other *Tally) {
	for i := range t {
		t[i] += other[i]
	}
}
