package plan

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
	"github.com/kalypso-io/kalypso/promotion/ledger"
	"github.com/kalypso-io/kalypso/promotion/message"
	"github.com/kalypso-io/kalypso/promotion/session"
	"github.com/kalypso-io/kalypso/promotion/subject"
)

// describe sets title and body of the change request that proposes a step. If the forge
// does not allow the whole body, the details are left out first.
func (m *maker) describe(st *session.Stage, step *Step) {
	limits := st.Environment.Repository.Forge.Limits()
	step.Title = message.Clip(m.title(st, step), limits.Title)
	step.Body = limitBody(limits.Body, m.head(st, step), m.reproduce(st, step), step.Prepared.report,
		m.state.Platform.Subject.Form())
}

// limitBody returns a body of at most a number of characters; 0 is not a limit.
func limitBody(limit int, head, tail string, r *compare.Report, form subject.Form) string {
	for _, most := range []int{200, 50, 10, 0} {
		body := head + details(r, most, form) + tail
		if limit == 0 || utf8.RuneCountInString(body) <= limit {
			return body
		}
	}
	return message.Clip(head, limit-utf8.RuneCountInString(tail)-2) + "\n\n" + tail
}

// marker begins the body of kalypso's change requests, for programs.
type marker struct {
	Environment string        `json:"environment"`
	Ring        string        `json:"ring,omitempty"`
	Base        tree.Revision `json:"base"`
	Own         tree.Revision `json:"own"`
	Tree        tree.ID       `json:"tree"`
}

// head returns the beginning of a body, which is never left out.
func (m *maker) head(st *session.Stage, step *Step) string {
	var b strings.Builder
	origin := marker{st.Policy.Name, st.RingName(), step.Source.Base, step.Source.Environment,
		step.Tree}
	encoded, _ := json.Marshal(origin) //nolint:errcheck // encoding it cannot fail
	fmt.Fprintf(&b, "<!-- kalypso:promotion v1 %s -->\n", encoded)
	fmt.Fprintf(&b, "### %s\n\n", message.Markdown(step.Title))
	fmt.Fprintln(&b, m.path(st, step))
	fmt.Fprintln(&b)
	m.commits(&b, st, step)
	form := m.state.Platform.Subject.Form()
	changes(&b, step, form)
	fmt.Fprintf(&b, "**Risk**: %s\n\n", risk(step.Change, form))
	verdicts(&b, step.Verdicts)
	return b.String()
}

// path describes the way of the commit: the stages that have it, and the stage that gets it.
func (m *maker) path(st *session.Stage, step *Step) string {
	var parts []string
	for _, up := range m.state.Upstream(st) {
		has := up.Has()
		text := up.ID() + " " + has.Base.Short()
		if has.Base != step.Source.Base && has.Base != "" {
			text += " (newer)"
		}
		parts = append(parts, "`"+text+"`")
	}
	from := "nothing"
	if has := st.Has(); has.Base != "" {
		from = has.Base.Short()
	}
	parts = append(parts, fmt.Sprintf("**%s** `%s` → `%s`", st.ID(), from, step.Source.Base.Short()))
	return strings.Join(parts, " → ")
}

// maxCommits is the largest number of commits that a body lists.
const maxCommits = 20

// commits writes the lists of base commits and of commits of own files that a step contains.
func (m *maker) commits(b *strings.Builder, st *session.Stage, step *Step) {
	m.bases(b, st, step)
	has := st.Has()
	if has == (tree.Source{}) || has.Environment == step.Source.Environment || step.Kind == RollBack {
		return
	}
	const most = 1000
	own, err := m.state.Platform.OwnCommits(st.Policy, has.Environment, step.Source.Environment, most)
	switch {
	case err != nil:
	case len(own) == most: // or the history does not have the older ones any more
		fmt.Fprintf(b, "%d commits or more to the environment's own files\n\n", most)
	default:
		listCommits(b, "to the environment's own files ", own, nil)
	}
}

func (m *maker) bases(b *strings.Builder, st *session.Stage, step *Step) {
	all, _, err := m.state.Platform.Bases.Until(st.Has().Base.Hash())
	if err != nil || step.Kind != Promote {
		return
	}
	first := slices.IndexFunc(all,
		func(c source.Base) bool { return tree.RevisionOf(c.Commit) == step.Source.Base })
	if first < 0 {
		return
	}
	all = all[first:]
	if n := len(all); n > 0 && tree.RevisionOf(all[n-1].Commit) == st.Has().Base {
		all = all[:n-1]
	}
	listCommits(b, "", all, m.marks(st, step, all))
}

