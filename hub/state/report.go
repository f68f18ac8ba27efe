package state

import (
	"cmp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/kalypso-io/kalypso/compiler/origin"
)

// Report is what a cluster was observed to run.
type Report struct {
	Cluster string
	// Environments are those that the reporter may report about. It may not report about a
	// cluster that is in others too.
	Environments Environments
	// At is when it was observed, by the clock of the reporter; Received is the hub's clock.
	// The order of reports about a cluster is that of At, and At is never after Received.
	At, Received time.Time
	By           string // who reports, for people
	// Snapshot says that Items are all that there is on the cluster: what is not among them
	// is not there.
	Snapshot bool
	// Digest stands for Items of a snapshot: one with the digest of the last one may leave
	// them out, which Same says.
	Digest string
	Same   bool
	// UID tells the cluster of a snapshot from others of its name; "" where that is not known.
	UID   string
	Items []Item
}

// longest is how long the texts of a report, and names, may be: a database has indexes of them.
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
	// Assignment is <environment>/<clusterType>/<target>, or has the folder of a class for the
	// cluster type, as the tree does; "" where Object names it.
	Assignment string
	// Object is the name of the reconciler's object that applies the folder.
	Object string
	// Commit is the one of the GitOps branch that the state is about; "" where that is not known.
	// Digest is that of the folder, from reporters that know it: then Commit does not matter.
	Commit, Digest string
	// Origin is where the reconciler takes the folder from, as far as it says that.
	Origin origin.Origin
	// Applied is the commit that was applied last, where that is not Commit: Unknown where the
	// reconciler does not say which one it is.
	Applied string
	// Before is the commit that was applied, and ok, until Commit began to be.
	Before  string
	State   Reported
	Message string
	Since   time.Time // since when, by the reporter's clock; zero where it is not known
}

// origin returns where the folder is taken from. Of a report that names a class, and no place, that
// is the class's folder of whichever tree.
func (it *Item) origin() origin.Origin {
	from := it.Origin.Clean()
	_, folder, _ := strings.Cut(it.Assignment, "/")
	if name, _, _ := strings.Cut(folder, "/"); from == (origin.Origin{}) && strings.Contains(name, ".") {
		from.Path = folder
	}
	return from
}

// Unknown is the Applied of an item of which nobody says which commit was applied.
const Unknown = "unknown"

// Reported is a state as reporters know it, who do not know what is wanted. Its numbers are those
// in databases.
type Reported uint8

// The states that are reported. Nothing is for an assignment that was there before and is absent
// from a snapshot.
const (
	Nothing Reported = iota
	ReportedOK
	ReportedProgressing
	ReportedDrifted
	ReportedFailed
	ReportedSuspended // somebody has told the reconciler to leave it as it is
)

var reportedRanks = [...]int{Nothing: 0, ReportedOK: 1, ReportedProgressing: 2,
	ReportedSuspended: 3, ReportedDrifted: 4, ReportedFailed: 5}

// Compare orders states, the worst last.
func (r Reported) Compare(other Reported) int {
	return cmp.Compare(reportedRanks[r], reportedRanks[other])
}

// Outcome says what of a report could not be taken.
type Outcome struct {
	Unlisted  bool // no environment has the cluster
	Early     bool // and the report is kept for when one has it
	Elsewhere bool // the reporter may not report about it: another environment has it
	Resend    bool // the items are needed: the last snapshot had another digest
	// Unknown are the items that are no assignments of the cluster: their ids, or the names of
	// objects; sorted.
	Unknown []string
}
