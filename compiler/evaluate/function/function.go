// Package function has the calls of entities that are functions of the assignment: those
// that use #assignment, and are evaluated again for each assignment that they are for.
//
// For example, the config whereabouts of examples/hello-world has the value
// "\(#assignment.environment)/\(#assignment.clusterType)". For the facts of an assignment of
// environment dev to the cluster type drone, its outcome is the value "dev/drone".
package function

import (
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Call asks for an entity as a function of one assignment.
type Call struct {
	// Entity is a config, a namespace service or a reconciler.
	Entity model.Ref
	// Facts are the fields of #assignment that are known, as a struct.
	Facts model.Value
	// Field, if given, asks for that one field of the entity instead of all.
	Field string
	// Shared asks for the fields of a reconciler's backend that all assignments of
	// a cluster type share. Facts hold what these have in common.
	Shared bool
}

// Outcome is the result of a call: trees for a config, or a Spec for other entities.
type Outcome struct {
	Values, Defaults, Overrides model.Tree
	Spec                        model.Value
	Diagnostics                 []diag.Diagnostic
}
