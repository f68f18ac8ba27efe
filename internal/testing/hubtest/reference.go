package hubtest

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/compiler/origin"
	"github.com/kalypso-io/kalypso/hub/state"
)

// Reference is the specification of a Fleet, in the simplest form. It keeps all wanted states and
// all reports, and evaluates them from the beginning each time.
type Reference struct {
	StaleAfter, Grace time.Duration
	Wanted            *state.DesiredState
	Reports           []state.Report
}

// Take adds a report. A cluster that the platform does not list is there from the first report
// on that is about anything.
func (m *Reference) Take(r state.Report) {
	if len(r.Items) == 0 && !slices.ContainsFunc(m.clusters(), func(c state.Cluster) bool { return c.Name == r.Cluster }) {
		return
	}
	if r.At.After(r.Received) {
		r.At = r.Received
	}
	r.Items = slices.Clone(r.Items)
	m.Reports = append(m.Reports, r)
	for i := range r.Items {
		if it := &r.Items[i]; it.Before != "" && it.State == state.ReportedProgressing && m.alike(r.Cluster, it) {
			it.State, it.Message, it.Since = state.ReportedOK, "", time.Time{}
		}
	}
}

func (m *Reference) clusters() []state.Cluster {
	out := slices.Clone(m.Wanted.Clusters)
	for _, name := range []string{"x0", "x1"} {
		if slices.ContainsFunc(m.Reports, func(r state.Report) bool { return r.Cluster == name }) {
			out = append(out, state.Cluster{Name: name, Folder: "box"})
		}
	}
	return out
}

// place is an assignment on a cluster.
type place struct {
	state.Cluster
	*state.Folder
	*state.Target
}

func (p place) key(it *state.Item) string {
	if it.Origin.Path != "" {
		return state.Key(path.Base(path.Dir(it.Origin.Path)), path.Base(it.Origin.Path))
	}
	return state.Key(p.Folder.Name, p.Target.Name)
}

// elsewhere reports whether an item comes from a place outside of the tree. That is another
// repository, another branch, or a folder that does not belong to a class of the cluster type.
func (m *Reference) elsewhere(p place, it *state.Item) bool {
	from, w := it.Origin, m.Wanted
	if from.Repository != "" && from.Repository != w.Repository &&
		!slices.Contains(w.Mirrors, from.Repository) || from.Branch != "" && from.Branch != w.Branch {
		return true
	}
	folder := path.Base(path.Dir(from.Path))
	return from.Path != "" && (path.Join(w.Path, folder, p.Target.Name) != from.Path ||
		folder != p.ClusterType && !strings.HasPrefix(folder, p.ClusterType+"."))
}

// observed returns the observation that counts, and when it was made.
func (m *Reference) observed(p place) (best state.Item, at time.Time) {
	from := m.origin(p)
	best.Origin = from
	var snapshot time.Time
	for pass := range 2 { // snapshots first: a report older than the newest does not count
		for _, r := range m.Reports {
			if r.Cluster != p.Cluster.Name || r.Snapshot != (pass == 0) || r.At.Before(snapshot) {
				continue
			}
			is, found := state.Item{}, r.Snapshot
			for _, it := range r.Items {
				if it.Assignment == m.Wanted.Environment+"/"+p.ClusterType+"/"+p.Target.Name {
					is, found = it, true
				}
			}
			if r.Snapshot {
				snapshot = r.At
			}
			is.Origin, best.Origin = from, from
			if found && (r.At.After(at) || r.At.Equal(at) && m.compare(p, &is, &best) > 0) {
				best, at = is, r.At
			}
		}
	}
	return best, at
}

// origin returns the last reported origin of an assignment.
func (m *Reference) origin(p place) (best origin.Origin) {
	var at, snapshot time.Time
	for _, r := range m.Reports {
		if r.Cluster == p.Cluster.Name && r.Snapshot && r.At.After(snapshot) {
			snapshot = r.At
		}
	}
	order := func(o origin.Origin) string { return o.Path + "\x00" + o.Branch + "\x00" + o.Repository }
	for _, r := range m.Reports {
		if r.Cluster != p.Cluster.Name || r.At.Before(snapshot) {
			continue
		}
		said, says := origin.Origin{}, r.Snapshot
		for _, it := range r.Items {
			if it.Assignment == m.Wanted.Environment+"/"+p.ClusterType+"/"+p.Target.Name {
				said, says = it.Origin, says || it.Origin != origin.Origin{}
			}
		}
		if says && (r.At.After(at) || r.At.Equal(at) && order(said) > order(best)) {
			best, at = said, r.At
		}
	}
	return best
}

