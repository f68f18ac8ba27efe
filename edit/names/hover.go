package names

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/query"
	"github.com/kalypso-io/kalypso/edit/syntax"
)

// Hover is the information about a word, as paragraphs of plain text.
type Hover struct {
	Place Place
	Lines []string
}

// Hover returns the information about the word at an offset. For a name, it describes the
// entity and its place of declaration. For a config's value, it describes the value of the last
// compilation and its source. For a field, it has the schema's documentation. ctx ends the
// composition of values.
func (x *Index) Hover(ctx context.Context, path string, offset int, r *Results) (Hover, bool) {
	f := x.byPath[path]
	if f == nil {
		return Hover{}, false
	}
	w := f.wordAtOffset(offset)
	if w == nil {
		return Hover{}, false
	}
	h := Hover{Place: f.place(w)}
	if _, u := x.useAt(path, offset); u != nil {
		for _, m := range x.meant(f.environment, u) {
			h.Lines = append(h.Lines, x.describe(f, &m, r)...)
		}
	} else if key := contractPath(w.Path); f.part && len(key) > 0 && w.Path[0] == "configs" {
		h.Lines = r.composed(ctx, f, w.Path[1], key)
	} else if w.Kind == syntax.Label && f.part {
		if s := slotAt(w.Path); s != nil && s.of != nil && s.of.Name == w.Text && s.of.Doc != "" {
			h.Lines = append(h.Lines, s.of.Doc)
		}
	}
	return h, len(h.Lines) > 0
}

// describe describes the entity that a use names, with its counts and its places of
// declaration.
func (x *Index) describe(f *file, u *use, r *Results) []string {
	path := []string{u.collection, u.name}
	name := u.name
	if u.collection == model.DeploymentTargets {
		t := split(u.name)
		path, name = []string{"workloads", t.workload, u.collection, t.name}, t.full()
	}
	lines := []string{kindOf(u.collection) + " " + name}
	if doc := x.description(path...); doc != "" {
		lines = append(lines, doc)
	}
	if count := r.count(f.environment, u); count != "" {
		lines = append(lines, count)
	}
	var declared []string
	for _, o := range x.occurrences(f, u) {
		if at := o.file.where(&o.file.words[o.use.word]); o.use.declares &&
			!slices.Contains(declared, at) {
			declared = append(declared, at)
		}
	}
	switch n := len(declared); {
	case n == 0:
		lines = append(lines, "not declared in the platform's files")
	case n > maxGroups:
		lines = append(lines, fmt.Sprintf("declared at %s and %d more places",
			strings.Join(declared[:maxGroups], ", "), n-maxGroups))
	default:
		lines = append(lines, "declared at "+strings.Join(declared, ", "))
	}
	return lines
}

// where returns the place of a word in the form of messages.
func (f *file) where(w *syntax.Word) string {
	before := f.Text[:w.Start]
	return fmt.Sprintf("%s:%d:%d", f.Path, bytes.Count(before, []byte("\n"))+1,
		w.Start-bytes.LastIndexByte(before, '\n'))
}

// offset returns the offset of a position in the file. It returns -1 if the file has no such
// line.
func (f *file) offset(p model.Position) int {
	rest := f.Text
	for line := 1; line < p.Line; line++ {
		_, after, found := bytes.Cut(rest, []byte("\n"))
		if !found {
			return -1
		}
		rest = after
	}
	return min(len(f.Text)-len(rest)+max(p.Column-1, 0), len(f.Text))
}

// wordAt returns the word at a position. If a value is there, it returns the label before it.
func (f *file) wordAt(p model.Position) *syntax.Word {
	offset := f.offset(p)
	if offset < 0 {
		return nil
	}
	if w := f.wordAtOffset(offset); w != nil && w.Kind == syntax.Label {
		return w
	}
	var before *syntax.Word
	for i := range f.words {
		if w := &f.words[i]; w.Kind == syntax.Label && w.Start <= offset && w.Field.Value >= offset &&
			(before == nil || w.Start > before.Start) {
			before = w
		}
	}
	return before
}

// Results are the results of the platform's last compilation. They may be nil if there was no
// compilation. The build must not be closed while they are used. Several goroutines may use
// them for Hover.
type Results struct {
	Build *compiler.Build

	once  sync.Once
	tally map[key]*tally
}

// environments returns the environments to which the files of an environment belong. For "",
// the base, it returns all environments.
func (r *Results) environments(of string) []*engine.Environment {
	if r == nil || r.Build == nil {
		return nil
	}
	var out []*engine.Environment
	for _, e := range r.Build.Environments {
		if e.Model != nil && e.Schedule != nil && sees(of, e.Name) {
			out = append(out, e)
		}
	}
	return out
}

// tally has the number of assignments that an entity concerns, and their cluster types.
type tally struct {
	assignments int
	types       map[string]bool
}

// key is an entity of an environment.
type key struct{ environment, collection, name string }

// counted are the collections whose entities concern assignments.
var counted = []string{"environments", "clusterTypes", "workloads", model.DeploymentTargets,
	"workspaces", "reconcilers", "namespaceServices", "schedulingPolicies", "configs", "configSchemas"}

// tallies returns the tallies of the whole build. It counts only once.
func (r *Results) tallies() map[key]*tally {
	r.once.Do(func() {
		r.tally = map[key]*tally{}
		for _, e := range r.environments("") {
			for i := range e.Schedule.Assignments {
				r.add(e, i)
			}
		}
	})
	return r.tally
}

