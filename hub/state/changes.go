package state

import (
	"cmp"
	"strings"
	"time"
)

// Changes are the changes of one step, in their order. The caller must read them before the next
// step.
type Changes struct {
	all      []Change
	contacts []string
}

// Contacts returns the clusters whose last report must be written, by name.
func (c *Changes) Contacts() []string { return c.contacts }

// Change is a change of one assignment on a cluster.
type Change struct {
	Was   State
	Moved bool // the state changed
	Ran   bool // the running digest changed
	Other bool // the wanted content changed
	New   bool // it was not wanted before
	Gone  bool // it is not wanted any more

	env     *environment
	cluster *cluster
	target  int
	pair    *pair // as it was then; nil if it has not changed since
}

func (c *Changes) add(change Change) {
	if c != nil {
		c.all = append(c.all, change)
	}
}

// AddContact adds a cluster whose last report must be written. A nil Changes ignores it.
func (c *Changes) AddContact(cluster string) {
	if c != nil {
		c.contacts = append(c.contacts, cluster)
	}
}

// copied is add for a step that may change a pair more than once.
func (c *Changes) copied(change Change) {
	p := change.cluster.pairs[change.target]
	change.pair = &p
	c.add(change)
}

// Append adds changes after these.
func (c *Changes) Append(more *Changes) {
	c.all, c.contacts = append(c.all, more.all...), append(c.contacts, more.contacts...)
}

// Len returns the number of changes.
func (c *Changes) Len() int { return len(c.all) }

// Each calls f with each change and the assignment after it, until f returns an error.
func (c *Changes) Each(f func(Change, Row) error) error {
	for _, change := range c.all {
		p := change.pair
		if p == nil {
			p = &change.cluster.pairs[change.target]
		}
		if err := f(change, change.env.row(change.cluster, change.target, p)); err != nil {
			return err
		}
	}
	return nil
}

// Row is an assignment on a cluster.
type Row struct {
	Environment string `json:"environment"`
	Cluster     string `json:"cluster"`
	ClusterType string `json:"clusterType"`
	Folder      string `json:"folder"` // of the cluster type, or of a class of it
	Ring        string `json:"ring,omitempty"`
	Target      string `json:"deploymentTarget"`
	Workload    string `json:"workload"`
	Workspace   string `json:"workspace,omitempty"`
	State       State  `json:"state"`
	Message     string `json:"message,omitempty"`
	// Changed is since when the hub knows the state. Since is since when the state holds, by the
	// reporter's clock.
	Changed time.Time `json:"changed"`
	Since   time.Time `json:"since,omitzero"`
	// Version and Digest are the wanted ones; Base is the S from which the assignment was compiled.
	Version string `json:"version,omitempty"`
	// VersionFrom is the source of a derived Version; "" if the platform names it.
	VersionFrom string `json:"versionFrom,omitempty"`
	Digest      string `json:"digest"`
	Base        string `json:"base,omitempty"`
	// The observed state, or zero values if there is no report. Running is the running digest, if
	// it is known.
	Reported string `json:"reported,omitempty"`
	Running  string `json:"running,omitempty"`
	Given    string `json:"-"` // the digest, if the reporter knew it
	Said     string `json:"-"` // the message, as it was reported
	Commit   string `json:"commit,omitempty"`
	// Applied is the commit that was applied last, if that is not Commit. It is Unknown if the
	// reconciler does not name it.
	Applied string `json:"applied,omitempty"`
	// Repository, Branch and Path are the source of the cluster's content, as far as the reporter
	// knows them.
	Repository string    `json:"repository,omitempty"`
	Branch     string    `json:"branch,omitempty"`
	Path       string    `json:"path,omitempty"`
	By         string    `json:"by,omitempty"`
	At         time.Time `json:"at,omitzero"`
	// Seen is the last contact with the cluster.
	Seen time.Time `json:"seen,omitzero"`
}

// Runs returns the commit that was applied last, or "" if it is not known.
func (r *Row) Runs() string {
	if r.Applied == Unknown {
		return ""
	}
	return cmp.Or(r.Applied, r.Commit)
}

// ID returns <environment>/<clusterType>/<target>.
func (r *Row) ID() string { return r.Environment + "/" + r.ClusterType + "/" + r.Target }

// Holds returns since when the state holds. For a failure, it is the reporter's time, if that is
// known. Otherwise it is the hub's time.
func (r *Row) Holds() time.Time {
	if r.State == Failed && !r.Since.IsZero() {
		return r.Since
	}
	return r.Changed
}

// Position is the position of a row in lists, which have this order.
func (r *Row) Position() Position { return Position{r.Environment, r.Cluster, r.Target} }

// Position is where a list continues: after this row.
type Position struct{ Environment, Cluster, Target string }

func (p Position) compare(other Position) int {
	return cmp.Or(strings.Compare(p.Cluster, other.Cluster), strings.Compare(p.Target, other.Target))
}

var reportedNames = [...]string{"", "ok", "progressing", "drifted", "failed", "suspended"}

// String returns the name that reports use.
func (r ReportedState) String() string { return reportedNames[r] }

// ParseReportedState returns the reported state with a name.
func ParseReportedState(name string) (ReportedState, bool) {
	for i, n := range reportedNames {
		if n == name && i > 0 {
			return ReportedState(i), true
		}
	}
	return 0, false
}

func (e *environment) row(c *cluster, target int, p *pair) Row {
	t := &c.folder.Targets[target]
	row := Row{
		Environment: e.wanted.Environment, Cluster: c.name, ClusterType: c.folder.ClusterType,
		Folder: c.folder.Name, Ring: c.folder.Ring,
		Target: t.Name, Workload: t.Workload, Workspace: t.Workspace, State: p.state,
		Changed: instant(p.changed),
		Version: t.Version, VersionFrom: t.VersionFrom, Digest: t.Digest, Base: c.folder.Base,
		Seen: c.contact.last,
	}
	if p.at == 0 {
		return row
	}
	from := p.from.Value()
	row.Reported, row.Commit, row.Applied, row.By = p.reported.String(), p.commit.Value(),
		p.applied.Value(), p.by.Value()
	row.Repository, row.Branch, row.Path = from.Repository, from.Branch, from.Path
	row.At, row.Since, row.Message = instant(max(p.at, milliseconds(c.contact.snapshot))),
		instant(p.since), p.message.Value()
	row.Given, row.Running, row.Said = p.digest.Value(), p.ran.Value(), row.Message
	if message := cmp.Or(e.unreadMessage(c, target, p), e.elsewhereMessage(c, target, p),
		e.editedMessage(c, target, p)); message != "" {
		row.Message = message
	}
	return row
}

func milliseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func instant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
