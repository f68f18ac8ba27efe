package compiler

import (
	"context"
	"fmt"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Bootstrap returns what a cluster of a type needs to pull its folder, as a YAML
// stream. The request names one environment. Diagnostics are those of the
// platform's errors and of the reconciler; with an error the stream may be a
// part of it.
func Bootstrap(ctx context.Context, r Request, clusterType string) ([]byte, []diag.Diagnostic, error) {
	b, err := Compile(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	e := b.Environments[0]
	var errs []diag.Diagnostic
	for _, d := range b.Diagnostics {
		if d.Severity == diag.Error {
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
	reconciler := e.reconciler(ct)
	if _, known := e.Plan.Shared[clusterType]; reconciler == nil || !known {
		return nil, errs, nil
	}
	for _, out := range e.Tree.ClusterTypes {
		if out.Name == clusterType {
			content, err := out.Content()
			if err != nil {
				return nil, nil, err
			}
			objects, ds := allBackends[reconciler.Backend].Bootstrap(e.backendClusterType(ct), infos(content.Folders))
			diag.Resolve(ds, e.Model.Positions)
			return objects, diag.Sort(append(errs, ds...)), nil
		}
	}
	return nil, errs, nil
}
