package zarf

import (
	"fmt"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
)

// options are the fields of #Zarf.
type options struct {
	Architecture string
	Version      string
	Required     bool
	Default      bool
	Only         *only
	Images       []string
}

// optionsOf returns the reconciler's fields, which Zarf can follow together.
func optionsOf(s backends.Spec) (options, []diag.Diagnostic) {
	var o options
	if err := s.Decode(&o); err != nil {
		return o, []diag.Diagnostic{diag.New(diag.BadSpec,
			"the reconciler's fields cannot be read: "+err.Error()).At(s.Ref, "")}
	}
	if o.Only.everywhere() {
		o.Only = nil
	}
	var ds []diag.Diagnostic
	if o.Required && o.Default {
		ds = append(ds, diag.New(diag.BadSpec, "a component that is required is not one that is deployed by default").
			On("zarf.default").At(s.Ref.At("zarf.default"), "").At(s.Ref.At("zarf.required"), "").
			Hinting("set required: false with default: true, or remove default"))
	}
	if o.Only != nil && o.Only.Cluster != nil {
		if wanted := o.Only.Cluster.Architecture; wanted != "" && wanted != o.Architecture {
			ds = append(ds, diag.New(diag.BadSpec,
				fmt.Sprintf("a component for clusters of %s would be left out of a package for %s", wanted,
					o.Architecture)).
				On("zarf.only.cluster.architecture").At(s.Ref.At("zarf.only.cluster.architecture"),
				"").At(s.Ref.At("zarf.architecture"), "").
				Hinting("set architecture to that of the clusters"))
		}
	}
	return o, ds
}

// everywhere says whether a component is deployed everywhere.
func (o *only) everywhere() bool {
	return o == nil || o.LocalOS == "" && (o.Cluster == nil || o.Cluster.Architecture == "" && len(o.Cluster.Distros) == 0)
}
