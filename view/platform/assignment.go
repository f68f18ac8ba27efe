package platform

import (
	"context"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/compose"
	"github.com/kalypso-io/kalypso/compiler/query"
	"github.com/kalypso-io/kalypso/view"
)

// Assignment returns an assignment with its values and objects, or the reason why the
// pair is not assigned.
func (p *Platform) Assignment(ctx context.Context, environment, clusterType,
	target string) (*view.Assignment, error) {
	e, err := p.readable(environment)
	if err != nil {
		return nil, err
	}
	x, ok, err := query.Explain(ctx, p.build, environment, clusterType, target, "")
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, &view.NotFoundError{Message: err.Error()}
	case !ok:
		return nil, &view.NotFoundError{Message: "errors hide all of " + environment +
			": see the diagnostics"}
	}
	if !x.Assigned {
		out := &view.Assignment{Why: x.Absence.String(), Places: p.named(x.Places)}
		out.Environment, out.ClusterType, out.Target = environment, clusterType, target
		return out, nil
	}
	a := x.Assignment
	i, _ := e.Schedule.Index(a.ClusterType, target)
	out := &view.Assignment{
		AssignmentRow: e.rows[i], Assigned: true, Workspace: a.Workspace, Application: a.Application,
		Reconciler: a.Reconciler,
		Rendered:   a.Render, DependsOn: a.DependsOn, Policies: p.named(x.Policies),
		Values: p.values(x.Values), ChartValues: p.values(x.ChartValues),
	}
	id := e.Schedule.Assignments[i].ID(environment)
	for _, d := range p.build.Diagnostics {
		for _, of := range d.Assignments {
			if of == id {
				out.Diagnostics = append(out.Diagnostics, p.diagnostic(d))
			}
		}
	}
	for n := 0; n < len(e.Model.Clusters) && len(out.Clusters) < listed; n++ {
		if c := &e.Model.Clusters[n]; c.Folder == a.ClusterType {
			out.Clusters = append(out.Clusters, c.Name)
		}
	}
	out.Path = query.ConfigPath(e.Environment, i)
	files, err := e.Files(ctx, i)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		out.Objects = append(out.Objects, objectsOf(f)...)
	}
	return out, nil
}

func (p *Platform) values(all []query.Value) []view.Value {
	var out []view.Value
	for _, v := range all {
		out = append(out, view.Value{Path: v.Path, Value: v.Value.String(), Secret: v.Secret,
			From: p.origins(v.From), Replaced: p.origins(v.Replaced)})
	}
	return out
}

func (p *Platform) origins(all []query.Origin) []view.Origin {
	var out []view.Origin
	for _, o := range all {
		out = append(out, view.Origin{Text: origin(o), Was: o.Text, Places: p.places(o.Positions)})
	}
	return out
}

func origin(o query.Origin) string {
	switch {
	case o.Layer != nil:
		return fmt.Sprintf("%s of config %s, layer %d", o.Kind, o.Name, *o.Layer)
	case o.Kind == compose.FromContract:
		return "contract " + o.Name
	}
	return fmt.Sprintf("%s of %s", o.Kind, o.Name)
}

// objectsOf returns the documents of a YAML file as objects. For another file it returns the
// file.
func objectsOf(f backends.File) []view.Object {
	if !strings.HasSuffix(f.Path, ".yaml") {
		return []view.Object{{File: f.Path, Text: string(f.Data)}}
	}
	var out []view.Object
	for text := range strings.SplitSeq("\n"+string(f.Data), "\n---\n") {
		if strings.TrimSpace(text) != "" {
			out = append(out,
				view.Object{File: f.Path, Name: nameOf(text), Text: strings.TrimPrefix(text, "\n")})
		}
	}
	return out
}

// nameOf is the kind and name of an object of Kubernetes; "" for other values.
func nameOf(text string) string {
	var o struct {
		Kind     string
		Metadata struct{ Name, Namespace string }
	}
	if yaml.Unmarshal([]byte(text), &o) != nil || o.Kind == "" || o.Metadata.Name == "" {
		return ""
	}
	if o.Metadata.Namespace == "" {
		return o.Kind + " " + o.Metadata.Name
	}
	return o.Kind + " " + o.Metadata.Namespace + "/" + o.Metadata.Name
}
