package query

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/credential"
	"github.com/kalypso-io/kalypso/view/graph"
)

// PromotionGraph is how commits come from environment to environment, and through their rings:
// with gates, and the branches of source and tree. An environment is highlighted with all that a
// commit passes before it comes there; "" for none.
func PromotionGraph(all []model.Declaration, environment string) *graph.Graph {
	d := newDrawing("Promotion", nil)
	last := map[string][]string{} // by environment, what passes a commit on
	for i := range all {
		last[all[i].Name] = d.stages(&all[i])
	}
	for i := range all {
		for _, before := range all[i].Promotion.After {
			for _, id := range last[before] {
				d.edge(id, "environment/"+all[i].Name, "passes commits to")
			}
		}
	}
	g := d.finish()
	if environment != "" {
		g.Highlight(d.reach("environment/"+environment, false))
	}
	return g
}

// stages adds an environment with its rings, and returns what passes a commit on.
func (d *drawing) stages(of *model.Declaration) (last []string) {
	p := &of.Promotion
	detail := []string{}
	if p.Any && len(p.After) > 1 {
		detail = append(detail, "after any of them")
	}
	if p.Advance != "" && p.Advance != model.LatestPassed {
		detail = append(detail, "advance: "+string(p.Advance))
	}
	if p.Source != nil {
		detail = append(detail, fmt.Sprintf("its files: branch %s, folder %s", p.Source.Branch, p.Source.Path))
	}
	if g := of.GitOps; g != nil && g.OCI != "" {
		detail = append(detail, "tree: tag "+g.Tag, g.OCI)
	} else if g != nil {
		detail = append(detail, "tree: branch "+g.Branch, credential.Hide(g.Repo))
	}
	detail = append(detail, gateTexts(&p.Gates)...)
	if of.Invalid || of.NoRings {
		detail = append(detail, "has errors: some may be missing here")
	}
	environment := "environment/" + of.Name
	if len(p.Rings) == 0 {
		return []string{d.node("", environment, "environment", of.Name, detail...)}
	}
	group := "environments/" + of.Name
	d.Groups = append(d.Groups, graph.Group{ID: group, Label: of.Name})
	d.node(group, environment, "environment", of.Name, detail...)
	before := map[string]bool{}
	for i := range p.Rings {
		r := &p.Rings[i]
		id := "ring/" + of.Name + "/" + r.Name
		d.node(group, id, "ring", r.Name, slices.Concat([]string{r.Select.String()}, gateTexts(&r.Gates))...)
		for _, after := range r.After {
			before[after] = true
			d.edge("ring/"+of.Name+"/"+after, id, "passes commits to")
		}
		if len(r.After) == 0 {
			d.edge(environment, id, "passes commits to")
		}
	}
	for i := range p.Rings {
		if !before[p.Rings[i].Name] {
			last = append(last, "ring/"+of.Name+"/"+p.Rings[i].Name)
		}
	}
	return last
}

// gateTexts says in a line each what gates ask.
func gateTexts(g *model.Gates) (out []string) {
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if r := g.Rollout; r != nil {
		if r.Source == "none" {
			say("rollout: is not waited for")
		} else {
			say("rollout: %s healthy%s", r.Min, within(r.Timeout))
		}
		if r.MaxFailed > 0 {
			say("rollout: at most %d failed", r.MaxFailed)
		}
		for _, s := range r.Status {
			say("rollout status: %s", s.Name)
		}
	}
	for _, s := range g.Status {
		say("status: %s", s.Name)
	}
	if s := g.Soak; s != nil && s.Environment != "" {
		say("soak: %s in %s", spanText(s.For), s.Environment)
	} else if s != nil {
		say("soak: %s", spanText(s.For))
	}
	if g.Approvals != nil {
		say("approvals: %d", g.Approvals.Count)
	}
	for _, w := range g.Windows {
		only := "only"
		if w.Deny {
			only = "not"
		}
		say("window: %s %s to %s %s", only, w.From, w.To, w.TZ)
	}
	for _, h := range g.HTTP {
		say("asks %s", h.Name)
	}
	for _, p := range g.Policy {
		say("policy: %s", p.Name)
	}
	if b := g.Budget; b != nil {
		for _, of := range []struct {
			most *int
			what string
		}{{b.Assignments, "assignments"}, {b.ClusterTypes, "cluster types"}, {b.Clusters, "clusters"}} {
			if of.most != nil {
				say("budget: %d %s", *of.most, of.what)
			}
		}
	}
	return out
}

func within(timeout time.Duration) string {
	if timeout == 0 {
		return ""
	}
	return " within " + spanText(timeout)
}

// spanText returns a time span without parts that are zero.
func spanText(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