// add counts an assignment for each entity that it depends on.
func (r *Results) add(e *engine.Environment, i int) {
	a := &e.Schedule.Assignments[i]
	for _, entities := range []struct {
		collection string
		names      []string
	}{
		{"environments", []string{e.Name}},
		{"clusterTypes", []string{a.ClusterType.Name}},
		{"workloads", []string{a.Workload.Name}},
		{model.DeploymentTargets, []string{a.Workload.Name + "/" + a.Target.Name}},
		{"workspaces", []string{a.Workload.Workspace}},
		{"reconcilers", []string{a.ClusterType.Reconciler}},
		{"namespaceServices", []string{a.ClusterType.NamespaceService}},
		{"schedulingPolicies", a.Policies},
		{"configs", e.Plan.Configs(i)},
		{"configSchemas", e.Plan.ConfigSchemas(i)},
	} {
		for _, name := range entities.names {
			k := key{e.Name, entities.collection, name}
			if r.tally[k] == nil {
				r.tally[k] = &tally{types: map[string]bool{}}
			}
			r.tally[k].assignments++
			r.tally[k].types[a.ClusterType.Name] = true
		}
	}
}

// Lens is a line above a place.
type Lens struct {
	Place Place
	Title string
}

// Lenses returns the results of the last compilation for the entities that a file declares, in
// the order of the file. They have the number of assignments of each entity, and the selectors
// that select nothing.
func (x *Index) Lenses(path string, r *Results) []Lens {
	f := x.byPath[path]
	if f == nil || r == nil || r.Build == nil {
		return nil
	}
	var out []Lens
	for i := range f.uses {
		u := &f.uses[i]
		if !u.declares {
			continue
		}
		if title := r.count(f.environment, u); title != "" {
			out = append(out, Lens{f.place(&f.words[u.word]), title})
		}
	}
	for _, d := range r.Build.Diagnostics {
		if d.Code != diag.SelectsNothing {
			continue
		}
		for _, s := range d.Sites[:min(1, len(d.Sites))] {
			if w := f.wordAt(s.Position); s.Position.File == path && w != nil {
				out = append(out, Lens{f.place(w), "selects nothing"})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Lens) int { return a.Place.Start - b.Place.Start })
	return out
}

// count returns the numbers of assignments and of cluster types that an entity concerns, as
// text. It returns "" if assignments do not depend on the entity.
func (r *Results) count(environment string, u *use) string {
	environments := r.environments(environment)
	if len(environments) == 0 || !slices.Contains(counted, u.collection) {
		return ""
	}
	assignments, types := 0, map[string]bool{}
	for _, e := range environments {
		if t := r.tallies()[key{e.Name, u.collection, u.name}]; t != nil {
			assignments += t.assignments
			maps.Copy(types, t.types)
		}
	}
	title := number(assignments, "assignment")
	if assignments > 0 && u.collection != "clusterTypes" {
		title += ", " + number(len(types), "cluster type")
	}
	return title
}

func number(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// The bounds of the computation and the text of a hover about a value.
const (
	maxComposed = 200
	maxGroups   = 4
)

// group is a common value of several assignments, from the same places.
type group struct {
	says        string
	environment string
	first       string
	count       int
}

// composed returns the uses of a config's value in each environment, in the form of `kalypso
// explain`. Assignments with the same value have one entry.
func (r *Results) composed(ctx context.Context, f *file, config string, key []string) []string {
	path := ""
	for _, name := range key {
		path = model.JoinPath(path, model.Label(name))
	}
	var groups []*group
	composed, left := 0, 0
	for _, e := range r.environments(f.environment) {
		seen := map[int32]*group{}
		for i := range e.Schedule.Assignments {
			g, done := seen[e.Plan.TupleOf[i]]
			if !slices.Contains(e.Plan.Configs(i), config) || e.Failed(i) {
				continue
			}
			switch {
			case done && g != nil:
				g.count++
				continue
			case done:
				continue
			case composed == maxComposed:
				left++
				continue
			}
			composed++
			g = r.group(ctx, e, i, path, &groups)
			seen[e.Plan.TupleOf[i]] = g
		}
	}
	var out []string
	for i, g := range groups {
		if i == maxGroups {
			left += len(groups) - i
			break
		}
		of := g.first
		if g.count > 1 {
			of += fmt.Sprintf(" and %d more", g.count-1)
		}
		out = append(out, fmt.Sprintf("%s: %s", of, g.says))
	}
	if left > 0 {
		out = append(out, fmt.Sprintf("and %d more", left))
	}
	return out
}

// group adds an assignment to the group with the same value. It returns nil if the assignment
// has no value.
func (r *Results) group(ctx context.Context, e *engine.Environment, i int, path string,
	groups *[]*group) *group {
	a := &e.Schedule.Assignments[i]
	x, ok, err := query.Explain(ctx, r.Build, e.Name, a.ClusterType.Name, a.Target.FullName, path)
	if err != nil || !ok || len(x.Values) == 0 {
		return nil
	}
	says := saysOf(x.Values[0], len(x.Values)-1)
	for _, g := range *groups {
		if g.environment == e.Name && g.says == says {
			g.count++
			return g
		}
	}
	g := &group{says, e.Name, a.ID(e.Name), 1}
	*groups = append(*groups, g)
	return g
}

// saysOf returns the text for a composed value and its origin.
func saysOf(v query.Value, more int) string {
	var from []string
	for _, o := range v.From {
		from = append(from, originOf(o))
	}
	s := fmt.Sprintf("%s = %s, from %s", v.Path, v.Value, strings.Join(from, " and "))
	if len(v.Replaced) > 0 {
		s += ", in place of " + v.Replaced[0].Text + " of " + originOf(v.Replaced[0])
	}
	if more > 0 {
		s += fmt.Sprintf(" (and %d more values below it)", more)
	}
	return s
}

func originOf(o query.Origin) string {
	s := o.Name
	if o.Layer != nil {
		s += fmt.Sprintf(" (layer %d)", *o.Layer)
	}
	return s
}