// marks returns marks for the base commits of a step: rejected commits, and commits that others
// revert.
func (m *maker) marks(st *session.Stage, step *Step, all []source.Base) map[git.Hash]string {
	within, err := m.state.TakenBack(all)
	if err != nil {
		return nil
	}
	out := map[git.Hash]string{}
	for commit, by := range within {
		out[commit] = "taken back by `" + git.Short(by) + "`"
	}
	brings, err := m.state.Brings(st, step.Source.Base.Hash())
	if err != nil {
		return nil
	}
	for _, c := range brings {
		if !c.By.IsZero() {
			out[c.Commit] = "**taken back on " + message.Markdown(m.state.Platform.Branch) + " by `" +
				git.Short(c.By) + "`**"
		}
	}
	for _, c := range all {
		if o := st.Environment.Orders.Rejected[c.Commit]; o != nil {
			mark := "**rejected by " + message.Markdown(o.By) + ": " +
				message.Markdown(message.FirstLine(o.Reason)) + "**"
			if out[c.Commit] != "" {
				mark += ", " + out[c.Commit]
			}
			out[c.Commit] = mark
		}
	}
	return out
}

// listCommits writes a list of commits, newest first.
func listCommits(b *strings.Builder, to string, all []source.Base, marks map[git.Hash]string) {
	if len(all) == 0 && to != "" {
		return
	}
	authors := map[string]bool{}
	for _, c := range all {
		authors[c.Author] = true
	}
	fmt.Fprintf(b, "%s %sby %s:\n\n", message.Count(len(all), "commit"), to,
		message.Count(len(authors), "author"))
	for _, c := range all[:min(len(all), maxCommits)] {
		mark := marks[c.Commit]
		if mark != "" {
			mark = ": " + mark
		}
		fmt.Fprintf(b, "- `%s` %s (%s)%s\n", git.Short(c.Commit),
			message.Markdown(message.Clip(message.FirstLine(c.Message), maxText)),
			message.Markdown(message.Clip(c.Author, maxText)), mark)
	}
	if len(all) > maxCommits {
		fmt.Fprintf(b, "- and %d more\n", len(all)-maxCommits)
	}
	fmt.Fprintln(b)
}

// maxGroups is the largest number of kinds of change in a table.
const maxGroups = 20

// changes writes the table of changes on clusters, removals first. Equal changes share a row.
func changes(b *strings.Builder, step *Step, form subject.Form) {
	r := step.Prepared.report
	if r == nil {
		return
	}
	what := "Assignments"
	if form.Targets {
		what = "Targets"
	}
	fmt.Fprintf(b, "%s: %s\n\n", what, compare.Summary(r))
	var rows [][3]string
	add := func(what string, count int, names string) {
		rows = append(rows, [3]string{what, fmt.Sprint(count), names})
	}
	if c := r.Clusters; c != nil {
		for _, of := range []struct {
			ids  []string
			what string
		}{{c.Emptied, "left empty"}, {c.Unlisted, "no longer listed"}, {c.Listed, "new"}} {
			if len(of.ids) > 0 {
				add("**clusters "+of.what+"**", len(of.ids), names(of.ids))
			}
		}
	}
	entries := func(what string, all []compare.Entry) {
		for i := range all {
			e := &all[i]
			text := what + " " + message.Code(e.DeploymentTarget) + lost(e)
			if e.RenamedTo != "" {
				text += ", and created again as " + message.Code(e.RenamedTo)
			}
			if e.RenamedFrom != "" {
				text += ", with what " + message.Code(e.RenamedFrom) + " had"
			}
			add(text, e.Count, place(e, form))
		}
	}
	entries("**removed**", r.Removed)
	entries("**replaced**", slices.DeleteFunc(slices.Clone(r.Changed),
		func(e compare.Entry) bool { return lost(&e) == "" }))
	entries("new", r.Added)
	for i := range r.Groups {
		g := &r.Groups[i]
		switch {
		case len(g.Assignments) > 0:
			types := map[string]int{}
			for _, id := range g.Assignments {
				types[clusterTypeOf(id)]++
			}
			add(summarize(g), g.Count, message.List(slices.Sorted(maps.Keys(types)), 8))
		case len(g.Clusters) > 0:
			add(summarize(g), len(g.Clusters), names(g.Clusters))
		}
	}
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(b, "| Change | %s | Where |\n|---|---|---|\n", what)
	for _, row := range rows[:min(len(rows), maxGroups)] {
		fmt.Fprintf(b, "| %s | %s | %s |\n", row[0], row[1], row[2])
	}
	if len(rows) > maxGroups {
		fmt.Fprintf(b, "| %d more changes | | |\n", len(rows)-maxGroups)
	}
	fmt.Fprintln(b)
}

// place returns the cluster type of an entry, and its clusters if it lists some.
func place(e *compare.Entry, form subject.Form) string {
	if clusters := e.Names(); len(clusters) > 0 {
		return message.Markdown(e.ClusterType) + ": " + message.List(clusters, 3)
	}
	return message.List([]string{e.ClusterType}, 1)
}

