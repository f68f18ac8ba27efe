// Package notify tells people about events at a hub: by webhooks and in chats, and by statuses and
// comments on forges. Several hubs of one database send each message only once: the hub that has
// added it to the database sends it.
package notify

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kalypso-io/kalypso/hub"
	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/hub/store"
)

// Notifier sends messages. For each target, only one goroutine may call Look.
type Notifier struct {
	Hub     *hub.Hub
	Targets []*Target
	// URL is the hub's address, for links. It is "" if the hub has no address.
	URL     string
	Problem func(error)

	client *http.Client
	mu     sync.Mutex
	since  map[string]time.Time // when a count was first above zero, or first zero again, by key
	absent map[string]bool      // environments that targets name and the platform lacks
	bad    map[string]bool      // templates that fail, by target and event
}

// New returns a Notifier. Problem may be called by several goroutines.
func New(h *hub.Hub, targets []*Target, url string, problem func(error)) *Notifier {
	return &Notifier{Hub: h, Targets: targets, URL: strings.TrimSuffix(url, "/"), Problem: problem,
		client: newClient(), since: map[string]time.Time{}, absent: map[string]bool{},
		bad: map[string]bool{}}
}

// lookEvery is the time between two checks for events.
const lookEvery = 10 * time.Second

// Run looks for events until the context ends. A slow target does not delay the others.
func (n *Notifier) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, t := range n.Targets {
		all.Go(func() {
			tick := time.NewTicker(lookEvery)
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
				if err := n.Look(ctx, t); err != nil && ctx.Err() == nil {
					n.Problem(fmt.Errorf("notification %s: %w", t.Name, err))
				}
			}
		})
	}
	all.Wait()
}

// The limits of messages. Events before oldest are not sent. Sent messages are forgotten after
// rememberFor, which is longer.
const (
	oldest      = 7 * 24 * time.Hour
	rememberFor = 4 * oldest
)

// maxReleases limits the releases of an environment that a look reads.
const maxReleases = 200

// Look sends the due messages to a target.
func (n *Notifier) Look(ctx context.Context, t *Target) error {
	known, err := n.Hub.Store().Notifications(ctx, t.Name+"/")
	if err != nil {
		return err
	}
	environments := n.Hub.Fleet().Environments()
	n.warn(t, environments)
	for _, w := range environments {
		if !t.covers(w.Environment) {
			continue
		}
		if err := n.environment(ctx, t, w.Environment, known); err != nil {
			return err
		}
	}
	// Remove the records of messages about releases that are too old to report.
	for key, is := range known {
		event, _, _ := strings.Cut(strings.TrimPrefix(key, t.Name+"/"), "/")
		if e := Event(event); (e == Promoted || e == Completed || e == Failed) &&
			n.Hub.Now().Sub(is.At) > rememberFor {
			if _, err := n.Hub.Store().RemoveNotification(ctx, is); err != nil {
				return err
			}
		}
	}
	return nil
}

// warn reports, once, the environments of a target that the platform lacks.
func (n *Notifier) warn(t *Target, environments []*state.DesiredState) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, name := range t.Environments {
		key := t.Name + "/" + name
		if len(environments) > 0 && !n.absent[key] && !slices.ContainsFunc(environments,
			func(w *state.DesiredState) bool { return w.Environment == name }) {
			n.absent[key] = true
			n.Problem(fmt.Errorf("notification %s: the platform has no environment %s, or its branch was "+
				"not read yet", t.Name, name))
		}
	}
}

// template reports, once, that the template of a target fails for an event.
func (n *Notifier) template(t *Target, e Event, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	key := t.Name + "/" + string(e)
	if !n.bad[key] {
		n.bad[key] = true
		n.Problem(fmt.Errorf("notification %s: the template fails for a message of the event %s, which "+
			"has the default text: %w", t.Name, e, err))
	}
}

