package yamlnodes

import "go.yaml.in/yaml/v3"

// Cost is what a text makes once its anchors are written out wherever an alias or a
// merge key refers to them. What an int64 cannot hold is math.MaxInt64.
type Cost struct {
	Bytes   int64 // about as many as it would have
	Entries int64 // elements of lists and fields of mappings
	// Aliased are the keys and values that aliases and merge keys write.
	Aliased int64
	// AliasedFlow are the lists and mappings of those that are written in brackets.
	AliasedFlow int64
	// Levels is the sum of how deep each key and value is.
	Levels int64
	// Pairs is the number of pairs of two entries of one list or mapping, for
	// readers that compare each with all others.
	Pairs int64
	// Merged is the number of pairs in mappings with merge keys, where what is
	// given twice counts twice.
	Merged int64
}

func (c *Cost) add(d Cost) {
	c.Bytes = plus(c.Bytes, d.Bytes)
	c.Entries = plus(c.Entries, d.Entries)
	c.Aliased = plus(c.Aliased, d.Aliased)
	c.AliasedFlow = plus(c.AliasedFlow, d.AliasedFlow)
	c.Levels = plus(c.Levels, d.Levels)
	c.Pairs = plus(c.Pairs, d.Pairs)
	c.Merged = plus(c.Merged, d.Merged)
}

// counted is what a node costs where it is, from which the same follows for
// wherever else it is written.
type counted struct {
	Cost
	values int64 // itself and all in it, with keys
	flow   int64 // of those the lists and mappings in brackets
	height int   // levels below it
	fields int64 // of a mapping, with what it merges; of a list, those of its elements
}

// counter counts one document. Of a node that has an anchor it knows the cost; nil
// while it is counted.
type counter struct{ anchors map[*yaml.Node]*counted }

func (c *counter) node(n *yaml.Node, depth int) (*counted, error) {
	if depth > MaxDepth {
		return nil, tooDeep(n)
	}
	if n.Kind == yaml.AliasNode {
		return c.alias(n, depth)
	}
	if n.Anchor != "" {
		c.anchors[n] = nil
	}
	of, err := c.plain(n, depth)
	if err == nil && n.Anchor != "" {
		c.anchors[n] = of
	}
	return of, err
}

func tooDeep(n *yaml.Node) error { return refuse(n, "nests deeper than %d levels", MaxDepth) }

// alias counts what an alias writes: the parser knows only anchors before it, which
// were counted before.
func (c *counter) alias(n *yaml.Node, depth int) (*counted, error) {
	of := c.anchors[n.Alias]
	switch {
	case of == nil:
		return nil, refuse(n, "anchor %s contains itself", n.Value)
	case depth+of.height > MaxDepth:
		return nil, tooDeep(n)
	}
	written := *of
	written.Aliased, written.AliasedFlow = of.values, of.flow
	return &written, nil
}

func (c *counter) plain(n *yaml.Node, depth int) (*counted, error) {
	switch n.Kind {
	case yaml.DocumentNode:
		return c.node(n.Content[0], depth)
	case yaml.SequenceNode:
		return c.sequence(n, depth)
	case yaml.MappingNode:
		return c.mapping(n, depth)
	}
	return &counted{Cost: Cost{Bytes: int64(len(n.Value)) + 1}, values: 1}, nil
}

// collection returns the cost of a list or mapping without entries.
func collection(n *yaml.Node) *counted {
	of := &counted{Cost: Cost{Bytes: 2}, values: 1}
	if n.Style&yaml.FlowStyle != 0 {
		of.flow = 1
	}
	return of
}

// put adds an entry.
func (of *counted) put(entry *counted) {
	of.add(entry.Cost)
	of.Entries = plus(of.Entries, 1)
	of.Levels = plus(of.Levels, entry.values)
	of.values, of.flow = plus(of.values, entry.values), plus(of.flow, entry.flow)
	of.height = max(of.height, entry.height+1)
}

func (c *counter) sequence(n *yaml.Node, depth int) (*counted, error) {
	of := collection(n)
	for _, e := range n.Content {
		entry, err := c.node(e, depth+1)
		if err != nil {
			return nil, err
		}
		of.put(entry)
		of.Bytes, of.fields = plus(of.Bytes, 1), plus(of.fields, entry.fields)
	}
	of.Pairs = plus(of.Pairs, times(int64(len(n.Content)), int64(len(n.Content))))
	return of, nil
}

func (c *counter) mapping(n *yaml.Node, depth int) (*counted, error) {
	of := collection(n)
	merges := false
	for i := 0; i+1 < len(n.Content); i += 2 {
		// A key that is no scalar is counted for its depth, and for readers that
		// find out late that it is none.
		key, err := c.node(n.Content[i], depth+1)
		if err != nil {
			return nil, err
		}
		entry, err := c.node(n.Content[i+1], depth+1)
		if err != nil {
			return nil, err
		}
		if IsMerge(n.Content[i]) {
			merges = true
			written := *entry
			written.Aliased, written.AliasedFlow = entry.values, entry.flow
			of.put(&written)
			of.fields = plus(of.fields, entry.fields)
			continue
		}
		of.put(entry)
		of.add(key.Cost)
		of.Levels = plus(of.Levels, key.values)
		of.values, of.flow = plus(of.values, key.values), plus(of.flow, key.flow)
		of.height = max(of.height, key.height+1)
		of.Bytes, of.fields = plus(of.Bytes, 1), plus(of.fields, 1)
	}
	pairs := times(of.fields, of.fields)
	of.Pairs = plus(of.Pairs, pairs)
	if merges {
		of.Merged = plus(of.Merged, pairs)
	}
	return of, nil
}

// IsMerge says whether a key of a mapping is a merge key, <<
// (https://yaml.org/type/merge.html).
func IsMerge(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Value == "<<" && (n.Tag == "!" || n.ShortTag() == "!!merge")
}
