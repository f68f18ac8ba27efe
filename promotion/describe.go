package promotion

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/kalypso-io/kalypso/compiler/compare"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/gate"
)

// describe writes title and body of the change request that proposes a step. Of the
// body, details go first where the forge allows no more.
func (m *maker) describe(st *stop, step *Step) {
	limits := st.out.repository.forge.Limits()
	step.Title = clip(m.title(st, step), limits.Title)
	step.Body = within(limits.Body, m.head(st, step), m.reproduce(st, step), step.prepared.report, m.state.platform.subject.Form())
}

// within is a body of so many characters at most; 0 is no limit.
func within(limit int, head, tail string, r *compare.Report, form Form) string {
	for _, most := range []int{200, 50, 10, 0} {
		body := head + details(r, most, form) + tail
		if limit == 0 || utf8.RuneCountInString(body) <= limit {
			return body
		}
	}
	return clip(head, limit-utf8.RuneCountInString(tail)-2) + "\n\n" + tail
}

// marker begins the body of kalypso's change requests, for programs.
type marker struct {
	Environment string        `json:"environment"`
	Ring        string        `json:"ring,omitempty"`
	Base        tree.Revision `json:"base"`
	Own         tree.Revision `json:"own"`
	Tree        tree.ID       `json:"tree"`
}

func (m *maker) head(st *stop, step *Step) string {
	var b strings.Builder
	about, _ := json.Marshal(marker{st.stage.Name, st.ringName(), step.Source.Base, step.Source.Environment, step.Tree}) //nolint:errcheck // nothing in it fails
	fmt.Fprintf(&b, "<!-- kalypso:promotion v1 %s -->\n", about)
	fmt.Fprintf(&b, "### %s\n\n", markdown(step.Title))
	fmt.Fprintln(&b, m.path(st, step))
	fmt.Fprintln(&b)
	m.commits(&b, st, step)
	form := m.state.platform.subject.Form()
	changes(&b, step, form)
	fmt.Fprintf(&b, "**Risk**: %s\n\n", risk(step.Change, form))
	verdicts(&b, step.Verdicts)
	return b.String()
}

// path shows where the commit was, and where it goes.
func (m *maker) path(st *stop, step *Step) string {
	var parts []string
	for _, up := range m.state.upstream(st) {
		has := up.has()
		text := up.id() + " " + has.Base.Short()
		if has.Base != step.Source.Base && has.Base != "" {
			text += " (newer)"
		}
		parts = append(parts, "`"+text+"`")
	}
	from := "nothing"
	if has := st.has(); has.Base != "" {
		from = has.Base.Short()
	}
	parts = append(parts, fmt.Sprintf("**%s** `%s` → `%s`", st.id(), from, step.Source.Base.Short()))
	return strings.Join(parts, " → ")
}

// mostCommits is how many commits a body lists.
const mostCommits = 20

// commits lists what comes with the step.
func (m *maker) commits(b *strings.Builder, st *stop, step *Step) {
	all, _, err := m.state.platform.bases.until(st.has().Base.Hash())
	if err != nil || step.Kind != Promote {
		return
	}
	first := slices.IndexFunc(all, func(c source.Base) bool { return tree.RevisionOf(c.Commit) == step.Source.Base })
	if first < 0 {
		return
	}
	all = all[first:]
	if n := len(all); n > 0 && tree.RevisionOf(all[n-1].Commit) == st.has().Base {
		all = all[:n-1]
	}
	authors := map[string]bool{}
	for _, c := range all {
		authors[c.Author] = true
	}
	fmt.Fprintf(b, "%s by %s:\n\n", count(len(all), "commit"), count(len(authors), "author"))
	for _, c := range all[:min(len(all), mostCommits)] {
		fmt.Fprintf(b, "- `%s` %s (%s)\n", git.Short(c.Commit), markdown(clip(firstLine(c.Message), mostText)), markdown(clip(c.Author, mostText)))
	}
	if len(all) > mostCommits {
		fmt.Fprintf(b, "- and %d more\n", len(all)-mostCommits)
	}
	fmt.Fprintln(b)
}

// mostGroups is how many kinds of change a table has.
const mostGroups = 20

