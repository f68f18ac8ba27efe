package randplatform

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// editKind is one way to edit a platform. Its function describes the edit in one line. If the
// platform has nothing to edit in this way, it returns "" and changes nothing.
type editKind struct {
	weight int
	kind   Kind
	apply  func(p *Platform, r *rand.Rand) string
}

// Kind is the part of a platform that an edit may change.
type Kind int

const (
	Meaning  Kind = iota // anything, errors included
	Cosmetic             // how the platform is written, and nothing that it means
	Nothing              // no byte of any file
)

// editKinds are weighed as people edit: mostly values, then entities, then the
// rest, mistakes on the way.
var editKinds = []editKind{
	{20, Meaning, changeValue},
	{6, Meaning, changeDefault},
	{6, Meaning, addEntity},
	{5, Meaning, removeEntity},
	{4, Meaning, renameEntity},
	{5, Meaning, addTarget},
	{3, Meaning, removeTarget},
	{6, Meaning, changeLabel},
	{5, Meaning, changeSelector},
	{2, Meaning, changeLayer},
	{2, Meaning, changeStrategy},
	{3, Meaning, changeContract},
	{4, Meaning, changeVersion},
	{3, Meaning, changeManifests},
	{4, Meaning, changeService},
	{4, Meaning, changeReconciler},
	{2, Meaning, changeClusterType},
	{2, Meaning, changeGitOps},
	{1, Meaning, changeAfter},
	{2, Meaning, changeDependsOn},
	{2, Meaning, changeComprehension},
	{2, Meaning, changeHidden},
	{2, Meaning, changeHelper},
	{2, Meaning, changeData},
	{8, Meaning, changePin},
	{6, Meaning, changeChart},
	{4, Meaning, changeRender},
	{4, Meaning, changeCapabilities},
	{2, Meaning, changeCluster},
	{3, Cosmetic, changeComment},
	{2, Cosmetic, reorder},
	{3, Cosmetic, move},
	{2, Cosmetic, renameFile},
	{2, Cosmetic, reformat},
	{2, Nothing, touch},
	{8, Meaning, undo},
	{14, Meaning, breakSomething},
}

// Edit makes one random edit and describes it in one line. The more is broken, the likelier the
// edit repairs some of it.
func (p *Platform) Edit(r *rand.Rand) (what string) {
	before := p.Clone()
	before.before = nil
	p.touched = false
	p.last = Meaning
	total := 0
	for _, k := range editKinds {
		total += k.weight
	}
	if r.IntN(total) < 45*len(p.broken) {
		what = repair(p, r)
	}
	if what == "" && p.rows != nil && chance(r, 40) {
		what = pick(r, fleetEdits...)(p, r)
	}
	for what == "" {
		n := r.IntN(total)
		i := 0
		for ; n >= editKinds[i].weight; i++ {
			n -= editKinds[i].weight
		}
		what = editKinds[i].apply(p, r)
		p.last = editKinds[i].kind
	}
	p.before = before
	return what
}

// LastEdit returns the kind of the last edit. It returns Meaning if the platform was never
// edited.
func (p *Platform) LastEdit() Kind { return p.last }

func undo(p *Platform, _ *rand.Rand) string {
	if p.before == nil {
		return ""
	}
	*p = *p.before.Clone()
	return "undo"
}

func breakSomething(p *Platform, r *rand.Rand) string {
	if len(p.broken) >= 3 {
		return ""
	}
	total := 0
	for _, m := range mistakes {
		total += m.weight
	}
	n := r.IntN(total)
	for _, m := range mistakes {
		if n -= m.weight; n >= 0 {
			continue
		}
		b, ok := m.make(p, r)
		if !ok {
			return ""
		}
		p.broken = append(p.broken, b)
		return "break: " + b.what
	}
	return ""
}

func repair(p *Platform, r *rand.Rand) string {
	i := r.IntN(len(p.broken))
	what := "repair: " + p.broken[i].what
	p.broken = slices.Delete(slices.Clone(p.broken), i, i+1)
	return what
}

// another returns a scalar of the same type.
func another(r *rand.Rand, text string) string {
	switch {
	case text == "true":
		return "false"
	case text == "false":
		return "true"
	case text[0] == '"':
		s, _ := strconv.Unquote(text)
		return strconv.Quote(strings.TrimRight(s, "0123456789") + strconv.Itoa(r.IntN(1000)))
	default:
		return strconv.Itoa(1 + r.IntN(1000))
	}
}