// names lists the names of clusters by their ids.
func names(ids []string) string {
	out := make([]string, len(ids))
	for i, id := range ids {
		_, out[i], _ = strings.Cut(id, "/")
	}
	return message.List(out, 3)
}

// lost returns the objects that leave each cluster with an entry, as the end of a cell.
func lost(e *compare.Entry) string {
	var all []string
	if n := len(e.Namespaces); n > 0 {
		all = append(all, "namespace "+message.Code(strings.Join(e.Namespaces, ", ")))
	}
	if e.PersistentVolumeClaims > 0 {
		all = append(all, message.Count(e.PersistentVolumeClaims, "PersistentVolumeClaim"))
	}
	if n := len(e.CustomResourceDefinitions); n > 0 {
		all = append(all, message.Count(n, "CustomResourceDefinition"))
	}
	if e.CustomResources > 0 {
		all = append(all, message.Count(e.CustomResources, "custom resource"))
	}
	if len(all) == 0 {
		return ""
	}
	return " with " + strings.Join(all, ", ")
}

// maxText is the longest part of a foreign text that a body shows, in characters.
const maxText = 120

// maxValue is the longest part of a value that a table shows, in characters.
const maxValue = 60

// summarize returns a group of changes as a cell of a table.
func summarize(g *compare.Group) string {
	where := g.File
	if g.Object != nil {
		where = g.Object.Kind + " " + g.Object.Name
	}
	what := message.Markdown(message.Clip(where, maxText))
	if g.Path != "" {
		what += " " + message.Code(message.Clip(g.Path, maxText))
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

// value returns a value as code, after a separator, or "".
func value(before string, v json.RawMessage) string {
	if v == nil {
		return ""
	}
	return before + message.Code(message.Clip(string(v), maxValue))
}

// risk returns the line about risky changes, which people may want to check twice.
func risk(c *gate.Change, form subject.Form) string {
	var parts []string
	deleted := 0
	for _, n := range c.Deleted {
		deleted += n
	}
	parts = append(parts, message.Count(deleted, "deletion"))
	if n := c.Removals.Emptied; n > 0 {
		parts = append(parts, fmt.Sprintf("**%s left empty**", message.Count(n, "cluster")))
	}
	if n := c.Deleted["Namespace"]; n > 0 {
		parts = append(parts,
			fmt.Sprintf("**%s deleted, with everything in them**", message.Count(n, "namespace")))
	}
	touched := func(kinds ...string) int {
		n := 0
		for _, kind := range kinds {
			n += c.Created[kind] + c.Updated[kind] + c.Deleted[kind]
		}
		return n
	}
	parts = append(parts, message.Count(touched("CustomResourceDefinition"), "CRD change"),
		message.Count(touched("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding",
			"ServiceAccount"), "RBAC change"))
	if c.Errors > 0 {
		parts = append(parts, fmt.Sprintf("**%s with errors**", message.Count(c.Errors, form.Unit())))
	}
	if c.Kept > 0 {
		parts = append(parts, fmt.Sprintf("**%s kept as they were**", message.Count(c.Kept, "folder")))
	}
	return strings.Join(parts, ", ")
}

// verdicts writes the table of verdicts.
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
		reason := message.Markdown(v.Reason)
		switch {
		case v.Skipped != "":
			state = "🚨 **passed over**: " + message.Markdown(v.Skipped)
		case v.Kind().Cause == gate.Response: // others answer it, again and again
			state, reason = "asked", "the status `"+ledger.GatesStatus+"` has the answer"
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", message.Markdown(name), state, reason)
	}
	fmt.Fprintln(b)
}

// details returns the first of some changes in full, folded, or "".
func details(r *compare.Report, most int, form subject.Form) string {
	if r == nil || most == 0 || len(r.Groups) == 0 {
		return ""
	}
	part := *r
	part.Groups = r.Groups[:min(len(r.Groups), most)]
	var text strings.Builder
	if err := compare.WriteText(&text, &part, compare.TextOptions{Unit: form.Unit()}); err != nil {
		return ""
	}
	title := "All changes"
	if len(part.Groups) < len(r.Groups) {
		title = fmt.Sprintf("The first %d of %d changes", len(part.Groups), len(r.Groups))
	}
	return "<details><summary>" + title + "</summary>\n\n" + fenced(text.String()) + "\n</details>\n\n"
}

// fenced returns a text as a block of code, whatever is in it.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "diff\n" + strings.TrimRight(text, "\n") + "\n" + fence + "\n"
}

// reproduce returns the end of a body: how to reproduce the commit.
func (m *maker) reproduce(st *session.Stage, step *Step) string {
	return fmt.Sprintf("Reproduce: `kalypso verify --env %s --head %s`\n", st.Policy.Name,
		st.PromotionBranch())
}