// changes is the table of what differs, equal changes as one.
func changes(b *strings.Builder, step *Step, form Form) {
	r := step.prepared.report
	if r == nil {
		return
	}
	what := "Assignments"
	if form.Targets {
		what = "Targets"
	}
	fmt.Fprintf(b, "%s: %s\n\n", what, compare.Summary(r))
	rows := len(r.Groups) + len(r.Assignments.Added) + len(r.Assignments.Removed)
	if rows == 0 {
		return
	}
	if form.Targets {
		fmt.Fprint(b, "| Change | Targets | Names |\n|---|---|---|\n")
	} else {
		fmt.Fprint(b, "| Change | Assignments | Cluster types |\n|---|---|---|\n")
	}
	row := func(what string, ids []string) {
		types := map[string]int{}
		for _, id := range ids {
			types[clusterTypeOf(id)]++
		}
		var names []string
		for _, name := range slices.Sorted(maps.Keys(types)) {
			if !form.Targets {
				name = fmt.Sprintf("%s (%d)", name, types[name])
			}
			names = append(names, name)
		}
		fmt.Fprintf(b, "| %s | %d | %s |\n", what, len(ids), list(names, 8))
	}
	if a := r.Assignments.Added; len(a) > 0 {
		row("new "+form.unit()+"s", a)
	}
	if a := r.Assignments.Removed; len(a) > 0 {
		row("removed "+form.unit()+"s", a)
	}
	for i := range r.Groups[:min(len(r.Groups), mostGroups)] {
		g := &r.Groups[i]
		if len(g.Assignments) > 0 {
			row(summarize(g), g.Assignments)
		}
	}
	if len(r.Groups) > mostGroups {
		fmt.Fprintf(b, "| %d more changes | | |\n", len(r.Groups)-mostGroups)
	}
	fmt.Fprintln(b)
}

// mostText is how much of a text of others a body shows, in characters.
const mostText = 120

// mostValue is how much of a value a table shows, in characters.
const mostValue = 60

// summarize says a group of changes in a cell of a table.
func summarize(g *compare.Group) string {
	where := g.File
	if g.Object != nil {
		where = g.Object.Kind + " " + g.Object.Name
	}
	what := markdown(clip(where, mostText))
	if g.Path != "" {
		what += " " + code(clip(g.Path, mostText))
	}
	switch g.Kind {
	case compare.Added:
		return what + " added" + value(": ", g.To)
	case compare.Removed:
		return what + " removed" + value(": ", g.From)
	case compare.Changed, compare.Mode:
		return what + value(" ", g.From) + " →" + value(" ", g.To)
	case compare.Reordered:
		return what + " in another order"
	}
	return what + " changed"
}

func value(before string, v json.RawMessage) string {
	if v == nil {
		return ""
	}
	return before + code(clip(string(v), mostValue))
}

// risk names what people want to look at twice.
func risk(c *gate.Change, form Form) string {
	var parts []string
	deleted := 0
	for _, n := range c.Deleted {
		deleted += n
	}
	parts = append(parts, count(deleted, "deletion"))
	if n := c.Deleted["Namespace"]; n > 0 {
		parts = append(parts, fmt.Sprintf("**%s deleted, with everything in them**", count(n, "namespace")))
	}
	touched := func(kinds ...string) int {
		n := 0
		for _, kind := range kinds {
			n += c.Created[kind] + c.Updated[kind] + c.Deleted[kind]
		}
		return n
	}
	parts = append(parts, count(touched("CustomResourceDefinition"), "CRD change"), count(touched("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "ServiceAccount"), "RBAC change"))
	if c.Errors > 0 {
		parts = append(parts, fmt.Sprintf("**%s with errors**", count(c.Errors, form.unit())))
	}
	if c.Kept > 0 {
		parts = append(parts, fmt.Sprintf("**%s kept as they were**", count(c.Kept, "folder")))
	}
	return strings.Join(parts, ", ")
}

func verdicts(b *strings.Builder, vs []gate.Verdict) {
	if len(vs) == 0 {
		fmt.Fprint(b, "**Gates**: none\n\n")
		return
	}
	fmt.Fprint(b, "| Gate | | |\n|---|---|---|\n")
	for _, v := range vs {
		name := v.Gate
		if v.Name != "" {
			name += " " + v.Name
		}
		state := string(v.State)
		reason := markdown(v.Reason)
		switch {
		case v.Skipped != "":
			state = "🚨 **passed over**: " + markdown(v.Skipped)
		case v.Gate == "approvals" || v.Gate == "http": // others answer it, again and again
			state, reason = "asked", "the status `"+gatesStatus+"` has the answer"
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", markdown(name), state, reason)
	}
	fmt.Fprintln(b)
}

// details is the whole of some changes, folded.
func details(r *compare.Report, most int, form Form) string {
	if r == nil || most == 0 || len(r.Groups) == 0 {
		return ""
	}
	part := *r
	part.Groups = r.Groups[:min(len(r.Groups), most)]
	var text strings.Builder
	if err := compare.WriteText(&text, &part, compare.TextOptions{Unit: form.unit()}); err != nil {
		return ""
	}
	title := "All changes"
	if len(part.Groups) < len(r.Groups) {
		title = fmt.Sprintf("The first %d of %d changes", len(part.Groups), len(r.Groups))
	}
	return "<details><summary>" + title + "</summary>\n\n" + fenced(text.String()) + "\n</details>\n\n"
}

// fenced is a block of code, whatever is in it.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "diff\n" + strings.TrimRight(text, "\n") + "\n" + fence + "\n"
}

func (m *maker) reproduce(st *stop, step *Step) string {
	return fmt.Sprintf("Reproduce: `kalypso verify --env %s --head %s`\n", st.stage.Name, st.promotionBranch())
}
