package state

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// DesiredState is the state that an environment's GitOps branch wants of its clusters, now and in
// earlier commits.
type DesiredState struct {
	Environment string
	// Repository, Branch and Path are the location of the tree. Mirrors are other URLs from which
	// clusters may pull it.
	Repository, Branch, Path string
	Mirrors                  []string `json:",omitempty"`
	// StaleAfter is the maximum age of a cluster's last contact, by the platform's policy; 0 means
	// the hub's own limit.
	StaleAfter time.Duration
	// Min and MaxFailed define which part of a rollout must be healthy, by the platform's policy.
	Min       string
	MaxFailed int
	Older     bool     // there are commits before those below
	Commits   []Commit // newest first; the first one has these Folders and Clusters
	Folders   []Folder // sorted by name
	// Clusters are the clusters that the platform lists, sorted by name.
	Clusters []Cluster
}

// Commit is a commit of a GitOps branch.
type Commit struct {
	ID      string    `json:"id"`
	Time    time.Time `json:"time"`
	Author  string    `json:"author,omitempty"`
	Subject string    `json:"subject,omitempty"`
	// Rings has the content of each ring; one without a name if there are no rings.
	Rings []Ring `json:"rings,omitempty"`
	// Was has the digests of this commit that differ from those in the next newer commit, by Key. A
	// digest is "" if this commit lacks the content. The digests come from the records.
	Was map[string]string `json:"was,omitempty"`
	// Edited has the digests in the commit's tree that differ from its record, by Key. They differ,
	// for example, if somebody edited generated files by hand. A digest is "" if the tree lacks the
	// content.
	Edited map[string]string `json:"edited,omitempty"`
	// Effect has the changes of the commit on clusters, by its record and the one before. It is nil
	// if they are not known, and for commits that are not the newest release of any ring.
	Effect *Effect `json:"effect,omitempty"`
}

// Effect counts the changes of a commit on clusters, in pairs of a deployment target and a cluster.
// A cluster type that lists no clusters counts as one.
type Effect struct {
	Removed     int `json:"removed"`
	RemovedFrom int `json:"removedFrom"` // clusters
	Added       int `json:"added"`
	Changed     int `json:"changed"`
	Emptied     int `json:"emptied"` // clusters that are left without assignments
}

// Ring is a ring with the commits from which it was compiled.
type Ring struct {
	Name string `json:"name,omitempty"`
	Base string `json:"base"` // S
	Own  string `json:"own"`  // E
	// BaseTime and OwnTime are when S and E were committed, or the zero Time if that is not known.
	BaseTime time.Time `json:"baseTime,omitzero"`
	OwnTime  time.Time `json:"ownTime,omitzero"`
}

// Folder is the folder of a cluster type, or of a class of its clusters.
type Folder struct {
	Name        string   `json:"name"`
	ClusterType string   `json:"clusterType"`
	Ring        string   `json:"ring,omitempty"`
	Base        string   `json:"base"` // S, the commit from which it was compiled
	Targets     []Target `json:"targets"`
	// Listed means that the platform lists the clusters, and that each of them must report.
	// Otherwise the folder counts as one cluster, in the worst reported state.
	Listed bool `json:"listed,omitempty"`
}

