package gate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/forge"
)

// statuses reports, for each status gate, whether its statuses exist and are success.
func statuses(p Policy, f CommitFacts) []Verdict {
	var vs []Verdict
	for _, gates := range p.Gates {
		for _, g := range gates.Status {
			if f.EnvironmentOnly {
				vs = append(vs, p.notAsked(g.Name, OwnFiles)...)
				continue
			}
			vs = append(vs, status(g, f).verdict(g.Name))
		}
	}
	return vs
}

func status(g model.StatusGate, f CommitFacts) answer {
	if !f.StatusesKnown {
		return answer{State: Pending,
			reason: "the statuses of " + git.Short(f.Commit) + " are not known; wanted is " + g.Name}
	}
	var parts []answer
	var others []string
	said := newest(f.Statuses, g.Name)
	for _, name := range slices.Sorted(maps.Keys(said)) {
		counted := slices.DeleteFunc(slices.Clone(said[name]), func(s forge.Status) bool {
			return len(g.By) > 0 && !slices.Contains(g.By, s.By)
		})
		if len(counted) == 0 {
			others = append(others, byOthers(said[name], g.By))
		}
		for _, s := range counted {
			parts = append(parts, word(s))
		}
	}
	if len(parts) > 0 {
		whole := all(parts)
		if len(others) > 0 {
			whole.reason += "; " + list(others, "; ")
		}
		return whole
	}
	if len(others) > 0 {
		return answer{State: Pending, reason: list(others, "; ")}
	}
	return answer{State: Pending,
		reason: fmt.Sprintf("no status %s on %s", g.Name, git.Short(f.Commit)) + wantedBy(g.By)}
}

// newest returns the newest statuses of each reporter with a name that matches, by name,
// and sorted by reporter. Of two of the same time, as clocks of forges know seconds only,
// failure counts, then success: pending comes before its end.
func newest(statuses []forge.Status, pattern string) map[string][]forge.Status {
	type author struct{ name, by string }
	last := map[author]forge.Status{}
	for _, s := range statuses {
		if !matches(pattern, s.Name) {
			continue
		}
		if rank(s.State) < 0 {
			s.State = forge.Pending
		}
		key := author{s.Name, s.By}
		old, found := last[key]
		if !found || s.At.After(old.At) || s.At.Equal(old.At) && rank(s.State) > rank(old.State) {
			last[key] = s
		}
	}
	said := map[string][]forge.Status{}
	for key, s := range last {
		said[key.name] = append(said[key.name], s)
	}
	for _, s := range said {
		slices.SortFunc(s, func(a, b forge.Status) int { return strings.Compare(a.By, b.By) })
	}
	return said
}

func rank(s forge.State) int {
	return slices.Index([]forge.State{forge.Pending, forge.Success, forge.Failure}, s)
}

// matches reports whether a name matches a pattern, in which * matches any text.
func matches(pattern, name string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == name
	}
	name, found := strings.CutPrefix(name, head)
	if !found {
		return false
	}
	parts := strings.Split(rest, "*")
	tail := parts[len(parts)-1]
	for _, part := range parts[:len(parts)-1] {
		_, after, found := strings.Cut(name, part)
		if !found {
			return false
		}
		name = after
	}
	return strings.HasSuffix(name, tail)
}

// word returns the answer for one status.
func word(s forge.Status) answer {
	a := answer{State: Pending, since: s.At,
		reason: printable(s.Name) + " is " + string(forge.Pending)}
	switch s.State {
	case forge.Success:
		a.State, a.reason = Passed, printable(s.Name)+" is success"
	case forge.Failure:
		a.State, a.reason = Blocked, printable(s.Name)+" is failure, and has to be success"
	}
	if s.By != "" {
		a.reason += ", by " + printable(s.By)
	}
	return a
}

// byOthers returns a message if only authors that do not count have set a status. It returns ""
// otherwise.
func byOthers(said []forge.Status, wanted []string) string {
	s := said[0]
	if i := slices.IndexFunc(said,
		func(s forge.Status) bool { return s.State == forge.Success }); i >= 0 {
		s = said[i]
	}
	by := printable(s.By)
	if by == "" {
		by = "somebody unknown"
	}
	return fmt.Sprintf("%s is %s, but was set by %s, not by %s", printable(s.Name), s.State, by,
		list(wanted, " or "))
}

func wantedBy(by []string) string {
	if len(by) == 0 {
		return ""
	}
	return " by " + list(by, " or ")
}
