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
	"github.com/kalypso-io/kalypso/internal/spelling"
)

// Bootstrapping has the objects that a cluster needs to pull its folder or its entry.
type Bootstrapping struct {
	Objects []byte // a YAML stream
	// Groups are the API groups of the objects that reconcile folders and workloads, and
	// Namespace is their namespace. Both are empty for a reconciler that does not run on
	// Kubernetes.
	Groups    []string
	Namespace string
}

// Bootstrap returns the objects that a cluster needs to pull its folder or its entry. cluster is
// the name of a cluster, or "" for any cluster of the cluster type. clusterType may be "" for a
// cluster that the platform lists. The request must name one environment.
//
// The diagnostics are the errors of the platform and the findings of the reconciler. If there is
// an error, the stream may be incomplete. With policies, the stream ends with the bounds of
// workspaces, which the clusters enforce themselves.
func Bootstrap(ctx context.Context, r Request, clusterType, cluster string,
	policies bool) (Bootstrapping, []diag.Diagnostic, error) {
	var none Bootstrapping
	b, err := Compile(ctx, r)
	if err != nil {
		return none, nil, err
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
		return none, errs, nil
	}
	if clusterType, err = followed(e.Model, clusterType, cluster); err != nil && len(errs) == 0 {
		return none, nil, err
	} else if err != nil {
		return none, errs, nil
	}
	i := slices.IndexFunc(e.Model.ClusterTypes,
		func(c model.ClusterType) bool { return c.Name == clusterType })
	if i < 0 {
		if len(errs) > 0 {
			return none, errs, nil
		}
		var names []string
		for _, c := range e.Model.ClusterTypes {
			names = append(names, c.TypeName())
		}
		if slices.ContainsFunc(e.Model.Clusters,
			func(c model.Cluster) bool { return c.Name == clusterType }) {
			return none, nil, fmt.Errorf("%s is a cluster of %s, and not a cluster type: kalypso "+
				"bootstrap cluster %[2]s/%[1]s", clusterType, e.Name)
		}
		slices.Sort(names)
		return none, nil, fmt.Errorf("there is no cluster type %s in %s; %s", clusterType, e.Name,
			spelling.DidYouMean(clusterType, slices.Compact(names)))
	}
	ct := &e.Model.ClusterTypes[i]
	if !e.Reconciled(ct) {
		return none, errs, nil
	}
	for _, out := range e.Tree.ClusterTypes {
		if out.Name == clusterType {
			content, err := out.Content(ctx)
			if err != nil {
				return none, nil, err
			}
			var bounds []byte
			if policies {
				var unknown []diag.Diagnostic
				if bounds, unknown = e.Policies(ct); len(unknown) > 0 {
					return none, diag.Sort(append(errs, unknown...)), nil
				}
			}
			objects, ds := e.Bootstrap(ct, cluster, content.Folders)
			groups, namespace := e.Observed(ct)
			return Bootstrapping{streamOf(objects, bounds), groups, namespace},
				diag.Sort(append(errs, ds...)), nil
		}
	}
	return none, errs, nil
}

// streamOf joins YAML streams, and skips empty ones.
func streamOf(parts ...[]byte) []byte {
	return bytes.Join(slices.DeleteFunc(parts, func(p []byte) bool { return len(p) == 0 }),
		[]byte("---\n"))
}

// concerns reports whether an error counts for a cluster type. An error of assignments counts
// only for their own cluster types, which keep their folders. An error of another type does not
// count.
func concerns(d diag.Diagnostic, environment, clusterType string) bool {
	of := func(assignment string) bool {
		return strings.HasPrefix(assignment,
			environment+"/"+clusterType+"/")
	}
	if len(d.Assignments) == 0 {
		self := model.Ref{Collection: "clusterTypes", Name: clusterType}.String()
		return !strings.HasPrefix(d.Path, "clusterTypes.") || d.Path == self ||
			strings.HasPrefix(d.Path, self+".")
	}
	return slices.ContainsFunc(d.Assignments, of)
}

// followed returns the folder of a cluster, or of a cluster type if cluster is "". If a type
// lists no clusters, a cluster of it may have any name. followed returns an error if there is no
// such cluster, or if each cluster of the type pulls its own entry.
func followed(m *model.Environment, clusterType, cluster string) (string, error) {
	var names []string
	for i := range m.Clusters {
		switch c := &m.Clusters[i]; {
		case c.Name == cluster && clusterType != "" && c.ClusterType != clusterType:
			return "", fmt.Errorf("cluster %s is of type %s, and not of %s", cluster, c.ClusterType,
				clusterType)
		case c.Name == cluster:
			return c.Folder, nil
		case clusterType == "" || c.ClusterType == clusterType:
			names = append(names, c.Name)
		}
	}
	if cluster != "" && clusterType == "" {
		return "", fmt.Errorf("the environment has no cluster %s; %s", cluster,
			cmp.Or(spelling.DidYouMean(cluster, names), "the platform lists none"))
	}
	if cluster != "" && len(names) > 0 {
		return "", fmt.Errorf("cluster type %s has no cluster %s; %s", clusterType, cluster,
			spelling.DidYouMean(cluster, names))
	}
	for i := range m.ClusterTypes {
		if ct := &m.ClusterTypes[i]; ct.TypeName() == clusterType && ct.Entries == model.ClusterEntries {
			example := "NAME"
			if len(names) > 0 {
				example = names[0]
			}
			return "", fmt.Errorf("each cluster of type %s pulls an entry of its own: kalypso bootstrap "+
				"cluster %s/%s", clusterType, m.Name, example)
		}
	}
	return clusterType, nil
}
