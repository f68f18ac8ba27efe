package platform

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/query"
	"github.com/kalypso-io/kalypso/view"
)

// Policies returns the scheduling policies of an environment with their selections.
func (p *Platform) Policies(_ context.Context, environment, _ string) (*view.Policies, error) {
	e, err := p.readable(environment)
	if err != nil {
		return nil, err
	}
	out := &view.Policies{Environment: environment}
	for _, s := range query.SchedulingPolicies(p.build) {
		if s.Environment != environment {
			continue
		}
		row := view.Policy{
			Name: s.Name, DeploymentTargets: s.DeploymentTargets, ClusterTypes: s.ClusterTypes,
			Clusters: s.Clusters, Deny: s.Deny, Assignments: s.Assignments,
			Places: p.places(
				e.Model.Positions.Of(model.Ref{Collection: "schedulingPolicies", Name: s.Name})),
		}
		for _, x := range s.Except {
			text := fmt.Sprintf("deploymentTargets: %s, clusterTypes: %s", x.DeploymentTargets,
				x.ClusterTypes)
			if x.Clusters != "" {
				text += ", clusters: " + x.Clusters
			}
			row.Except = append(row.Except, text)
		}
		if s.Pin != nil {
			row.Pin = s.Pin.Version
			if s.Pin.Manifests != nil {
				row.Pin = strings.TrimSpace(row.Pin + " " + s.Pin.Manifests.String())
			}
		}
		for i := range e.Schedule.Assignments {
			if len(row.Selected) == listed {
				break
			}
			if slices.Contains(e.Schedule.Assignments[i].Policies, s.Name) {
				row.Selected = append(row.Selected, e.rows[i])
			}
		}
		out.Rows = append(out.Rows, row)
	}
	out.Graph, err = e.scheduleGraph()
	return out, err
}

// Configs returns the configs of an environment, by layer and name.
func (p *Platform) Configs(_ context.Context, environment, _ string) (*view.Configs, error) {
	e, err := p.readable(environment)
	if err != nil {
		return nil, err
	}
	out := &view.Configs{Environment: environment}
	for _, c := range query.Configs(p.build) {
		if c.Environment == environment {
			out.Rows = append(out.Rows, view.Config{
				Name: c.Name, Layer: c.Layer, Match: c.Match, Clusters: c.Clusters, Keys: c.Keys,
				Assignments: c.Assignments,
				Places:      p.places(e.Model.Positions.Of(model.Ref{Collection: "configs", Name: c.Name})),
			})
		}
	}
	slices.SortStableFunc(out.Rows, func(a, b view.Config) int { return a.Layer - b.Layer })
	out.Graph, err = e.configGraph()
	return out, err
}

// Diagnostics returns the diagnostics, errors first. The consequences of a diagnostic follow
// it.
func (p *Platform) Diagnostics(context.Context) (*view.Diagnostics, error) {
	out := &view.Diagnostics{}
	all, follows := diag.CausesFirst(p.build.Diagnostics)
	for i, d := range all {
		row := p.diagnostic(d)
		row.Follows = follows[i]
		out.Rows = append(out.Rows, row)
	}
	return out, nil
}

func (p *Platform) diagnostic(d diag.Diagnostic) view.Diagnostic {
	out := view.Diagnostic{
		Code: string(d.Code), Severity: string(d.Severity), Message: d.Message, Path: d.Path,
		Hint: d.Hint, Excerpt: [3]string{strings.TrimLeft(d.Excerpt.Before, "\t "), d.Excerpt.At,
			d.Excerpt.After},
		Assignments: d.Assignments,
	}
	for _, s := range d.Sites {
		if !s.Position.IsZero() {
			out.Places = append(out.Places, p.places([]model.Position{s.Position})...)
		}
	}
	return out
}
