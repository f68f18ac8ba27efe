// Package function has the calls of functions of the assignment. These are entities that use
// #assignment, so that they are evaluated again for each of their assignments.
//
// For example, the config whereabouts of examples/hello-world has the value
// "\(#assignment.environment)/\(#assignment.clusterType)". For the facts of an assignment of
// environment dev to the cluster type drone, its outcome is the value "dev/drone".
package function

import (
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Call is a call of an entity as a function of one assignment.
type Call struct {
	// Entity is a config, a namespace service or a reconciler.
	Entity model.Ref
	// Facts are the known fields of #assignment, as a struct.
	Facts model.Value
	// Field, if set, restricts the call to that field of the entity.
	Field string
	// Shared restricts the call to the fields of a reconciler's backend that all assignments of
	// a cluster type share. Facts then has the common facts of these assignments.
	Shared bool
}

// Outcome is the result of a call: trees for a config, or a Spec for other entities.
type Outcome struct {
	Values, Defaults, Overrides model.Tree
	Spec                        model.Value
	Diagnostics                 []diag.Diagnostic
}