// Target is a deployment target in a folder.
type Target struct {
	Name string `json:"name"` // the full name
	// Label is the name as the value of a label, which is shorter; "" if it is the same. Objects of
	// Fleet name their assignment only in labels.
	Label     string `json:"label,omitempty"`
	Workload  string `json:"workload"`
	Workspace string `json:"workspace,omitempty"`
	Version   string `json:"version,omitempty"`
	// VersionFrom is the source of a derived Version; "" if the platform names it.
	VersionFrom string `json:"versionFrom,omitempty"`
	Backend     string `json:"backend,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Digest      string `json:"digest"` // git's id of the folder
	// Object is the reconciler's object that applies the folder. Objects are the objects that apply
	// it to one cluster each, with the name of the cluster.
	Object  string            `json:"object,omitempty"`
	Objects map[string]string `json:"objects,omitempty"`
}

// Cluster is a cluster that the platform lists.
type Cluster struct {
	Name   string `json:"name"`
	Folder string `json:"folder"`
	// Entry is the digest of the cluster's own entry; "" if the cluster pulls the folder itself.
	Entry string `json:"entry,omitempty"`
}

// Key is the key of a deployment target's folder in Commit.Was.
func Key(folder, target string) string { return folder + "/" + target }

// EntryKey is the key of a cluster's entry in Commit.Was. No folder of a cluster type begins
// with a dot.
func EntryKey(cluster string) string { return ".entry/" + cluster }

// Folder returns the folder with a name, or nil if it does not exist.
func (w *DesiredState) Folder(name string) *Folder {
	i, found := slices.BinarySearchFunc(w.Folders, name,
		func(f Folder, name string) int { return strings.Compare(f.Name, name) })
	if !found {
		return nil
	}
	return &w.Folders[i]
}

// Cluster returns the cluster with a name, or nil if it does not exist.
func (w *DesiredState) Cluster(name string) *Cluster {
	i, found := slices.BinarySearchFunc(w.Clusters, name,
		func(c Cluster, name string) int { return strings.Compare(c.Name, name) })
	if !found {
		return nil
	}
	return &w.Clusters[i]
}

// target returns the deployment target with a name, or nil if it does not exist or f is nil.
func (f *Folder) target(name string) *Target {
	if f == nil {
		return nil
	}
	i, found := slices.BinarySearchFunc(f.Targets, name,
		func(t Target, name string) int { return strings.Compare(t.Name, name) })
	if !found {
		return nil
	}
	return &f.Targets[i]
}

// IndexOf returns the place of a commit in Commits, or -1 if it is not among them.
func (w *DesiredState) IndexOf(commit string) int {
	return slices.IndexFunc(w.Commits, func(c Commit) bool { return c.ID == commit })
}

// DigestAt returns the digest of a commit under a key, given its place in Commits, or "" if it has
// no such digest.
func (w *DesiredState) DigestAt(place int, key string) string {
	if digest, edited := w.Commits[place].Edited[key]; edited {
		return digest
	}
	for ; place > 0; place-- {
		if digest, differs := w.Commits[place].Was[key]; differs {
			return digest
		}
	}
	return w.Digest(key)
}

// Digest returns the wanted digest under a key, or "" if it does not exist. It comes from the
// newest record, even if somebody has edited the files.
func (w *DesiredState) Digest(key string) string {
	if name, isEntry := strings.CutPrefix(key, ".entry/"); isEntry {
		if c := w.Cluster(name); c != nil {
			return c.Entry
		}
		return ""
	}
	folder, target, _ := strings.Cut(key, "/")
	if t := w.Folder(folder).target(target); t != nil {
		return t.Digest
	}
	return ""
}

// Recorded reports whether the record of any of the commits has a digest under a key.
func (w *DesiredState) Recorded(key, digest string) bool {
	return w.Digest(key) == digest || slices.ContainsFunc(w.Commits, func(c Commit) bool {
		was, differs := c.Was[key]
		return differs && was == digest
	})
}

// byHand returns the digests of commits that no record ever had, by key. It returns nil if there
// are no such digests.
func (w *DesiredState) byHand() map[string][]string {
	var out map[string][]string
	for i := range w.Commits {
		for key, digest := range w.Commits[i].Edited {
			if slices.Contains(out[key], digest) || w.Recorded(key, digest) {
				continue
			}
			if out == nil {
				out = map[string][]string{}
			}
			out[key] = append(out[key], digest)
		}
	}
	return out
}

// Bound limits the texts so that a database can store them. It cuts versions, authors and subjects,
// which may be any text, if they are too long. It returns an error if a name cannot be stored.
func (w *DesiredState) Bound() error {
	for i := range w.Commits {
		c := &w.Commits[i]
		c.Author, c.Subject = bounded(c.Author), bounded(c.Subject)
	}
	for i := range w.Folders {
		f := &w.Folders[i]
		names := []string{w.Environment, f.Name, f.ClusterType, f.Ring, f.Base}
		for j := range f.Targets {
			t := &f.Targets[j]
			t.Version, t.VersionFrom = bounded(t.Version), bounded(t.VersionFrom)
			names = append(names, t.Name, t.Workload, t.Digest)
		}
		if at := slices.IndexFunc(names, func(name string) bool { return !storable(name) }); at >= 0 {
			return fmt.Errorf("the record of environment %.100q has a name that is longer than %d bytes, "+
				"or has a NUL or what is not UTF-8, in folder %.100q: %.100q", w.Environment, longest, f.Name,
				names[at])
		}
	}
	for _, c := range w.Clusters {
		if !storable(c.Name, c.Entry) {
			return fmt.Errorf("the record of environment %.100q has a cluster whose name is longer than "+
				"%d bytes, or has a NUL or what is not UTF-8: %.100q", w.Environment, longest, c.Name)
		}
	}
	return nil
}

// bounded returns a text if a database can store it, and otherwise its beginning and a digest of
// it. Different texts therefore stay different.
func bounded(text string) string {
	if storable(text) {
		return text
	}
	const beginning = 200
	start := strings.ToValidUTF8(strings.ReplaceAll(text[:min(len(text), beginning)], "\x00", ""), "")
	return fmt.Sprintf("%s… (%d bytes, SHA-256 %x)", start, len(text), sha256.Sum256([]byte(text)))
}

// Same reports whether two DesiredStates have the same commit of the same branch, the same policy
// and the same edits.
func (w *DesiredState) Same(other *DesiredState) bool {
	return w.Repository == other.Repository && w.Branch == other.Branch && w.Path == other.Path &&
		slices.Equal(w.Mirrors, other.Mirrors) && w.StaleAfter == other.StaleAfter &&
		w.Min == other.Min && w.MaxFailed == other.MaxFailed &&
		len(w.Commits) > 0 && len(other.Commits) > 0 && w.Commits[0].ID == other.Commits[0].ID &&
		maps.Equal(w.Commits[0].Edited, other.Commits[0].Edited)
}
