package compare

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"

	"sigs.k8s.io/yaml"
)

// TextOptions choose the form of a report for people.
type TextOptions struct {
	// Stat writes only the number of differing assignments of each cluster type.
	Stat bool
	// Wide also writes details: the clusters that follow another folder, and changes that
	// do nothing by themselves on clusters.
	Wide bool
	// Color marks added, removed and changed text with the colours of an ANSI terminal, in
	// addition to their signs.
	Color bool
	// All names every assignment and cluster of a line, and not only the first three.
	All bool
	// Environments are the environments in the order of the output. Without it, they are
	// sorted by name.
	Environments []string
	// Unit is the word for a folder of an assignment; "" for assignment.
	Unit string
}

// named is the largest number of assignments or clusters that a line names.
const named = 3

// maxInline is the most bytes of a value within a line.
const maxInline = 120

// WriteText writes a report for people: removals, additions, the groups of changes, and a line
// of counts. Without a difference it writes only that line. It quotes control characters.
func WriteText(w io.Writer, r *Report, o TextOptions) error {
	if o.Unit == "" {
		o.Unit = "assignment"
	}
	t := &textWriter{w: bufio.NewWriter(w), TextOptions: o}
	if o.Stat {
		t.stat(r)
	} else {
		t.removals(r)
		for _, e := range ordered(t, r.Added, func(e Entry) string { return e.Environment }) {
			t.line("", '+', t.Unit+" "+t.entryText(&e)+renamed(", with what ", e.RenamedFrom, " had"))
		}
		t.folders('+', "cluster type", r.ClusterTypes.Added)
		if r.Clusters != nil {
			t.clusters('+', " newly listed", r.Clusters.Listed)
		}
		t.moves(r.Clusters)
		for i := range r.Groups {
			if !r.Groups[i].Detail || o.Wide {
				g := &r.Groups[i]
				ids, what := g.Assignments, t.Unit+"s"
				switch {
				case len(g.Clusters) > 0:
					ids, what = g.Clusters, "clusters"
				case len(ids) == 0:
					ids, what = g.ClusterTypes, "cluster types"
				}
				ids = ordered(t, ids, environmentOf)
				in := fmt.Sprintf("%d %s", len(ids), what)
				if len(ids) == 1 {
					in = printable(ids[0]) + t.onClusters(g.names)
				} else {
					in += t.onClusters(g.names)
				}
				t.line("", sign(g), headline(g)+", "+in)
				// Write the values that are not in the headline.
				_, ok1 := inline(g.From)
				_, ok2 := inline(g.To)
				switch {
				case g.Kind == Text:
					t.hunks(g.Diff)
				case (g.From == nil || ok1) && (g.To == nil || ok2):
				case g.Kind == Changed && isString(g.From) && isString(g.To):
					t.hunks(lines(block(g.From), block(g.To)))
				default:
					t.block('-', g.From)
					t.block('+', g.To)
				}
				t.some(ids)
			}
		}
	}
	fmt.Fprintln(t.w, Summary(r))
	return t.w.Flush()
}

// removals writes the losses of clusters: the total first.
func (t *textWriter) removals(r *Report) {
	if r.Clusters != nil {
		t.clusters('-', " left empty", r.Clusters.Emptied)
		t.clusters('-', " no longer listed", r.Clusters.Unlisted)
	}
	for _, e := range ordered(t, r.Removed, func(e Entry) string { return e.Environment }) {
		t.line("", '-',
			t.Unit+" "+t.entryText(&e)+lost(&e)+renamed(", deleted and created again as ", e.RenamedTo, ""))
	}
	for _, e := range ordered(t, r.Changed, func(e Entry) string { return e.Environment }) {
		if of := lost(&e); of != "" {
			t.line("", '-', strings.TrimPrefix(of, ", with ")+" of "+t.Unit+" "+t.entryText(&e))
		}
	}
	t.folders('-', "cluster type", r.ClusterTypes.Removed)
}

func renamed(before, name, after string) string {
	if name == "" {
		return ""
	}
	return before + printable(name) + after
}

// lost returns the objects that leave each cluster with an entry, as the end of a line.
func lost(e *Entry) string {
	var all []string
	for _, name := range e.Namespaces {
		all = append(all, "namespace "+printable(name))
	}
	if e.PersistentVolumeClaims > 0 {
		all = append(all,
			counted(e.PersistentVolumeClaims, "PersistentVolumeClaim", "PersistentVolumeClaims"))
	}
	for _, name := range e.CustomResourceDefinitions {
		all = append(all, "CustomResourceDefinition "+printable(name))
	}
	if e.CustomResources > 0 {
		all = append(all, counted(e.CustomResources, "custom resource", "custom resources"))
	}
	if len(all) == 0 {
		return ""
	}
	return ", with " + strings.Join(all, ", ")
}

