package compose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Holder checks values against the constraints of tests. It remembers the answers,
// and is for one goroutine.
type Holder struct {
	eval  *expr.Evaluator
	known map[string][]expr.Problem
}

// NewHolder returns a holder for the compositions of the plan.
func (p *Plan) NewHolder() *Holder { return &Holder{p.NewEvaluator(), map[string][]expr.Problem{}} }

// Values checks the values of a graph against a constraint, which works like a contract. The graph
// must not have failed. Values returns a diagnostic for each path that breaks the constraint. The
// diagnostics are unresolved, and name no assignment.
func (h *Holder) Values(c *model.Contract, g *Graph) []diag.Diagnostic {
	return h.ValuesOn(c, g, nil)
}

// BrokenOn returns the paths that break a constraint, sorted. over overrides the graph's values.
func (h *Holder) BrokenOn(c *model.Contract, g *Graph, over model.Value) (paths []string) {
	values, _ := model.Merge(g.Values, over).WithoutNulls()
	for _, p := range h.problems(c, values) {
		paths = append(paths, p.Path)
	}
	slices.Sort(paths)
	return paths
}

// ValuesOn is Values for a cluster, whose own values override the graph's; on is nil for the graph
// without a cluster.
func (h *Holder) ValuesOn(c *model.Contract, g *Graph, on *model.Cluster) []diag.Diagnostic {
	values := g.Values
	if on != nil && on.Values != nil {
		values, _ = model.Merge(values, *on.Values).WithoutNulls()
	}
	problems := h.problems(c, values)
	if len(problems) == 0 {
		return nil
	}
	leaves := g.Leaves()
	var out []diag.Diagnostic
	for _, p := range problems {
		leaf, there := leafAt(leaves, p.Path)
		own := false // the cluster itself sets the value
		if on != nil && on.Values != nil {
			if v, is := lookup(*on.Values, p.Path); is {
				leaf.Value, there, own = v, v.Kind() != model.Null, true
			}
		}
		d := failure(c, p, leaf.Value, there)
		if len(p.Allowed) == 0 && !p.Unbounded {
			d = d.Hinting(hint(p, c.Ref))
		}
		for _, l := range leaves {
			if there && !own && l.Path == leaf.Path || p.Path != "" &&
				strings.HasPrefix(l.Path, p.Path+".") {
				d = origins(d, l.From)
			}
		}
		if own {
			d = d.At(model.Ref{Collection: "clusters", Name: on.Name}.At("values").At(p.Path),
				"the cluster's own")
		}
		out = append(out, d.At(c.Ref.At(p.Path), "("+describeContract(c.Ref)+")"))
	}
	return out
}

// Facts checks the facts of an assignment, or a number of assignments, against a constraint, as
// Values does. written returns the place in the source of a path.
func (h *Holder) Facts(c *model.Contract, facts model.Value,
	written func(path string) model.Ref) []diag.Diagnostic {
	var out []diag.Diagnostic
	for _, p := range h.problems(c, facts) {
		v, there := facts, p.Path == "" && facts.Kind() != model.Struct
		if p.Path != "" {
			v, there = lookup(facts, p.Path)
		}
		d := failure(c, p, v, there)
		if ref := written(p.Path); ref != (model.Ref{}) {
			d = d.At(ref, "")
		}
		out = append(out, d.At(c.Ref.At(p.Path), "("+describeContract(c.Ref)+")"))
	}
	return out
}

// problems checks a value against a constraint.
func (h *Holder) problems(c *model.Contract, v model.Value) []expr.Problem {
	if c.Mentions != nil && v.Kind() == model.Struct {
		v = project(v, c.Mentions)
	}
	key := c.Ref.String() + "\x00" + string(v.AppendBinary(nil))
	problems, known := h.known[key]
	if !known {
		problems = h.absent(c, v, h.ask(c, v))
		h.known[key] = problems
	}
	return problems
}

// mustBeAbsent is the constraint that nothing satisfies, and explicitError is CUE's
// message for it without a path.
const (
	mustBeAbsent  = "_|_"
	explicitError = "explicit error (_|_ literal)"
)

func (h *Holder) ask(c *model.Contract, v model.Value) []expr.Problem {
	return h.eval.Eval([]expr.Call{{Contract: c.Expr, Value: &v}})[0].Problems
}

// absent finds the keys that exist and must be absent: CUE does not name them, and does not report
// problems with the other keys.
func (h *Holder) absent(c *model.Contract, v model.Value, problems []expr.Problem) []expr.Problem {
	if !slices.ContainsFunc(problems, func(p expr.Problem) bool {
		return p.Path == "" &&
			strings.Contains(p.Message, explicitError)
	}) {
		return problems
	}
	var out []expr.Problem
	for _, f := range c.Fields {
		if _, there := lookup(v, f.Path); there && f.Text == mustBeAbsent {
			out = append(out, expr.Problem{Path: f.Path, Message: explicitError})
			v = withValue(v, f.Path, model.Value{})
		}
	}
	if len(out) == 0 {
		return problems
	}
	v, _ = v.WithoutNulls()
	return append(out, h.ask(c, v)...)
}

// failure returns the diagnostic of a test about a value; there reports whether the value exists.
func failure(c *model.Contract, p expr.Problem, v model.Value, there bool) diag.Diagnostic {
	if p.Unbounded {
		return unbounded("", "a test", p)
	}
	what := p.Path
	if c.Ref.Path == "count" {
		what = "the number of assignments that it matches"
	}
	return diag.New(diag.TestFailed,
		describeContract(c.Ref)+" fails: "+wrong(c, p, what, v, there)).On(p.Path)
}

// wrong describes the problem of a value, and the requirement.
func wrong(c *model.Contract, p expr.Problem, what string, v model.Value, there bool) string {
	switch {
	case what == "" && p.Missing:
		return "no alternative has all its keys"
	case what == "":
		return p.Message
	case p.Unknown:
		return fmt.Sprintf("key %s is not allowed", what)
	case p.Missing && !there:
		return what + " has no value" + wanted(c, p.Path)
	case !there:
		return what + ": " + p.Message
	case strings.Contains(p.Message, explicitError):
		return fmt.Sprintf("%s is %s, and must be absent", what, shown(p.Path, v))
	case len(p.Allowed) > 0:
		return fmt.Sprintf("%s is %s, and must be %s", what, shown(p.Path, v),
			strings.Join(p.Allowed, " or "))
	}
	if says := wanted(c, p.Path); says != "" {
		return fmt.Sprintf("%s is %s%s", what, shown(p.Path, v), says)
	}
	return what + ": " + p.Message
}

// wanted describes a constraint's requirement for a path, as written; "" if the
// constraint does not name the path.
func wanted(c *model.Contract, path string) string {
	for _, f := range c.Fields {
		if f.Path == path && f.Text != "" {
			return ", and must be " + short(f.Text)
		}
	}
	return ""
}
