// Package platform provides the data of pages from a compiled platform.
package platform

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/query"
	"github.com/kalypso-io/kalypso/internal/spelling"
	"github.com/kalypso-io/kalypso/view"
	"github.com/kalypso-io/kalypso/view/graph"
)

// listed is the maximum number of entries if a page does not show a whole list.
const listed = 100

// Options have the settings that are not in a build.
type Options struct {
	Title string
	// Commit is the commit that is checked out, shortened, or "".
	Commit string
	// Since is the revision that changes are counted from, or "". Compare compares a
	// revision with the platform.
	Since   string
	Compare func(ctx context.Context, revision string) (*compiler.Difference, error)
	// Link returns the address at which a forge shows a place. The field may be nil.
	Link  func(model.Position) string
	Built time.Time
}

// Platform is a view.Source of a build. It composes values when a page needs them, so that
// the build has to stay open as long.
type Platform struct {
	build   *compiler.Build
	options Options

	environments map[string]*environment
	order        []*environment
	workloads    map[string]*workload
	sorted       []*workload // by name

	changes sync.Mutex
	since   map[string]*view.Changes // by revision
}

// environment is an environment of the build, with the data of lists.
type environment struct {
	*engine.Environment
	summary  view.EnvironmentSummary
	rows     []view.AssignmentRow // by the number of the assignment
	clusters map[string]int       // by folder
	types    []view.ClusterTypeRow
	// The graphs of a page are drawn when it is first asked for.
	scheduleGraph, configGraph func() (*graph.Graph, error)
}

// maxNodes is how many nodes a graph on a page has before groups of them are folded.
const maxNodes = 200

// drawn returns a function that draws a graph of one environment on its first call.
func drawn(b *compiler.Build, e *engine.Environment,
	draw func(*compiler.Build, string) (*graph.Graph, error)) func() (*graph.Graph, error) {
	return sync.OnceValues(func() (*graph.Graph, error) {
		g, err := draw(&compiler.Build{Platform: b.Platform, Declarations: b.Declarations,
			Environments: []*engine.Environment{e}}, "")
		if err == nil {
			g.Fold(maxNodes)
		}
		return g, err
	})
}

// workload is one in all environments.
type workload struct {
	view.WorkloadRow
	description string
	labels      map[string]string
	rows        []view.AssignmentRow
}

var _ view.Source = (*Platform)(nil)

// New returns the source of a build. The error is about reading the cache.
func New(ctx context.Context, b *compiler.Build, o Options) (*Platform, error) {
	p := &Platform{build: b, options: o, environments: map[string]*environment{},
		workloads: map[string]*workload{}, since: map[string]*view.Changes{}}
	for _, e := range query.InOrder(b) {
		one := &environment{
			Environment: e, clusters: map[string]int{},
			scheduleGraph: drawn(b, e, query.ScheduleGraph), configGraph: drawn(b, e, query.ConfigGraph),
		}
		one.summary = view.EnvironmentSummary{Name: e.Name, Unreadable: e.Model == nil}
		p.environments[e.Name], p.order = one, append(p.order, one)
	}
	for _, a := range query.Workloads(b) {
		w := p.workload(a.Name)
		w.Workspace, w.Application = a.Workspace, a.Application
		w.description, w.labels = cmp.Or(a.Description, w.description), a.Labels
		p.environments[a.Environment].summary.Workloads++
	}
	for n, e := range p.order {
		if e.Model == nil {
			continue
		}
		e.summary.Description, e.summary.After = e.Model.Description, e.Model.After
		e.summary.Clusters, e.summary.Assignments = len(e.Model.Clusters), len(e.Schedule.Assignments)
		for _, c := range e.Model.Clusters {
			e.clusters[c.Folder]++
		}
		for i := range e.Schedule.Assignments {
			if err := p.add(ctx, n, e, i); err != nil {
				return nil, err
			}
		}
	}
	p.addClusterTypes()
	p.sorted = slices.SortedFunc(maps.Values(p.workloads),
		func(a, b *workload) int { return strings.Compare(a.Name, b.Name) })
	for _, w := range p.sorted {
		for i := range w.Cells {
			slices.SortFunc(w.Cells[i].Versions,
				func(a, b view.Version) int { return strings.Compare(a.Name, b.Name) })
		}
	}
	return p, nil
}

func (p *Platform) workload(name string) *workload {
	w := p.workloads[name]
	if w == nil {
		w = &workload{WorkloadRow: view.WorkloadRow{Name: name, Cells: make([]view.Cell, len(p.order))}}
		for i, e := range p.order {
			w.Cells[i].Environment = e.Name
		}
		p.workloads[name] = w
	}
	return w
}