// entryText returns the id of an entry, and the clusters that it is on.
func (t *textWriter) entryText(e *Entry) string {
	return printable(e.ID()) +
		t.onClusters(e.Names())
}

// onClusters returns the clusters of an assignment as the end of a line, or "".
func (t *textWriter) onClusters(names []string) string {
	switch len(names) {
	case 0:
		return ""
	case 1:
		return " on " + printable(names[0])
	}
	show := len(names)
	if !t.All && show > named {
		show = named
	}
	some := make([]string, show)
	for i, name := range names[:show] {
		some[i] = printable(name)
	}
	text := fmt.Sprintf(" on %d clusters (%s", len(names), strings.Join(some, ", "))
	if more := len(names) - show; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text + ")"
}

// clusters writes clusters that are alike, by their ids.
func (t *textWriter) clusters(sign byte, what string, ids []string) {
	if len(ids) == 0 {
		return
	}
	which := "cluster " + printable(ids[0])
	if n := len(ids); n > 1 {
		which = counted(n, "cluster", "clusters")
	}
	t.line("", sign, which+what)
	t.some(ids)
}

// moves writes the clusters that follow another folder.
func (t *textWriter) moves(c *Clusters) {
	if c == nil || !t.Wide {
		return
	}
	for _, m := range ordered(t, c.Moved, func(m Move) string { return m.Environment }) {
		if m.From != "" && m.To != "" {
			t.line("", '~', counted(m.Count, "cluster",
				"clusters")+" of "+printable(m.Environment)+": "+printable(m.From)+" -> "+printable(m.To)+
				t.onClusters(m.set.names))
		}
	}
}

// Summary returns the counts of a report in a line, such as "3 added, 73 changed, 1
// removed, 926 unchanged". They count pairs of a deployment target and a cluster. If there
// are cluster types whose own files differ, they follow. If clusters are listed, the number
// of affected clusters follows as well.
func Summary(r *Report) string {
	a, ct := r.Assignments, r.ClusterTypes
	s := fmt.Sprintf("%d added, %d changed, %d removed, %d unchanged", r.Total.Added, r.Total.Changed,
		r.Total.Removed, a.Unchanged)
	if n := len(ct.Added) + len(ct.Changed) + len(ct.Removed); n > 0 {
		s += fmt.Sprintf("; cluster types: %d added, %d changed, %d removed, %d unchanged", len(ct.Added),
			len(ct.Changed), len(ct.Removed), ct.Unchanged)
	}
	if c := r.Clusters; c != nil && c.Concerned > 0 {
		s += "; " + counted(c.Concerned, "cluster", "clusters")
	}
	return s
}

func counted(n int, one, many string) string {
	if n != 1 {
		one = many
	}
	return fmt.Sprintf("%d %s", n, one)
}

// textWriter writes text. The buffer keeps the first error.
type textWriter struct {
	w *bufio.Writer
	TextOptions
}

// line writes a line that begins with a sign, in the sign's colour.
func (t *textWriter) line(indent string, sign byte, text string) {
	colors := map[byte]string{'+': "32", '-': "31", '~': "33"}
	s := indent + string(sign) + " " + text
	if t.Color && colors[sign] != "" {
		s = "\x1b[" + colors[sign] + "m" + s + "\x1b[0m"
	}
	fmt.Fprintln(t.w, s)
}

// ordered returns values that are sorted by environment, in the order of
// TextOptions.Environments.
func ordered[T any](t *textWriter, of []T, environment func(T) string) []T {
	if len(t.Environments) == 0 {
		return of
	}
	of = slices.Clone(of)
	slices.SortStableFunc(of, func(a, b T) int {
		return cmp.Compare(slices.Index(t.Environments, environment(a)),
			slices.Index(t.Environments, environment(b)))
	})
	return of
}

// environmentOf returns the environment of a folder's id.
func environmentOf(id string) string {
	environment, _, _ := strings.Cut(id, "/")
	return environment
}

func (t *textWriter) folders(sign byte, what string, ids []string) {
	for _, id := range ordered(t, ids, environmentOf) {
		t.line("", sign, what+" "+printable(id))
	}
}

// some writes the first ids of a list, or all if there are few.
func (t *textWriter) some(ids []string) {
	if len(ids) == 1 {
		return
	}
	show := len(ids)
	if !t.All && show > named {
		show = named
	}
	for _, id := range ids[:show] {
		fmt.Fprintln(t.w, "    "+printable(id))
	}
	if show < len(ids) {
		fmt.Fprintf(t.w, "    and %d more\n", len(ids)-show)
	}
}

func sign(g *Group) byte {
	switch {
	case g.Kind == Added, g.Kind == Mode && g.From == nil:
		return '+'
	case g.Kind == Removed, g.Kind == Mode && g.To == nil:
		return '-'
	}
	return '~'
}