// releaseEvent is an event of a release.
type releaseEvent struct {
	event   Event
	at      time.Time
	release api.Release
}

func (h *releaseEvent) key(t *Target) string {
	return strings.Join(
		[]string{t.Name, string(h.event), h.release.Environment, h.release.Ring, h.release.Commit}, "/")
}

// eventsOf returns the events of releases after a time, the oldest first.
func eventsOf(releases []api.Release, after time.Time) []releaseEvent {
	var out []releaseEvent
	for _, r := range releases {
		for _, h := range []releaseEvent{{Promoted, r.At, r}, {Completed, r.Completed, r},
			{Failed, r.Failed, r}} {
			if h.at.After(after) {
				out = append(out, h)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b releaseEvent) int { return a.at.Compare(b.at) })
	return out
}

// environment sends the due messages about an environment.
func (n *Notifier) environment(ctx context.Context, t *Target, environment string,
	known map[string]store.Notification) error {
	now := n.Hub.Now()
	releases, err := n.Hub.Store().Releases(ctx, state.In(environment), maxReleases)
	if err != nil {
		return err
	}
	begin := t.Name + "/begin/" + environment
	if _, begun := known[begin]; !begun {
		return n.begin(ctx, t, begin, releases)
	}
	for _, h := range eventsOf(releases, now.Add(-oldest)) {
		if !t.takes(h.event, environment) {
			continue
		}
		key := h.key(t)
		was, found := known[key]
		number := 1
		if found {
			if number = parseAttempt(was.Reference).next(was.At, now); number == 0 {
				continue
			}
		}
		if err := n.try(ctx, t, key, pointer(was, found), attempt{number: number},
			n.released(&h)); err != nil {
			return err
		}
	}
	for _, e := range []Event{Drifted, Stale, Conflicting} {
		if t.takes(e, environment) {
			if err := n.counted(ctx, t, e, environment, known); err != nil {
				return err
			}
		}
	}
	return nil
}

func pointer(n store.Notification, found bool) *store.Notification {
	if !found {
		return nil
	}
	return &n
}

// begin records the releases from before a target existed. The target gets no messages about them,
// nor about the end of their rollouts.
func (n *Notifier) begin(ctx context.Context, t *Target, key string, releases []api.Release) error {
	now := n.Hub.Now().Truncate(time.Millisecond)
	var more []store.Notification
	for _, r := range releases {
		for _, e := range []Event{Promoted, Completed, Failed} {
			h := releaseEvent{event: e, release: r}
			more = append(more,
				store.Notification{Key: h.key(t), At: now, Reference: attempt{state: before}.String()})
		}
	}
	_, err := n.Hub.Store().AddNotification(ctx,
		store.Notification{Key: key, At: now, Reference: "begun"}, more...)
	return err
}

// released returns the message about an event of a release.
func (n *Notifier) released(h *releaseEvent) *Message {
	r := h.release
	m := &Message{Event: h.event, Environment: r.Environment, Ring: r.Ring, At: h.at, Commit: r.Commit,
		Base: r.Base, Own: r.Own, Author: r.Author, Subject: r.Subject,
		Link: n.link("/rollouts/"+url.PathEscape(r.Environment), nil)}
	filter := state.Filter{Environments: state.In(r.Environment), Ring: r.Ring}
	m.Counts = n.counts(filter)
	switch h.event {
	case Completed:
		m.Seconds = int(h.at.Sub(r.Committed).Round(time.Second) / time.Second)
	case Failed:
		filter.States = []state.State{state.Failed}
		n.first(m, filter)
	}
	return m
}

func (n *Notifier) counts(f state.Filter) api.Counts {
	var all state.Tally
	for _, g := range n.Hub.Fleet().Count(f, state.ByEnvironment) {
		all.Add(&g.Tally)
	}
	return api.CountsOf(&all)
}

// maxNames is how many clusters a message names.
const maxNames = 5

// first sets the number of clusters that match a filter, and the names of the first ones.
func (n *Notifier) first(m *Message, f state.Filter) {
	last := ""
	var workloads [][]string // of the first clusters
	n.Hub.Fleet().List(f, state.Position{}, func(r state.Row) bool {
		if r.Cluster != last { // they are sorted by cluster
			last = r.Cluster
			m.Clusters++
			if len(m.First) < maxNames {
				m.First, workloads = append(m.First, r.Cluster), append(workloads, nil)
			}
		}
		if at := m.Clusters - 1; at < len(workloads) && !slices.Contains(workloads[at], r.Workload) {
			workloads[at] = append(workloads[at], r.Workload)
		}
		return true
	})
	if m.Event == Stale {
		return
	}
	for i, names := range workloads {
		m.First[i] += " (" + strings.Join(names[:min(len(names), maxNames)], ", ") + ")"
	}
}

func (n *Notifier) link(path string, query url.Values) string {
	if n.URL == "" {
		return ""
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return n.URL + path
}

// The times of counted events. The count must be above zero for settle, so that one message covers
// all of the event. It must be zero for gone before the next event starts. Another message follows
// after again if the count has doubled.
const (
	settle = time.Minute
	gone   = 15 * time.Minute
	again  = 15 * time.Minute
)

// counted sends a message if assignments have drifted, clusters are stale, or two clusters share a
// name. It sends one message when the event begins, and one each time that the count has doubled.
func (n *Notifier) counted(ctx context.Context, t *Target, e Event, environment string,
	known map[string]store.Notification) error {
	now := n.Hub.Now()
	m := &Message{Event: e, Environment: environment, At: now,
		Counts: n.counts(state.Filter{Environments: state.In(environment)})}
	count, detail := n.seen(m)
	key := strings.Join([]string{t.Name, string(e), environment}, "/")
	was, found := known[key]
	lasts := n.lasts(key, count > 0, now)
	if count == 0 {
		if found && lasts >= gone {
			_, err := n.Hub.Store().RemoveNotification(ctx, was)
			return err
		}
		return nil
	}
	a := attempt{number: 1, count: count, began: now.UnixMilli()}
	if found {
		of := parseAttempt(was.Reference)
		switch more := (of.state == sent || of.state == gaveUp) && count >= 2*of.count &&
			now.Sub(was.At) >= again; {
		case of.next(was.At, now) > 0:
			a.number, a.began = of.next(was.At, now), of.began
		case !more:
			return nil
		}
	} else if lasts < settle {
		return nil
	}
	detail()
	return n.try(ctx, t, key, pointer(was, found), a, m)
}

// seen returns the count of a message's event, and a function that sets the details of the message.
func (n *Notifier) seen(m *Message) (count int, detail func()) {
	if m.Event == Conflicting {
		names := n.Hub.Fleet().Conflicts(m.Environment)
		return len(names), func() {
			m.Clusters, m.First = len(names), names[:min(len(names), maxNames)]
			m.Link = n.link("/clusters/"+url.PathEscape(m.Environment)+"/"+url.PathEscape(names[0]), nil)
		}
	}
	of := map[Event]state.State{Drifted: state.Drifted, Stale: state.Stale}[m.Event]
	return m.Counts.Of(of), func() {
		m.Link = n.link("/running", url.Values{"environment": {m.Environment}, "state": {of.String()}})
		n.first(m, state.Filter{Environments: state.In(m.Environment), States: []state.State{of}})
	}
}

// lasts returns how long an event has lasted, or how long it has been over.
func (n *Notifier) lasts(key string, is bool, now time.Time) time.Duration {
	if !is {
		key += "/gone"
	}
	other := strings.TrimSuffix(key, "/gone")
	if is {
		other = key + "/gone"
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.since, other)
	if n.since[key].IsZero() {
		n.since[key] = now
	}
	return now.Sub(n.since[key])
}