// compare orders two observations of one time.
func (m *Reference) compare(p place, a, b *state.Item) int {
	folderA, entryA := m.content(p, a, a.Commit)
	folderB, entryB := m.content(p, b, b.Commit)
	return cmp.Or(a.State.Compare(b.State), strings.Compare(a.Digest, b.Digest),
		strings.Compare(a.Message, b.Message), strings.Compare(a.Applied, b.Applied),
		a.Since.Compare(b.Since), strings.Compare(folderA, folderB), strings.Compare(entryA, entryB))
}

// content returns the digests of the folder and of the cluster's entry in a commit. If they are
// not known, it returns the commit.
func (m *Reference) content(p place, it *state.Item, commit string) (folder, entry string) {
	if i := m.Wanted.IndexOf(commit); i >= 0 {
		return m.Wanted.DigestAt(i, p.key(it)), m.Wanted.DigestAt(i, state.EntryKey(p.Cluster.Name))
	}
	return commit, ""
}

// alike reports whether the commit of an item and the one before it have the same
// content.
func (m *Reference) alike(cluster string, it *state.Item) bool {
	for _, p := range m.places(cluster, it) {
		folder, entry := m.content(p, it, it.Commit)
		wasFolder, wasEntry := m.content(p, it, it.Before)
		return folder == wasFolder && entry == wasEntry
	}
	return false
}

// places returns the place that an item of a cluster is about.
func (m *Reference) places(cluster string, it *state.Item) (out []place) {
	for _, c := range m.clusters() {
		f := &m.Wanted.Folders[slices.IndexFunc(m.Wanted.Folders, func(f state.Folder) bool { return f.Name == c.Folder })]
		for i := range f.Targets {
			if c.Name == cluster && it.Assignment == m.Wanted.Environment+"/"+f.ClusterType+"/"+f.Targets[i].Name {
				out = append(out, place{c, f, &f.Targets[i]})
			}
		}
	}
	return out
}

// running returns the digest of the running folder. It returns false if the branch never had it.
func (m *Reference) running(p place, it *state.Item) (string, bool) {
	if m.elsewhere(p, it) {
		return "", false
	}
	if it.Digest != "" {
		return it.Digest, m.recorded(p.key(it), it.Digest) || m.edited(p.key(it), it.Digest)
	}
	i := m.Wanted.IndexOf(it.Commit)
	if i < 0 {
		return "", false
	}
	if p.Entry != "" && m.Wanted.DigestAt(i, state.EntryKey(p.Cluster.Name)) != p.Entry {
		return "", true
	}
	return m.Wanted.DigestAt(i, p.key(it)), true
}

// recorded reports whether a record had a digest, and edited whether a commit had one that no
// record had.
func (m *Reference) recorded(key, digest string) bool {
	is := m.Wanted.Digest(key)
	for _, c := range m.Wanted.Commits {
		if is == digest {
			return true
		}
		if was, differs := c.Was[key]; differs {
			is = was
		}
	}
	return is == digest
}

func (m *Reference) edited(key, digest string) bool {
	return !m.recorded(key, digest) && slices.ContainsFunc(m.Wanted.Commits, func(c state.Commit) bool {
		is, edited := c.Edited[key]
		return edited && is == digest
	})
}

// byHand reports whether something runs that somebody edited in the branch.
func (m *Reference) byHand(p place, it *state.Item) bool {
	entry := state.EntryKey(p.Cluster.Name)
	if i := m.Wanted.IndexOf(it.Commit); it.Digest == "" && i >= 0 && p.Entry != "" {
		if is := m.Wanted.DigestAt(i, entry); is != p.Entry {
			return m.edited(entry, is) || m.edited(p.key(it), "")
		}
	}
	running, known := m.running(p, it)
	return known && m.edited(p.key(it), running)
}

