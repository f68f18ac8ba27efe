package compiler

import (
	"path"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
)

// joinNoEffect combines the diagnostics of all environments about selectors and cluster types of
// the base that have no effect. It reports them once if they have no effect in any environment.
// If not all environments are built, it does not report them. A policy is reported in each
// environment if it is the reason that a deployment target there has no assignment. The message
// of a selector names the environment.
func (b *Build) joinNoEffect() {
	unassigns := map[inEnvironment]bool{}
	for _, d := range b.Diagnostics {
		if d.Code == diag.Unassigned {
			for _, of := range d.Because {
				unassigns[inEnvironment{d.Environment, of}] = true
			}
		}
	}
	everywhere := map[effect][]diag.Diagnostic{}
	ds := slices.DeleteFunc(b.Diagnostics, func(d diag.Diagnostic) bool {
		ofBase := hasNoEffect(d) && !slices.ContainsFunc(d.Sites, ofEnvironment)
		if of := (effect{d.Code, d.Path}); ofBase {
			everywhere[of] = append(everywhere[of], d)
		}
		return ofBase
	})
	for i := range ds {
		if hasNoEffect(ds[i]) {
			ds[i] = where(ds[i], "in environment "+ds[i].Environment)
		}
	}
	for _, of := range everywhere {
		if all := b.seenBy(of[0]); all > 1 && all == len(of) {
			suggests := func(d diag.Diagnostic) bool { return d.Suggestion.Wrong != "" }
			d := where(of[max(0, slices.IndexFunc(of, suggests))], "in any environment")
			d.Environment = ""
			ds = append(ds, d)
			continue
		} else if all == 1 && len(of) == 1 {
			ds = append(ds, where(of[0], "in environment "+of[0].Environment))
			continue
		}
		for _, d := range of {
			if unassigns[inEnvironment{d.Environment, entityOf(d).String()}] {
				ds = append(ds, where(d, "in environment "+d.Environment))
			}
		}
	}
	b.Diagnostics = ds
}

// inEnvironment is an entity of an environment, by its path.
type inEnvironment struct{ environment, entity string }

// effect identifies the diagnostics about the same selector or cluster type.
type effect struct {
	code diag.Code
	path string
}

// hasNoEffect reports whether a diagnostic is about a selector or a cluster type of an
// environment without effect. Rings are excluded, because they belong to a single environment and
// name it.
func hasNoEffect(d diag.Diagnostic) bool {
	return (d.Code == diag.SelectsNothing || d.Code == diag.EmptyClusterType) && d.Environment != "" &&
		entityOf(d).Collection != "environments"
}

func ofEnvironment(s diag.Site) bool {
	return strings.HasPrefix(path.Clean(s.Position.File), source.Environments+"/")
}

func entityOf(d diag.Diagnostic) model.Ref {
	names := append(model.Elements(d.Path), "", "")
	return model.Ref{Collection: names[0], Name: names[1]}
}

// where adds an environment to the message of a selector.
func where(d diag.Diagnostic, in string) diag.Diagnostic {
	if d.Code == diag.SelectsNothing {
		d.Message += " " + in
	}
	return d
}

// seenBy counts the environments that have the entity of a diagnostic. It returns 0 if not all
// environments have been read.
func (b *Build) seenBy(d diag.Diagnostic) int {
	if len(b.Environments) != len(b.Declarations) ||
		slices.ContainsFunc(b.Environments, func(e *engine.Environment) bool { return e.Model == nil }) {
		return 0
	}
	n := 0
	for _, e := range b.Environments {
		n += min(1, len(e.Model.Positions.Of(entityOf(d))))
	}
	return n
}
