package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Holder returns which of several claimants has a name, and why; -1 where none has it. A
// claimant is a registration, or nil for the platform's own files. What the platform declares
// once is its own, and else the name is that of the only registration whose names cover it. What
// no names cover is whose it is alone, unless a registration that cannot be read may bring it.
func (x *Entities) Holder(name string, claimants []*model.Registration) (int, string) {
	var own, covering []int
	for i, r := range claimants {
		switch {
		case r == nil:
			own = append(own, i)
		case r.Names.Allow(name):
			covering = append(covering, i)
		}
	}
	unread := slices.IndexFunc(x.Unread, func(r *model.Registration) bool { return r.Names.Allow(name) })
	switch {
	case len(own) == 1:
		return own[0], "the platform declares it itself"
	case len(own) > 1:
		return -1, ""
	case len(covering) == 1:
		return covering[0], "its names cover " + name
	case len(covering) == 0 && unread >= 0:
		return -1, fmt.Sprintf("registration %s, whose names cover %s, cannot be read", x.Unread[unread].Name, name)
	case len(claimants) == 1:
		return 0, ""
	case len(covering) == 0:
		return -1, "the names of none cover " + name
	}
	of := make([]*model.Registration, len(covering))
	for i, n := range covering {
		of[i] = claimants[n]
	}
	return -1, "the names of " + Registrations(of) + " cover " + name
}

// Registrations lists registrations for people, as "registrations a, b and c".
func Registrations(of []*model.Registration) string {
	var list []string
	for _, r := range of {
		if r != nil {
			list = append(list, r.Name)
		}
	}
	slices.Sort(list)
	if list = slices.Compact(list); len(list) == 1 {
		return "registration " + list[0]
	}
	last := len(list) - 1
	return "registrations " + strings.Join(list[:last], ", ") + " and " + list[last]
}

// ClaimHint says how the platform decides whose a name is.
func ClaimHint(name string) string {
	return fmt.Sprintf("to say whose it is, write %q into names of that registration, and leave it "+
		"out of the names of the others", name)
}

// target is a deployment target with a full name that others may have.
type target struct {
	workload     *model.Workload
	registration *model.Registration // nil for the platform's own
	name         string
}

func (t *target) ref() model.Ref { return t.workload.TargetRef(t.name) }

func (t *target) String() string {
	text := fmt.Sprintf("target %s of workload %s", t.name, t.workload.Name)
	if t.registration != nil {
		text += " of registration " + t.registration.Name
	}
	return text
}

// fullNames reports full names that several deployment targets have. Of these only the target
// stays whose full name it is.
func (x *Entities) fullNames(env *model.Environment) {
	registrations := map[string]*model.Registration{}
	for i := range env.Registrations {
		registrations[env.Registrations[i].Name] = &env.Registrations[i]
	}
	claims := map[string][]target{}
	for i := range env.Workloads {
		w := &env.Workloads[i]
		for _, t := range w.Targets {
			claims[t.FullName] = append(claims[t.FullName], target{w, registrations[w.Registration], t.Name})
		}
	}
	for _, fullName := range slices.Sorted(maps.Keys(claims)) {
		by := claims[fullName]
		claimants := make([]*model.Registration, len(by))
		for i := range by {
			claimants[i] = by[i].registration
		}
		holder, why := x.Holder(fullName, claimants)
		if len(by) == 1 && holder == 0 {
			continue
		}
		x.contested(fullName, by, holder, why)
		for i, t := range by {
			if i != holder {
				t.workload.Targets = slices.DeleteFunc(t.workload.Targets,
					func(of model.DeploymentTarget) bool { return of.Name == t.name })
			}
		}
	}
}

// contested reports that several targets have a full name, for each that does not stay.
func (x *Entities) contested(fullName string, by []target, holder int, why string) {
	hint := "rename one of the workloads or targets"
	if slices.ContainsFunc(by, func(t target) bool { return t.registration != nil }) {
		hint += "; " + ClaimHint(fullName)
	}
	var list []string
	for i := range by {
		list = append(list, by[i].String())
	}
	text, have := strings.Join(list, " and "), "have"
	if len(by) == 1 {
		have = "has"
	}
	text = fmt.Sprintf("%s %s the full name %s", text, have, fullName)
	switch {
	case holder >= 0:
		text += fmt.Sprintf(", which is that of the %s: %s", by[holder].String(), why)
	case why != "":
		text += ", and " + why
	}
	d := diag.New(diag.DuplicateTarget, text)
	for i := range by {
		d = d.At(by[i].ref(), "")
	}
	for i := range by {
		if i != holder {
			x.Fail(by[i].ref(), d.On(by[i].ref().String()).Hinting(hint))
		}
	}
}
