package schedule

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// pinnedTarget is a deployment target after the pins of some policies. It is unchanged if the
// pins have problems.
type pinnedTarget struct {
	version   string
	manifests model.Manifests
	problems  []diag.Diagnostic
}

// pins remembers pinned targets, because many assignments share them.
type pins struct{ known map[string]pinnedTarget }

// apply returns the target as the pins of these policies leave it.
func (p *pins) apply(t target, policies []*model.SchedulingPolicy) pinnedTarget {
	key := t.FullName
	for _, policy := range policies {
		key += "/" + policy.Name // neither has a slash
	}
	known, ok := p.known[key]
	if !ok {
		known = pin(t, policies)
		p.known[key] = known
	}
	return known
}

// change is one field that a pin replaces.
type change struct {
	policy string
	// slot identifies the field that the pin replaces. All spellings of a source's revision
	// have the same slot.
	slot  string
	field string // its path, such as manifests.git.tag
	value string
}

// same reports whether two changes of one slot have the same result.
func (c change) same(d change) bool { return c.field == d.field && c.value == d.value }

func (c change) String() string {
	return c.field + ": " + string(model.AppendJSONString(nil, c.value))
}

// pin applies the policies' pins, which must fit the target and each other.
func pin(t target, policies []*model.SchedulingPolicy) pinnedTarget {
	out := pinnedTarget{version: t.Version, manifests: copyManifests(t.Manifests)}
	fields := pinnable(&out.version, &out.manifests)
	bySlot := make(map[string][]change)
	var slots []string
	winning := highest(policies)
	for _, p := range policies {
		changes := changesOf(p)
		out.problems = append(out.problems, misfits(t, p, changes, fields)...)
		if !slices.Contains(winning, p) {
			continue
		}
		for _, c := range changes {
			if bySlot[c.slot] == nil {
				slots = append(slots, c.slot)
			}
			bySlot[c.slot] = append(bySlot[c.slot], c)
		}
	}
	if len(out.problems) == 0 {
		out.problems = conflicts(t, slots, bySlot, policies)
	}
	if len(out.problems) > 0 {
		out.version, out.manifests = t.Version, t.Manifests
		return out
	}
	for _, slot := range slots {
		replace(fields, bySlot[slot][0])
	}
	return out
}

// replace makes a change. A revision replaces the present revision.
func replace(fields map[string]*string, c change) {
	if c.slot != c.field {
		source := strings.TrimSuffix(c.slot, revisionSlot)
		for _, r := range revisions {
			if other := fields[source+r]; other != nil {
				*other = ""
			}
		}
	}
	*fields[c.field] = c.value
}

// changesOf returns the fields that a policy's pin replaces, sorted.
func changesOf(p *model.SchedulingPolicy) []change {
	var out []change
	var walk func(path string, v model.Value)
	walk = func(path string, v model.Value) {
		if !v.IsScalar() {
			for _, f := range v.Fields() {
				walk(model.JoinPath(path, model.Label(f.Name)), f.Value)
			}
			return
		}
		slot := path
		if dot := strings.LastIndexByte(path, '.') + 1; slices.Contains(revisions, path[dot:]) {
			slot = path[:dot] + revisionSlot
		}
		out = append(out, change{p.Name, slot, path, v.Text()})
	}
	if p.Pin.Manifests != nil {
		walk("manifests", *p.Pin.Manifests)
	}
	if p.Pin.Version != "" {
		walk("version", model.StringOf(p.Pin.Version))
	}
	return out
}

// misfits reports the changes that the target has no place for, and a pin with
// two revisions of one source.
func misfits(t target, p *model.SchedulingPolicy, changes []change,
	fields map[string]*string) []diag.Diagnostic {
	ref := model.Ref{Collection: "schedulingPolicies", Name: p.Name, Path: "pin"}
	problem := func(message string, c change) diag.Diagnostic {
		return diag.New(diag.PinMismatch, message).On(ref.At(c.field).String()).
			At(ref.At(c.field), c.String()).At(t.ref().At("manifests"), "the manifests of "+t.FullName)
	}
	var out []diag.Diagnostic
	first := make(map[string]change)
	for _, c := range changes {
		if fields[c.field] == nil {
			message := fmt.Sprintf("policy %s pins %s, which %s does not have", p.Name, c.field, t.FullName)
			can := strings.Join(slices.Sorted(maps.Keys(fields)), ", ")
			out = append(out, problem(message, c).Hinting("what can be pinned of it: "+can))
			continue
		}
		if other, ok := first[c.slot]; ok {
			message := fmt.Sprintf("policy %s pins two revisions of one source: %s and %s", p.Name, other, c)
			out = append(out, problem(message, c).Hinting("leave one of them"))
			continue
		}
		first[c.slot] = c
	}
	return out
}

// conflicts reports the slots that policies fill differently.
func conflicts(t target, slots []string, bySlot map[string][]change,
	policies []*model.SchedulingPolicy) []diag.Diagnostic {
	way := "or write highest: true in each pin to take the highest version"
	if !slices.ContainsFunc(policies, func(p *model.SchedulingPolicy) bool { return !p.Pin.Highest }) {
		way = "or pin versions that highest: true can compare, such as 1.2.3 or v1.2.3"
	}
	ref := func(c change) model.Ref {
		return model.Ref{Collection: "schedulingPolicies", Name: c.policy, Path: "pin"}
	}
	var out []diag.Diagnostic
	for _, slot := range slots {
		changes := bySlot[slot]
		i := slices.IndexFunc(changes, func(c change) bool { return !c.same(changes[0]) })
		if i < 0 {
			continue
		}
		d := diag.New(diag.PinConflict, fmt.Sprintf("policies %s and %s pin %s of %s differently",
			changes[0].policy, changes[i].policy, slot, t.FullName)).On(ref(changes[0]).String())
		for _, c := range changes {
			d = d.At(ref(c), fmt.Sprintf("%s (policy %s)", c, c.policy))
		}
		out = append(out, d.Hinting("leave the assignments of one pin out of the other policies with "+
			"except, pin the same, "+way))
	}
	return out
}