// headline describes a change in a line: its place, and the values if they are short.
func headline(g *Group) string {
	where := printable(g.File)
	if g.Object != nil {
		where = printable(g.Object.Kind) + " " + printable(g.Object.Name)
	} else if g.Document > 0 {
		where += " document " + strconv.Itoa(g.Document)
	}
	if g.Path != "" {
		where += " " + printable(g.Path)
	}
	from, ok1 := inline(g.From)
	to, ok2 := inline(g.To)
	switch {
	case g.Kind == Mode:
		where += " mode " + modes(g)
	case g.Kind == Reordered:
		where += " in another order"
		if ok1 && ok2 {
			where += ": " + from + " -> " + to
		}
	case g.Kind == Changed && ok1 && ok2:
		where += ": " + from + " -> " + to
	case g.Kind == Added && ok2:
		where += ": " + to
	case g.Kind == Removed && ok1:
		where += ": " + from
	}
	return where
}

// modes returns the modes of a file as git shows them, without quotes.
func modes(g *Group) string {
	var all []string
	for _, mode := range []json.RawMessage{g.From, g.To} {
		if mode != nil {
			all = append(all, strings.Trim(string(mode), `"`))
		}
	}
	return strings.Join(all, " -> ")
}

func (t *textWriter) block(sign byte, v json.RawMessage) {
	if v == nil {
		return
	}
	for l := range strings.Lines(string(block(v))) {
		t.line("    ", sign, printableLine(l))
	}
}

// hunks writes a unified diff.
func (t *textWriter) hunks(d string) {
	for l := range strings.Lines(d) {
		switch l[0] {
		case '+', '-':
			t.line("    ", l[0], printableLine(l[1:]))
		default:
			fmt.Fprintln(t.w, "    "+printableLine(l))
		}
	}
}

func isString(v json.RawMessage) bool { return len(v) > 0 && v[0] == '"' }

// block returns a value as lines: a string unchanged, everything else as YAML.
func block(v json.RawMessage) []byte {
	var s string
	if json.Unmarshal(v, &s) == nil && isString(v) {
		return []byte(s)
	}
	if b, err := yaml.JSONToYAML(v); err == nil {
		return b
	}
	return v
}

// inline returns a value as text within a line, if it fits there. A string is quoted if a
// reader could take it for another value.
func inline(v json.RawMessage) (string, bool) {
	var s string
	if v == nil || len(v) > maxInline || v[0] == '{' && len(v) > 2 {
		return "", false
	}
	if !isString(v) {
		return printable(string(v)), true
	}
	if json.Unmarshal(v, &s) != nil || strings.ContainsRune(s, '\n') {
		return "", false
	}
	if p := printable(s); p != s {
		return p, true
	}
	if s == "" || s != strings.TrimSpace(s) || strings.Contains(s, " -> ") ||
		strings.ContainsAny(s[:1], "\"'[{") || json.Valid([]byte(s)) {
		return strconv.Quote(s), true
	}
	return s, true
}

// printable returns a text quoted if it has characters that do not show, or that
// a terminal acts upon.
func printable(s string) string {
	for _, r := range s {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return strconv.Quote(s)
		}
	}
	return s
}

// printableLine returns a line of a text without its end. Tabs are left as they
// are.
func printableLine(l string) string {
	l = strings.TrimSuffix(l, "\n")
	if strings.Contains(l, "\t") &&
		printable(strings.ReplaceAll(l, "\t", " ")) == strings.ReplaceAll(l, "\t", " ") {
		return l
	}
	return printable(l)
}

// stat writes a line for each cluster type that differs.
func (t *textWriter) stat(r *Report) {
	table := tabwriter.NewWriter(t.w, 0, 0, 2, ' ', 0)
	for _, c := range ordered(t, r.Counts, func(c Counts) string { return c.Environment }) {
		own := cmp.Or(c.Own, string(unchanged)) != string(unchanged)
		if c.Added+c.Changed+c.Removed == 0 && !own {
			continue
		}
		s := fmt.Sprintf("%s/%s\t%d added\t%d changed\t%d removed\t%d unchanged",
			printable(c.Environment), printable(c.ClusterType), c.Added, c.Changed, c.Removed, c.Unchanged)
		switch {
		case r.Clusters == nil:
		case c.Lists:
			s += "\t" + counted(c.Clusters, "cluster", "clusters")
		default:
			s += "\t-" // the number of clusters is unknown
		}
		if own {
			s += "\town files " + c.Own
		}
		fmt.Fprintln(table, s)
	}
	if r.Clusters != nil {
		defer t.clusters('-', " left empty", r.Clusters.Emptied)
	}
	_ = table.Flush() // t.w keeps the error
}
