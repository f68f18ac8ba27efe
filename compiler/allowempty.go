package compiler

import (
	"fmt"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/internal/spelling"
)

// AllEmpty stands for all selectors in Request.AllowEmpty.
const AllEmpty = engine.AllEmpty

// UnknownSelectorError is returned if no environment of the build has a scheduling policy, config
// or config schema with the given name.
type UnknownSelectorError struct {
	Name  string
	Known []string
}

// Error names the unknown selector, and the known name that was probably meant.
func (e *UnknownSelectorError) Error() string {
	s := fmt.Sprintf("there is no scheduling policy, config or config schema %s", e.Name)
	if hint := spelling.DidYouMean(e.Name, e.Known); hint != "" {
		s += "; " + hint
	}
	return s
}

// checkAllowEmpty looks up the names in Request.AllowEmpty, and returns an UnknownSelectorError
// for an unknown name. If an environment cannot be read, it may have any name.
func (b *Build) checkAllowEmpty(names []string) error {
	var known []string
	add := func(collection, name string) { known = append(known, name, collection+"."+name) }
	for _, e := range b.Environments {
		if e.Model == nil || e.Model.Incomplete {
			return nil
		}
		for i := range e.Model.SchedulingPolicies {
			add("schedulingPolicies", e.Model.SchedulingPolicies[i].Name)
		}
		for i := range e.Model.Configs {
			add("configs", e.Model.Configs[i].Name)
		}
		for i := range e.Model.ConfigSchemas {
			add("configSchemas", e.Model.ConfigSchemas[i].Name)
		}
	}
	for _, name := range names {
		if name != AllEmpty && !slices.Contains(known, name) {
			return &UnknownSelectorError{name, known}
		}
	}
	return nil
}
