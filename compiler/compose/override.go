package compose

// overrule drops what an override of a whole leaf, or of a struct over a leaf,
// replaces, and returns it apart. Of two overrides the higher layer's holds.
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

// replaceDefaults drops the defaults that something else replaces: any value
// replaces a default leaf, and a higher layer's default a lower one's.
func (m *merger) replaceDefaults(parts []*node) (kept, replaced []*node) {
	defaults := only(parts, isDefault)
	leaves := only(defaults, not(isStruct))
	if len(leaves) == 0 || len(leaves) == len(parts) {
		return parts, nil
	}
	values := only(parts, not(isDefault))
	if len(only(values, isStruct)) > 0 {
		// A struct over a default leaf; default structs go on below it.
		return only(parts, func(p *node) bool { return !isDefault(p) || isStruct(p) }), leaves
	}
	if len(values) > 0 {
		return parts, nil // a leaf over default structs is a conflict; leaf sorts out the rest
	}
	// Default leaves against default structs: the highest layer decides, and only
	// there can they conflict.
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

// leavesOf replaces structs by the leaves in them, for provenance.
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