// first returns when the commit of an observation was first reported, or the digest of its folder.
func (m *Reference) first(p place, is *state.Item) (at time.Time) {
	for _, r := range m.Reports {
		for _, it := range r.Items {
			same := it.Digest == "" && it.Commit == is.Commit
			if is.Digest != "" {
				same = it.Digest == is.Digest && it.Assignment == is.Assignment
			}
			if same && (at.IsZero() || r.Received.Before(at)) {
				at = r.Received
			}
		}
	}
	return at
}

func (m *Reference) state(p place, now time.Time) state.State {
	var last time.Time
	for _, r := range m.Reports {
		news := r.Received
		if r.Received.Sub(r.At) > m.StaleAfter { // it was carried
			news = r.At
		}
		if r.Cluster == p.Cluster.Name && news.After(last) {
			last = news
		}
	}
	stale := !last.IsZero() && now.Sub(last) > m.StaleAfter
	is, at := m.observed(p)
	if is.State == state.Nothing {
		if stale && !at.IsZero() {
			return state.Stale
		}
		return state.Missing
	}
	if m.elsewhere(p, &is) {
		unread := m.Wanted.IndexOf(is.Commit) < 0 && is.State != state.ReportedDrifted && is.Commit != ""
		switch {
		case stale:
			return state.Stale
		case unread && now.Sub(m.first(p, &is)) <= m.Grace && m.Grace > 0:
			return state.Progressing
		}
		return state.Drifted
	}
	running, known := m.running(p, &is)
	switch wanted := known && running == p.Target.Digest; {
	case wanted && is.State == state.ReportedFailed:
		return state.Failed
	case stale:
		return state.Stale
	case !known && is.State != state.ReportedDrifted && now.Sub(m.first(p, &is)) <= m.Grace && m.Grace > 0:
		return state.Progressing
	case !known:
		return state.Drifted
	case !wanted && m.byHand(p, &is):
		return state.Drifted
	case is.State == state.ReportedSuspended:
		return state.Suspended
	case !wanted:
		return state.Behind
	case is.State == state.ReportedDrifted:
		return state.Drifted
	case is.State == state.ReportedProgressing:
		return state.Progressing
	}
	return state.OK
}

// Check returns the first difference between a Fleet and its reference. It returns "" if there is
// no difference.
func (m *Reference) Check(fleet *state.Fleet, now time.Time) string {
	rows, tally := map[string]state.State{}, state.Tally{}
	fleet.List(state.Filter{}, state.Position{}, func(r state.Row) bool {
		rows[r.Cluster+" "+r.Target] = r.State
		return true
	})
	worst := map[string]state.State{} // of targets on clusters that are not listed
	for _, f := range m.Wanted.Folders {
		for i := range f.Targets {
			if !f.Listed {
				worst[f.Targets[i].Name] = state.Missing
			}
		}
	}
	first := map[string]bool{}
	for _, c := range m.clusters() {
		f := &m.Wanted.Folders[slices.IndexFunc(m.Wanted.Folders, func(f state.Folder) bool { return f.Name == c.Folder })]
		for i := range f.Targets {
			t := &f.Targets[i]
			want, key := m.state(place{c, f, t}, now), c.Name+" "+t.Name
			if got, there := rows[key]; !there || want != got {
				return fmt.Sprintf("%s on %s is %s (%t), and should be %s", t.Name, c.Name, got, there, want)
			}
			delete(rows, key)
			if f.Listed {
				tally[want]++
			} else if !first[t.Name] || slices.Index(state.States(), want) > slices.Index(state.States(), worst[t.Name]) {
				first[t.Name], worst[t.Name] = true, want
			}
		}
	}
	for _, s := range worst {
		tally[s]++
	}
	if len(rows) > 0 {
		return fmt.Sprintf("there should be no %v", rows)
	}
	var counted state.Tally
	for _, g := range fleet.Count(state.Filter{}, state.ByTarget) {
		counted.Add(&g.Tally)
	}
	if counted != tally {
		return fmt.Sprintf("counted %v, and there are %v", counted, tally)
	}
	return ""
}

// Rows returns all rows of a Fleet.
func Rows(fleet *state.Fleet) (rows []state.Row) {
	fleet.List(state.Filter{}, state.Position{}, func(r state.Row) bool {
		rows = append(rows, r)
		return true
	})
	return rows
}
