package state

import "time"

// Clusters counts the clusters of an environment: of which there is news, whose news is too old,
// and of which there never was any.
func (f *Fleet) Clusters(environment string) (heard, stale, never int) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	e := f.environments[environment]
	if e == nil {
		return 0, 0, 0
	}
	for _, c := range e.clusters {
		switch {
		case c.heard.last.IsZero():
			never++
		case c.stale:
			stale++
		default:
			heard++
		}
	}
	return heard, stale, never
}

// News is the last news of a cluster.
type News struct {
	Cluster string
	Last    time.Time // zero for none
	By      string
	// Environments are those that have the cluster.
	Environments []string
}

// News returns the last news of a cluster; false where no environment has it.
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

// Heard is what is kept of the last news of a cluster.
type Heard struct {
	Cluster        string
	Last, Snapshot time.Time // of any news, and of the last snapshot, by the reporter's clock
	Digest, By     string    // of that snapshot, "" where its items are needed again; who reported last
	Partial        bool      // that snapshot had items that were no assignments of the cluster
	// UID is that of the last snapshot that had one, and Before the other one that was there
	// before. Conflict is when the one last came after the other that had come after it, by the
	// hub's clock: two clusters have the name then.
	UID, Before string
	Conflict    time.Time
}

// conflictHolds is how long two clusters of one name are a problem after they last took turns.
const conflictHolds = time.Hour

// Problem returns why what is known of a cluster may be of another one; "" for no reason.
func (h *Heard) Problem() string {
	if h.Conflict.IsZero() || h.Last.Sub(h.Conflict) > conflictHolds {
		return ""
	}
	return "two clusters report as " + h.Cluster + " in turns, last at " + h.Conflict.UTC().Format(time.RFC3339) +
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
		if is := c.heard.of(c.name); is.Problem() != "" {
			out = append(out, c.name)
		}
	}
	return out
}

// Heard returns the last news of a cluster.
func (f *Fleet) Heard(cluster string) Heard {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.seen[cluster].of(cluster)
}

func (h *heard) of(cluster string) Heard {
	if h == nil {
		return Heard{Cluster: cluster}
	}
	return Heard{cluster, h.last, h.snapshot, h.digest, h.by, h.partial, h.uid, h.before, h.conflict}
}