// add adds an assignment of the environment with a number.
func (p *Platform) add(ctx context.Context, n int, e *environment, i int) error {
	a := &e.Schedule.Assignments[i]
	version, _ := e.Version(i)
	row := view.AssignmentRow{
		Environment: e.Name, ClusterType: a.ClusterType.Name, Target: a.Target.FullName,
		Workload:  a.Workload.Name,
		Namespace: e.Plan.Namespaces[i], Version: version, Clusters: e.clusters[a.ClusterType.Name],
		Failed: e.Failed(i),
	}
	if !row.Failed {
		configuration, err := e.Configuration(ctx, i)
		if err != nil {
			return err
		}
		row.Equal = fmt.Sprintf("%q %q %q %s", a.Workload.Name, a.Version, a.ClusterType.Reconciler,
			configuration)
	} else {
		e.summary.Failed++
		row.Equal = a.ID(e.Name)
	}
	e.rows = append(e.rows, row)
	w := p.workload(row.Workload)
	w.rows = append(w.rows, row)
	cell := &w.Cells[n]
	cell.Assignments++
	if last := len(w.rows) - 2; last < 0 || w.rows[last].Environment != row.Environment ||
		w.rows[last].ClusterType != row.ClusterType {
		cell.Clusters += row.Clusters // assignments are sorted by cluster type
	}
	if row.Failed {
		cell.Failed++
	}
	v := slices.IndexFunc(cell.Versions, func(v view.Version) bool { return v.Name == row.Version })
	if v < 0 {
		v, cell.Versions = len(cell.Versions), append(cell.Versions, view.Version{Name: row.Version})
	}
	cell.Versions[v].Assignments++
	return nil
}

func (p *Platform) addClusterTypes() {
	for _, ct := range query.ClusterTypes(p.build) {
		e := p.environments[ct.Environment]
		e.summary.ClusterTypes++
		for _, c := range ct.Classes {
			e.types = append(e.types, view.ClusterTypeRow{
				Environment: e.Name, Name: c.Folder, ClusterType: ct.Name, Selectors: c.Selectors,
				Reconciler: ct.Reconciler,
				Ring:       e.Ring(c.Folder), Clusters: c.Clusters, Assignments: c.Assignments,
			})
		}
	}
}

// PageData describes the subject of the pages.
func (p *Platform) PageData(context.Context) (*view.PageData, error) {
	o := &p.options
	about := &view.PageData{Compiled: true, Title: o.Title, Commit: o.Commit, Revision: o.Since,
		Built: o.Built}
	for _, e := range p.order {
		about.Environments = append(about.Environments, e.Name)
	}
	for _, d := range p.build.Diagnostics {
		if d.Severity == diag.Error {
			about.Errors++
		} else {
			about.Warnings++
		}
	}
	return about, nil
}

// readable returns an environment that can be read.
func (p *Platform) readable(name string) (*environment, error) {
	e := p.environments[name]
	switch {
	case e == nil:
		return nil, p.missing("environment", name, slices.Collect(maps.Keys(p.environments)),
			"this platform")
	case e.Model == nil:
		return nil, &view.NotFoundError{Message: "errors hide all of " + name + ": see the diagnostics"}
	}
	return e, nil
}

// missing is the error of a name that there is not in a place.
func (p *Platform) missing(kind, name string, known []string, in string) error {
	text := fmt.Sprintf("there is no %s %s in %s", kind, name, in)
	if hint := spelling.DidYouMean(name, known); hint != "" {
		text += "; " + hint
	}
	return &view.NotFoundError{Message: text}
}

func (p *Platform) places(of []model.Position) []view.Place {
	var out []view.Place
	for _, at := range of {
		place := view.Place{Text: fmt.Sprintf("%s:%d:%d", at.File, at.Line, at.Column)}
		if p.options.Link != nil {
			place.Link = p.options.Link(at)
		}
		out = append(out, place)
	}
	return out
}

func (p *Platform) named(of []query.Place) []view.NamedEntity {
	var out []view.NamedEntity
	for _, one := range of {
		out = append(out,
			view.NamedEntity{Kind: one.Kind, Name: one.Name, Places: p.places(one.Positions)})
	}
	return out
}

func pairs(of map[string]string) []view.Pair {
	var out []view.Pair
	for _, name := range slices.Sorted(maps.Keys(of)) {
		out = append(out, view.Pair{Name: name, Value: of[name]})
	}
	return out
}

// holds reports whether one of some texts contains another, ignoring case.
func holds(part string, texts ...string) bool {
	part = strings.ToLower(part)
	return slices.ContainsFunc(texts,
		func(s string) bool { return strings.Contains(strings.ToLower(s), part) })
}
