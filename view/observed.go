package view

import (
	"context"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An Observer is a Source that also knows what really runs. Its PageData has Observed set.
type Observer interface {
	Source
	// Rollout returns the progress of an environment's clusters with the wanted commits.
	Rollout(ctx context.Context, environment string) (*Rollout, error)
	// Running returns assignments on clusters, sorted by environment, cluster and deployment
	// target.
	Running(ctx context.Context, of Selection, p Page) (*Running, error)
	// History returns changes, the newest first, from the cursor of an earlier call on, or from
	// "" for the newest.
	History(ctx context.Context, of Selection, cursor string) (*History, error)
	// Audit returns people's actions; the cursor is as that of History.
	Audit(ctx context.Context, cursor string) (*Audit, error)
}

// Counts are how many assignments on clusters are in each state. The states add up to Wanted.
type Counts struct {
	Wanted, OK, Progressing, Suspended, Behind, Drifted, Stale, Missing,
	Failed int
}

// Count is the count of one state.
type Count struct {
	State string
	N     int
}

// States returns the counts that are not 0, the worst first.
func (c *Counts) States() []Count {
	var out []Count
	for _, s := range []Count{{"failed", c.Failed}, {"missing", c.Missing}, {"stale", c.Stale},
		{"drifted", c.Drifted}, {"behind", c.Behind}, {"suspended", c.Suspended},
		{"progressing", c.Progressing}, {"ok", c.OK}} {
		if s.N > 0 {
			out = append(out, s)
		}
	}
	return out
}

// Selection selects assignments on clusters that match all its fields; "" matches any.
type Selection struct {
	// State may be some states, with commas between.
	Environment, Ring, ClusterType, Class, Cluster, Workload, Target, Version, Base, State string
	// a moment; zero for now
	At time.Time
}

// selector is a part of a Selection: its name in addresses, and before a value in words.
type selector struct {
	name, words string
	value       *string
}

// selectors returns the parts of a selection, in the order in which String names them.
func (s *Selection) selectors() []selector {
	return []selector{
		{"state", "", &s.State}, {"environment", "environment ", &s.Environment},
		{"ring", "ring ", &s.Ring}, {"clusterType", "cluster type ", &s.ClusterType},
		{"class", "class ", &s.Class}, {"cluster", "cluster ", &s.Cluster},
		{"workload", "workload ", &s.Workload}, {"deploymentTarget", "deployment target ", &s.Target},
		{"version", "version ", &s.Version}, {"base", "commit ", &s.Base},
	}
}

// selectionOf reads the parameters of a page.
func selectionOf(q url.Values) (s Selection, err error) {
	for _, part := range s.selectors() {
		*part.value = q.Get(part.name)
	}
	if at := q.Get("at"); at != "" {
		for _, layout := range []string{time.RFC3339, "2006-01-02T15:04", "2006-01-02 15:04",
			"2006-01-02"} {
			if t, err := time.Parse(layout, at); err == nil {
				s.At = t
				return s, nil
			}
		}
		return s, &NotFoundError{fmt.Sprintf("%.40q is no time: write it as 2026-01-02T15:04", at)}
	}
	return s, nil
}

// Query returns the parameters of a page that is about the selection.
func (s Selection) Query() string {
	q := url.Values{}
	for _, part := range s.selectors() {
		if *part.value != "" {
			q.Set(part.name, *part.value)
		}
	}
	if !s.At.IsZero() {
		q.Set("at", s.At.UTC().Format(time.RFC3339))
	}
	return q.Encode()
}

// String describes the selection.
func (s Selection) String() string {
	var parts []string
	for _, part := range s.selectors() {
		if *part.value != "" {
			parts = append(parts, part.words+*part.value)
		}
	}
	if !s.At.IsZero() {
		parts = append(parts, "at "+s.At.UTC().Format("2006-01-02 15:04 UTC"))
	}
	return strings.Join(parts, ", ")
}

// RunningRow is an assignment on a cluster.
type RunningRow struct {
	// Class and Ring are "" if they are not known.
	Environment, Cluster, ClusterType, Class, Ring, Target, Workload string
	State, Message                                                   string
	// since when it is in that state; zero if it is not known
	Since         time.Time
	Version, Base string // that is wanted
	// Digest is the wanted digest of the folder, and Running is the running one. They are "" if not
	// known.
	Digest, Running string
	Commit, By      string
	// of the report; of the last report of the cluster
	At, Seen time.Time
}

// Running are assignments on clusters.
type Running struct {
	Of     Selection
	Counts Counts // of all of them, in any state
	Rows   []RunningRow
	Part   Part
	// Warning lists unknown names if there are no rows, and the reason if rows may be
	// missing. It is "" if there is no warning.
	Warning string
}

// Rollout is how far an environment has come.
type Rollout struct {
	Environment string
	Commit      string // of the GitOps branch
	Branch      string
	Counts      Counts
	Rings       []RingCounts
	Workloads   []WorkloadCounts
	// the assignments that are not ok, the worst first, as many as a page may list
	Lagging     []RunningRow
	NotOK       int          // how many there are
	Releases    []Release    // the newest
	Older       bool         // there are older releases
	Performance *Performance // of the releases of some days; nil without releases
}

// RingCounts counts the assignments in a ring, or in an environment without rings.
type RingCounts struct {
	Environment, Name, Base, Own string
	Counts                       Counts
}

// WorkloadCounts counts a version of a workload.
type WorkloadCounts struct {
	Environment, Workload, Version string
	Counts                         Counts
}

// Performance is how well releases went.
type Performance struct {
	Days, Releases int
	PerWeek        string
	// Lead is the time of the median release until all of it was ok. Nine of ten releases took at
	// most Slow. Restore is the median time until a ring was ok again after a failure. They are ""
	// if there are no such releases or failures.
	Lead, Slow, Restore string
	Failed              string // the fraction of releases that failed
}

// Release is a commit that changed the desired state of a ring.
type Release struct {
	Ring, Commit, Base, Own, Author, Subject string
	At                                       time.Time
	Completed, Failed                        time.Time // zero for not yet
}

// History is a list of changes.
type History struct {
	Of   Selection
	Rows []Transition
	Next string // the cursor of older rows, or ""
	// Warning lists unknown names if there are no rows, or is "".
	Warning string
}

// Transition is a change of an assignment on a cluster.
type Transition struct {
	At time.Time
	// the class and the ring are "" if they are not known
	Environment, Cluster, ClusterType, Class, Ring, Workload, Target string
	Was, State, Version, Commit, Message                             string
}

// Audit is a list of people's actions.
type Audit struct {
	Rows []AuditEntry
	Next string
}

// AuditEntry is one action of a person.
type AuditEntry struct {
	At                           time.Time
	Who, Action, Subject, Detail string
}

// observed returns the page of an Observer; nil if there is no such page.
func observed(ctx context.Context, s Observer, segments []string, q url.Values, p Page) (*page,
	error) {
	of, err := selectionOf(q)
	if err != nil {
		return nil, err
	}
	out := &page{Path: path(segments...), Template: segments[0]}
	switch {
	case is(segments, "rollouts", 1):
		out.Title = "Rollout of " + segments[1]
		out.Data, err = s.Rollout(ctx, segments[1])
	case is(segments, "running", 0):
		out.Title = "What runs"
		out.Data, err = s.Running(ctx, of, p)
	case is(segments, "history", 0):
		out.Title = "History"
		out.Data, err = s.History(ctx, of, q.Get("cursor"))
	case is(segments, "audit", 0):
		out.Title = "Audit"
		out.Data, err = s.Audit(ctx, q.Get("cursor"))
	default:
		return nil, nil
	}
	return out, err
}

// bar draws counts in parts of 1,000. It is a picture beside the numbers, for sighted
// readers.
func bar(c *Counts) template.HTML {
	if c == nil || c.Wanted == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(`<svg class="bar" viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true">`)
	x := 0
	for _, s := range c.States() {
		width := max(s.N*1000/c.Wanted, 4)
		b.WriteString(`<rect class="is-` + s.State + `" x="` + strconv.Itoa(x) + `" width="` +
			strconv.Itoa(width) + `" height="10"/>`)
		x += width
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

// running is the address of the list behind a number.
func running(of Selection, state string) string {
	of.State = state
	return "/running?" + of.Query()
}

// changes is the address of the changes of a selection, from a cursor on; "" for the newest.
func changes(of Selection, cursor string) string {
	of.State = ""
	address := "/history?" + of.Query()
	if cursor != "" {
		address += "&cursor=" + url.QueryEscape(cursor)
	}
	return address
}

// cut has the shown and total lengths of a list, and the address of the whole list.
type cut struct {
	Shown, All, Left int
	List             string
}

func cutAt(shown, all int, list string) cut { return cut{shown, all, max(all-shown, 0), list} }

// notOK are the states that are not ok, the worst first.
const notOK = "failed,missing,stale,drifted,behind,progressing"

// when is a time as pages show it; "" for the zero Time.
func when(t time.Time) template.HTML {
	if t.IsZero() {
		return ""
	}
	t = t.UTC()
	return template.HTML(`<time datetime="` + t.Format(time.RFC3339) + `">` +
		t.Format("2006-01-02 15:04:05") + `</time>`)
}

// short is a commit or a digest as people see it.
func short(id string) string {
	const shown = 12
	if len(id) > shown {
		id = id[:shown]
	}
	return visible(id, longestName)
}

var stateNames = []string{"ok", "progressing", "suspended", "behind", "drifted", "stale", "missing",
	"failed"}

// stateClass returns the class of a state. It returns "" for a text that is not a state.
func stateClass(s string) string {
	if slices.Contains(stateNames, s) {
		return "is-" + s
	}
	return ""
}

// counts are Counts with the name of the counted things.
type counts struct {
	Of     Selection
	Counts *Counts
}

// counted returns the data of the template of counts: Counts or a pointer to them.
func counted(of Selection, c any) counts {
	switch c := c.(type) {
	case Counts:
		return counts{of, &c}
	case *Counts:
		return counts{of, c}
	}
	return counts{Of: of}
}

// selection makes a Selection of names, as they are in addresses, and values.
func selection(pairs ...string) Selection {
	var s Selection
	for i := 0; i+1 < len(pairs); i += 2 {
		for _, part := range s.selectors() {
			if part.name == pairs[i] {
				*part.value = pairs[i+1]
			}
		}
	}
	return s
}

// pages is more for a list of a selection.
func pages(p Part, of Selection) map[string]string {
	out := more(p, "")
	for _, side := range []string{"Before", "After"} {
		if out[side] != "" {
			out[side] += "&" + of.Query()
		}
	}
	return out
}
