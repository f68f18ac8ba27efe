package compiler

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Bootstrap returns what a cluster of a type needs to pull its folder, as a YAML
// stream: the named one, or any of them where cluster is "". The request names one
// environment. Diagnostics are those of the platform's errors and of the
// reconciler; with an error the stream may be a part of it. With policies the stream
// ends with the bounds of workspaces, for the clusters themselves.
func Bootstrap(ctx context.Context, r Request, clusterType, cluster string, policies bool) ([]byte, []diag.Diagnostic, error) {
	b, err := Compile(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	defer b.Close() //nolint:errcheck // a temporary folder is left
	e := b.Environments[0]
	var errs []diag.Diagnostic
	for _, d := range b.Diagnostics {
		if d.Severity == diag.Error && concerns(d, e.Name, clusterType) {
			errs = append(errs, d)
		}
	}
	if e.Tree == nil {
		return nil, errs, nil
	}
	i := slices.IndexFunc(e.Model.ClusterTypes, func(c model.ClusterType) bool { return c.Name == clusterType })
	if i < 0 {
		if len(errs) > 0 {
			return nil, errs, nil
		}
		var names []string
		for _, c := range e.Model.ClusterTypes {
			names = append(names, c.Name)
		}
		return nil, nil, fmt.Errorf("there is no cluster type %s in %s; %s", clusterType, e.Name, diag.DidYouMean(clusterType, names))
	}
	ct := &e.Model.ClusterTypes[i]
	clusters := clustersOf(e.Model, clusterType)
	if err := knows(clusters, clusterType, cluster); err != nil && len(errs) == 0 {
		return nil, nil, err
	} else if err != nil {
		return nil, errs, nil
	}
	if !e.Reconciled(ct) {
		return nil, errs, nil
	}
	for _, out := range e.Tree.ClusterTypes {
		if out.Name == clusterType {
			content, err := out.Content(ctx)
			if err != nil {
				return nil, nil, err
			}
			var bounds []byte
			if policies {
				var unknown []diag.Diagnostic
				if bounds, unknown = e.Policies(ct); len(unknown) > 0 {
					return nil, diag.Sort(append(errs, unknown...)), nil
				}
			}
			objects, ds := e.Bootstrap(ct, cluster, content.Folders)
			return streamOf(objects, bounds), diag.Sort(append(errs, ds...)), nil
		}
	}
	return nil, errs, nil
}

// streamOf joins YAML streams, of which each may be empty.
func streamOf(parts ...[]byte) []byte {
	return bytes.Join(slices.DeleteFunc(parts, func(p []byte) bool { return len(p) == 0 }), []byte("---\n"))
}

// concerns says whether an error counts for a cluster type: one of assignments
// does for theirs alone, whose folders are kept, and so does one of another type.
func concerns(d diag.Diagnostic, environment, clusterType string) bool {
	of := func(assignment string) bool { return strings.HasPrefix(assignment, environment+"/"+clusterType+"/") }
	if len(d.Assignments) == 0 {
		self := model.Ref{Collection: "clusterTypes", Name: clusterType}.String()
		return !strings.HasPrefix(d.Path, "clusterTypes.") || d.Path == self || strings.HasPrefix(d.Path, self+".")
	}
	return slices.ContainsFunc(d.Assignments, of)
}

// clustersOf returns the clusters of a type, sorted by name.
func clustersOf(m *model.Environment, clusterType string) []model.Cluster {
	var out []model.Cluster
	for _, c := range m.Clusters {
		if c.ClusterType == clusterType {
			out = append(out, c)
		}
	}
	return out
}

// knows returns an error where a cluster is named that is none of the type's.
func knows(clusters []model.Cluster, clusterType, cluster string) error {
	var names []string
	for _, c := range clusters {
		names = append(names, c.Name)
	}
	if cluster == "" || slices.Contains(names, cluster) {
		return nil
	}
	return fmt.Errorf("cluster type %s has no cluster %s; %s", clusterType, cluster, cmp.Or(diag.DidYouMean(cluster, names), "the platform lists none of its clusters"))
}
