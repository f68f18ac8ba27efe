// Package question checks the names in a question to a hub: unknown names, and commits that are cut
// short.
package question

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/internal/spelling"
)

// UnknownError is the error for an unknown name.
type UnknownError struct{ What, Name, Hint string }

func (e *UnknownError) Error() string {
	text := fmt.Sprintf("there is no %s %s", e.What, printable(e.Name))
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}

// printable returns a name for use in errors. It quotes the name if it contains invisible
// characters.
func printable(name string) string {
	const longest = 200
	name = strings.ToValidUTF8(name, "\uFFFD")
	if len(name) > longest {
		name = strings.ToValidUTF8(name[:longest], "") + "..."
	}
	if quoted := fmt.Sprintf("%+q", name); name == "" || strings.ContainsRune(quoted, '\\') {
		return quoted
	}
	return name
}

// AmbiguousError is the error if several names match a part of a name.
type AmbiguousError struct {
	What, Name string
	Names      []string
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%s %s is ambiguous: there are %s", e.What, printable(e.Name),
		strings.Join(e.Names[:min(len(e.Names), maxNames)], ", "))
}

// maxNames limits the names in an error.
const maxNames = 5

// Environment returns an error if a platform has no environment with a name. It returns nil for "".
// sees reports whether the caller may see an environment: the error names no other.
func Environment(fleet *state.Fleet, name string, sees func(string) bool) error {
	all := fleet.Names()
	if name == "" || slices.Contains(all, name) {
		return nil
	}
	return &UnknownError{"environment", name, spelling.DidYouMean(name,
		slices.DeleteFunc(all, func(other string) bool { return !sees(other) }))}
}

// Resolve returns a filter with full names instead of parts. A part is the beginning of a commit
// that some ring has or had, with at least 7 digits as in git, or a class without its cluster type.
func Resolve(fleet *state.Fleet, f state.Filter) (_ state.Filter, err error) {
	if prefix := strings.ToLower(f.Base); len(prefix) >= leastDigits && !isWhole(prefix) &&
		strings.Trim(prefix, "0123456789abcdef") == "" {
		f.Base, err = one("commit", f.Base, bases(fleet, f.Environments),
			func(id string) bool { return strings.HasPrefix(id, prefix) })
	}
	if names := classes(fleet, f.Environments); f.Class != "" && err == nil &&
		!slices.Contains(names, f.Class) {
		// The cluster type has no dot in its name.
		f.Class, err = one("class", f.Class, names, func(folder string) bool {
			_, class, _ := strings.Cut(folder, ".")
			return class == f.Class
		})
	}
	return f, err
}

// leastDigits is the minimum number of digits of a commit.
const leastDigits = 7

// one returns the only name that a function accepts, or the given name if it accepts none.
func one(what, name string, all []string, meant func(string) bool) (string, error) {
	found := slices.DeleteFunc(all, func(other string) bool { return !meant(other) })
	switch len(found) {
	case 0:
		return name, nil
	case 1:
		return found[0], nil
	}
	return name, &AmbiguousError{what, name, found}
}

// bases returns the platform's commits that rings of some environments have or had, sorted.
func bases(fleet *state.Fleet, of state.Environments) []string {
	return namesOf(fleet, of, func(w *state.DesiredState, add func(string)) {
		for _, c := range w.Commits {
			for _, r := range c.Rings {
				add(r.Base)
			}
		}
		for i := range w.Folders {
			add(w.Folders[i].Base)
		}
	})
}

// namesOf returns the names that a function adds for the wanted state of some environments, sorted.
func namesOf(fleet *state.Fleet, of state.Environments,
	each func(w *state.DesiredState, add func(string))) []string {
	seen := map[string]bool{}
	var out []string
	for _, w := range fleet.Environments() {
		if of.Has(w.Environment) {
			each(w, func(name string) {
				if name != "" && !seen[name] {
					seen[name] = true
					out = append(out, name)
				}
			})
		}
	}
	slices.Sort(out)
	return out
}

// folders is namesOf for each folder.
func folders(fleet *state.Fleet, of state.Environments,
	each func(fo *state.Folder, add func(string))) []string {
	return namesOf(fleet, of, func(w *state.DesiredState, add func(string)) {
		for i := range w.Folders {
			each(&w.Folders[i], add)
		}
	})
}

func classes(fleet *state.Fleet, of state.Environments) []string {
	return folders(fleet, of, func(fo *state.Folder, add func(string)) { add(fo.Name) })
}

// targets is namesOf for each deployment target.
func targets(fleet *state.Fleet, of state.Environments, name func(*state.Target) string) []string {
	return folders(fleet, of, func(fo *state.Folder, add func(string)) {
		for i := range fo.Targets {
			add(name(&fo.Targets[i]))
		}
	})
}

