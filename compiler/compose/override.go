package compose

import (
	"slices"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// overrule removes the parts that an override replaces, and returns them separately. The override
// is a whole leaf, or a struct over a leaf. If two overrides differ, the higher layer's applies.
func (m *merger) overrule(parts []*node) (kept, replaced []*node) {
	overrides := only(parts, isOverride)
	if len(overrides) == 0 {
		return parts, nil
	}
	leaves := only(overrides, not(isStruct))
	if len(leaves) == 0 {
		return only(parts, isStruct), leavesOf(only(parts, not(isStruct)))
	}
	// The highest layer decides whether the value is a leaf.
	high := top(overrides)
	if len(only(leaves, inLayer(high))) == 0 {
		return only(parts, isStruct), leavesOf(only(parts, not(isStruct)))
	}
	holds := only(overrides, inLayer(high))
	for _, p := range parts {
		if !isOverride(p) || p.root.layer != high {
			replaced = append(replaced, p)
		}
	}
	return holds, leavesOf(replaced)
}

// replaceDefaults removes the replaced defaults: any value replaces a default leaf, and a higher
// layer's default replaces a lower one's.
func (m *merger) replaceDefaults(parts []*node) (kept, replaced []*node) {
	defaults := only(parts, isDefault)
	leaves := only(defaults, not(isStruct))
	if len(leaves) == 0 || len(leaves) == len(parts) {
		return parts, nil
	}
	values := only(parts, not(isDefault))
	if len(only(values, isStruct)) > 0 {
		// A struct over a default leaf; default structs stay and unite with it.
		return only(parts, func(p *node) bool { return !isDefault(p) || isStruct(p) }), leaves
	}
	if len(values) > 0 {
		return parts, nil // a leaf over default structs is a conflict; leaf handles the rest
	}
	// Default leaves against default structs: the highest layer decides, and they
	// can conflict only there.
	high := top(defaults)
	inHigh := only(defaults, inLayer(high))
	structs := len(only(inHigh, isStruct))
	switch structs {
	case len(inHigh):
		return only(parts, isStruct), leaves
	case 0:
		return inHigh, leavesOf(only(parts, not(inLayer(high))))
	}
	return parts, nil
}

// leavesOf replaces structs by their leaves, for provenance.
func leavesOf(parts []*node) []*node {
	var out []*node
	for _, p := range parts {
		if !isStruct(p) {
			out = append(out, p)
			continue
		}
		for i := range p.fields {
			out = append(out, leavesOf([]*node{&p.fields[i]})...)
		}
	}
	return out
}

// takesAway reports whether a part has null as a value, which removes its path.
func takesAway(p *node) bool {
	return p.root.kind == FromValues && isFinal(p) && p.tree.Final.Kind() == model.Null
}

// givesNull reports whether null is a value or an override at a path. If the path has neither, it
// reports whether null is a default of the highest layer.
func givesNull(parts []*node) bool {
	from := only(parts, isValue)
	if defaults := only(parts, hasDefault); len(from) == 0 && len(defaults) > 0 {
		from = only(defaults, inLayer(top(defaults)))
	}
	return slices.ContainsFunc(from, func(p *node) bool { return valueOf(p).Kind() == model.Null })
}

// isValue reports whether a part is a value or an override, and not a default.
func isValue(p *node) bool { return isFinal(p) && !isDefault(p) }

// withoutNulls returns the parts without defaults of null, and without the defaults of lower
// layers, which these remove.
func withoutNulls(parts []*node) []*node {
	nulls := only(parts, func(p *node) bool { return !isValue(p) && valueOf(p).Kind() == model.Null })
	if len(nulls) == 0 {
		return parts
	}
	high := top(nulls)
	return only(parts, func(p *node) bool {
		return isValue(p) || p.root.layer >= high && valueOf(p).Kind() != model.Null
	})
}

// takeAway removes the parts that values of null replace at a path. These are defaults of any type,
// structs of only defaults, and the constraints of lower layers, whose value does not exist. Final
// parts stay, and cause a conflict.
func (m *merger) takeAway(parts []*node) (kept, replaced []*node) {
	nulls := only(parts, takesAway)
	if len(nulls) == 0 || len(nulls) == len(parts) {
		return parts, nil
	}
	high := top(nulls)
	for _, p := range parts {
		if !takesAway(p) && m.yields(p, high) {
			replaced = append(replaced, p)
		} else {
			kept = append(kept, p)
		}
	}
	return kept, leavesOf(replaced)
}

// yields reports whether null in a layer may remove a part.
func (m *merger) yields(p *node, layer int) bool {
	switch {
	case isOverride(p):
		return false
	case isDefault(p):
		return true
	case isOpen(p):
		if apart := p.apart(m.eval); apart != nil {
			return m.yields(apart, layer)
		}
		return p.open.hasDefault || p.root.layer < layer
	case isStruct(p):
		for i := range p.fields {
			if !m.yields(&p.fields[i], layer) {
				return false
			}
		}
		return len(p.fields) > 0 || isOpened(p) && p.root.layer < layer
	}
	return takesAway(p)
}

// isNull reports whether a struct of nulls has a null at a path, or around or below it.
func isNull(removed model.Value, path []string) bool {
	for _, name := range path {
		f, there := removed.Lookup(name)
		if !there {
			return false
		}
		removed = f
	}
	return true
}

// restored returns the nulls without the nulls at a path.
func restored(removed model.Value, path []string) model.Value {
	fields := slices.Clone(removed.Fields())
	i := slices.IndexFunc(fields, func(f model.Field) bool { return f.Name == path[0] })
	if i < 0 {
		return removed
	}
	if len(path) > 1 && fields[i].Value.Kind() == model.Struct {
		fields[i].Value = restored(fields[i].Value, path[1:])
	}
	if len(path) == 1 || fields[i].Value.Kind() == model.Null {
		fields = slices.Delete(fields, i, i+1)
	}
	if len(fields) == 0 {
		return model.Value{}
	}
	return model.StructOf(fields...)
}