// changeLeaf changes a scalar below a path of an entity.
func changeLeaf(r *rand.Rand, e *entity, path ...string) string {
	leaves := e.body.get(path...).leaves()
	if len(leaves) == 0 {
		return ""
	}
	l := pick(r, leaves...)
	was := l.text
	if l.text = another(r, was); l.text == was {
		return ""
	}
	return fmt.Sprintf("change %s %s from %s to %s", e.title(), strings.Join(path, "."), was, l.text)
}

func changeValue(p *Platform, r *rand.Rand) string {
	if e, ok := p.oneOf(r, "configs"); ok {
		return changeLeaf(r, e, "values")
	}
	return ""
}

// changeDefault changes a default. Mostly it also changes the defaults of other configs that must
// not differ.
func changeDefault(p *Platform, r *rand.Rand) string {
	e, ok := p.oneOf(r, "configs")
	if !ok || e.body.get("defaults") == nil {
		return ""
	}
	f := pick(r, e.body.get("defaults").fields...)
	was, now, all := f.value.text, another(r, f.value.text), chance(r, 80)
	what := fmt.Sprintf("change default %s of %s from %s to %s", f.label, e.title(), was, now)
	for _, other := range p.of("configs") {
		if l := other.body.get("defaults", f.label); l != nil && l.text == was && (all || other == e) {
			l.text = now
		}
	}
	if all {
		what += ", and where it was the same"
	}
	return what
}

func addEntity(p *Platform, r *rand.Rand) string {
	var e *entity
	switch r.IntN(8) {
	case 0, 1, 2:
		e = p.addConfig(r)
	case 3:
		if e = p.addRenderedWorkload(r); chance(r, 60) {
			p.remove(e)
			e = p.addWorkload(r, pick(r, "web", "data"))
		}
	case 4:
		e = p.addClusterType(r, pick(r, p.environments...))
	case 5, 6:
		e = p.addPolicy(r, pick(r, p.environments...))
	default:
		e = p.addSchema(r)
	}
	p.spread(r, e)
	return "add " + e.title() + " to " + e.file
}

func removeEntity(p *Platform, r *rand.Rand) string {
	e, ok := p.oneOf(r, pick(r, "configs", "configs", "workloads", "clusterTypes",
		"schedulingPolicies", "configSchemas", "clusters"))
	if !ok {
		return ""
	}
	p.remove(e)
	return "remove " + e.title()
}

// renameEntity gives an entity another name, and mostly also changes the references to it.
func renameEntity(p *Platform, r *rand.Rand) string {
	e, ok := p.oneOf(r, pick(r, "configs", "workloads", "clusterTypes", "schedulingPolicies",
		"configSchemas", "reconcilers", "namespaceServices"))
	if !ok || e.name() == "default" {
		return ""
	}
	was, now := e.key, strconv.Quote(p.newName("renamed"))
	e.key = now
	what := fmt.Sprintf("rename %s.%s to %s", e.collection, was, now)
	if chance(r, 20) {
		return what + ", but not where it is referred to"
	}
	prefix := strings.TrimSuffix(was, `"`) + "-" // of the full names of a workload's targets
	for _, other := range p.entities {
		other.body.each(func(v *value) {
			if v.text == was {
				v.text = now
			} else if e.collection == "workloads" && strings.HasPrefix(v.text, prefix) {
				v.text = strings.TrimSuffix(now, `"`) + "-" + strings.TrimPrefix(v.text, prefix)
			}
		})
	}
	return what
}

func addTarget(p *Platform, r *rand.Rand) string {
	e, ok := p.oneOf(r, "workloads")
	if !ok || e.body.get("deploymentTargets") == nil {
		return ""
	}
	name, environment := p.newName("at"), pick(r, p.environments...)
	e.body.get("deploymentTargets").set(strconv.Quote(name), p.newTarget(r, environment, "web"))
	return "add target " + name + " of " + environment + " to " + e.title()
}

// target returns a random deployment target.
func (p *Platform) target(r *rand.Rand) (e *entity, f field, ok bool) {
	if e, ok = p.oneOf(r, "workloads"); !ok {
		return nil, field{}, false
	}
	targets := e.body.get("deploymentTargets").targets()
	if len(targets) == 0 {
		return nil, field{}, false
	}
	return e, pick(r, targets...), true
}

func removeTarget(p *Platform, r *rand.Rand) string {
	e, f, ok := p.target(r)
	if !ok {
		return ""
	}
	e.body.get("deploymentTargets").drop(f.label)
	return "remove target " + f.label + " of " + e.title()
}