// maxClusters is the maximum number of clusters among which a similar name is searched.
const maxClusters = 10_000

func clusters(fleet *state.Fleet, of state.Environments) []string {
	return namesOf(fleet, of, func(w *state.DesiredState, add func(string)) {
		for i := range w.Clusters[:min(len(w.Clusters), maxClusters)] {
			add(w.Clusters[i].Name)
		}
	})
}

// Names checks the names of a filter that selects nothing. If a name is unknown and may exist
// later, Names returns a warning, and otherwise an error. Clusters of a cluster type without a list
// of clusters may report later. In environments without a promotion, any name may exist later.
func Names(fleet *state.Fleet, f state.Filter) (warning string, err error) {
	for _, part := range []struct {
		what, name string
		later      bool
		known      func() []string
	}{
		{"ring", f.Ring, false, func() []string {
			return namesOf(fleet, f.Environments, func(w *state.DesiredState, add func(string)) {
				for i := range w.Folders {
					add(w.Folders[i].Ring)
				}
				if len(w.Commits) > 0 {
					for _, r := range w.Commits[0].Rings {
						add(r.Name)
					}
				}
			})
		}},
		{"cluster type", f.ClusterType, false, func() []string {
			return folders(fleet, f.Environments,
				func(fo *state.Folder, add func(string)) { add(fo.ClusterType) })
		}},
		{"class", f.Class, false, func() []string { return classes(fleet, f.Environments) }},
		{"workload", f.Workload, false, func() []string {
			return targets(fleet, f.Environments, func(t *state.Target) string { return t.Workload })
		}},
		{"workspace", f.Workspace, false, func() []string {
			return targets(fleet, f.Environments, func(t *state.Target) string { return t.Workspace })
		}},
		{"deployment target", f.Target, false, func() []string {
			return targets(fleet, f.Environments,
				func(t *state.Target) string { return t.Name })
		}},
		{"version", f.Version, true, func() []string {
			return targets(fleet, f.Environments, func(t *state.Target) string { return t.Version })
		}},
		{"commit", f.Base, isWhole(f.Base), func() []string { return bases(fleet, f.Environments) }},
		{"cluster", f.Cluster, anyUnlisted(fleet, f.Environments),
			func() []string { return filteredClusters(fleet, f) }},
	} {
		if part.name == "" {
			continue
		}
		names := part.known()
		if slices.Contains(names, part.name) {
			continue
		}
		unknown := &UnknownError{part.what, part.name, spelling.DidYouMean(part.name, names)}
		if part.what == "commit" { // commits are not similar to each other
			unknown.Hint = "give the first 7 digits, or more, of one of the platform that a ring has or had"
		}
		if part.later || !promoted(fleet, f.Environments) {
			warning = Join(warning, unknown.Error())
			continue
		}
		return "", unknown
	}
	return warning, nil
}

// Join joins two texts. Each may be "".
func Join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// filteredClusters returns the clusters of some environments, and the cluster of a filter if they
// have it.
func filteredClusters(fleet *state.Fleet, f state.Filter) []string {
	if news, there := fleet.News(f.Cluster); there &&
		slices.ContainsFunc(news.Environments, f.Environments.Has) {
		return []string{f.Cluster}
	}
	return clusters(fleet, f.Environments)
}

// isWhole reports whether a text may be all of a commit's id.
func isWhole(id string) bool { return len(id) == 40 || len(id) == 64 }

func promoted(fleet *state.Fleet, of state.Environments) bool {
	return slices.ContainsFunc(fleet.Environments(),
		func(w *state.DesiredState) bool { return of.Has(w.Environment) && len(w.Folders) > 0 })
}

func anyUnlisted(fleet *state.Fleet, of state.Environments) bool {
	return slices.ContainsFunc(fleet.Environments(), func(w *state.DesiredState) bool {
		return of.Has(w.Environment) &&
			slices.ContainsFunc(w.Folders, func(fo state.Folder) bool { return !fo.Listed })
	})
}

// Cluster returns a hint to a cluster with a name similar to an unknown one, or "" if no name is
// similar.
func Cluster(fleet *state.Fleet, of state.Environments, name string) string {
	if near := spelling.Meant(name, clusters(fleet, of)); near != "" {
		return "did you mean " + near + "?"
	}
	return ""
}

// Problem explains why the wanted state of some environments may be older than their branches. why
// returns the reason of one environment, and that of all environments for "". Problem returns "" if
// there is no reason.
func Problem(fleet *state.Fleet, sees func(string) bool,
	why func(environment string) string) string {
	if all := why(""); all != "" {
		return all
	}
	var out []string
	for _, name := range fleet.Names() {
		if reason := why(name); reason != "" && sees(name) {
			out = append(out, "environment "+name+": "+reason)
		}
	}
	return strings.Join(out, "; ")
}
