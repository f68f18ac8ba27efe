package fleet

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/lazyregexp"
)

// cells are the values of a row.
type cells interface {
	// cell returns the value of a column.
	cell(column string) (model.Value, bool)
	// below returns the fields of a column's object, or the columns that begin with its
	// name and a dot, until the next call.
	below(column string) []model.Field
	// positionOf returns the position of a column, or the beginning of the row if the row lacks the
	// column.
	positionOf(column string) model.Position
}

// add makes a cluster from a row, or reports why it cannot.
func (inv *inventory) add(of cells) {
	b := &builder{inv: inv, cells: of, at: of.positionOf(inv.Columns.Name)}
	b.cluster.Inventory = inv.Name
	if inv.filter != nil && (!inv.filter.Holds(b.word) || b.bad) {
		return
	}
	b.name()
	if b.bad {
		return
	}
	b.cluster.ClusterType = b.word(inv.Columns.ClusterType)
	if b.cluster.ClusterType == "" {
		b.cluster.ClusterType = inv.ClusterType
	} else if !model.IsName(b.cluster.ClusterType) {
		b.refuse("cluster type", inv.Columns.ClusterType,
			fmt.Sprintf("%q is no name of a cluster type", short(b.cluster.ClusterType)), "")
	}
	if b.cluster.Address = b.word(inv.Columns.Address); b.cluster.Address != "" &&
		!IsAddress(b.cluster.Address) {
		b.refuse("address", inv.Columns.Address,
			fmt.Sprintf("the address %q is neither a DNS name nor an IP address", short(b.cluster.Address)),
			"")
	}
	b.cluster.Description = b.word(inv.Columns.Description)
	b.labels()
	b.values()
	if b.bad {
		return
	}
	b.identify()
	inv.rows = append(inv.rows, row{b.cluster, b.at})
}

// IsAddress reports whether schema.#Cluster accepts a text as an address.
func IsAddress(text string) bool { return address.MatchString(text) }

var address = lazyregexp.New(`^[A-Za-z0-9]([A-Za-z0-9.:_-]*[A-Za-z0-9])?$`)

// builder makes one cluster.
type builder struct {
	inv     *inventory
	cluster model.Cluster
	cells   cells
	at      model.Position
	bad     bool
}

// refuse reports an error in a column of the row.
func (b *builder) refuse(kind, column, message, hint string) {
	b.bad = true
	// The filter reads its columns before the name is known.
	if name, _ := b.cells.cell(b.inv.Columns.Name); b.cluster.Name == "" && !empty(name) {
		if text := strings.TrimSpace(name.Text()); model.IsName(text) {
			b.cluster.Name = text
		}
	}
	if b.cluster.Name != "" {
		message = "cluster " + b.cluster.Name + ": " + message
	}
	b.inv.refuse(kind, b.cluster.Name, b.cells.positionOf(column), message, hint)
}

// short cuts a text that is shown.
func short(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	for cut := most; ; cut-- {
		if utf8.RuneStart(s[cut]) {
			return s[:cut] + "…"
		}
	}
}

// name reads the cluster's name.
func (b *builder) name() {
	column := b.inv.Columns.Name
	name := b.word(column)
	switch lower := strings.ToLower(name); {
	case b.bad:
	case name == "":
		b.refuse("no name", column, "a row has no name in "+column, "which cluster it is must be "+
			"known: until then none is taken away")
	case model.IsName(name):
		b.cluster.Name = name
	case model.IsName(lower):
		b.refuse("name", column, fmt.Sprintf("%q is no name: names have lower case letters", name),
			"write "+lower)
	default:
		b.refuse("name", column, fmt.Sprintf("%q is no name", short(name)), "a name is a DNS label: "+
			"lower case letters, digits and dashes, at most 63")
	}
}

// word returns the value of a column, without white space around it, or "".
func (b *builder) word(column string) string {
	v, _ := b.cells.cell(column)
	text, ok := b.text(column, v)
	if !ok {
		return ""
	}
	return strings.TrimSpace(text)
}

// text returns a scalar as it is written; false if the value is another.
func (b *builder) text(column string, v model.Value) (string, bool) {
	switch {
	case v.Kind() == model.Null:
		return "", true
	case v.IsScalar():
		if text := v.Text(); utf8.ValidString(text) {
			return text, true
		}
		b.refuse("encoding", column, column+" is not UTF-8", "save the file as UTF-8")
	default:
		b.refuse("text "+column, column,
			fmt.Sprintf("%s must be a text, and is of type %s", column, v.Kind()), "")
	}
	return "", false
}

// label is a label of a row.
type label struct{ name, text string }

// labels reads the cluster's labels. An empty label counts as absent. Most clusters have
// the same labels as others, and then share the map.
func (b *builder) labels() {
	all, key := b.inv.labels[:0], b.inv.scratch[:0]
	add := func(name, column string, v model.Value) {
		if text, ok := b.text(column, v); ok && text != "" {
			all, key = append(all, label{name, text}), appendPart(appendPart(key, name), text)
		}
	}
	if b.inv.Columns.Labels == nil {
		for _, f := range b.cells.below("labels") {
			add(f.Name, "labels."+f.Name, f.Value)
		}
	}
	for _, name := range b.inv.labelNames {
		column := b.inv.Columns.Labels[name]
		v, _ := b.cells.cell(column)
		add(name, column, v)
	}
	b.inv.labels, b.inv.scratch = all, key
	if len(all) == 0 {
		return
	}
	shared := b.inv.shared[string(key)]
	if shared == nil {
		shared = make(map[string]string, len(all))
		for _, l := range all {
			shared[l.name] = l.text
		}
		if len(b.inv.shared) < maxShared {
			b.inv.shared[string(key)] = shared
		}
	}
	b.cluster.Labels = shared
}

// maxShared is the largest number of sets of labels that are remembered.
const maxShared = 10_000

// appendPart appends a text with its length, which marks its end.
func appendPart(b []byte, s string) []byte {
	return append(append(strconv.AppendInt(b, int64(len(s)), 10), ' '), s...)
}

// values reads the cluster's values. One that is empty or null is absent.
func (b *builder) values() {
	var fields []model.Field
	if b.inv.Columns.Values == nil {
		for _, f := range b.cells.below("values") {
			if !empty(f.Value) {
				fields = append(fields, f)
			}
		}
	}
	for name, column := range b.inv.Columns.Values {
		v, there := b.cells.cell(column.Column)
		if !there || empty(v) {
			continue
		}
		v, err := typed(v, column.Type)
		if err != nil {
			b.refuse("value "+name, column.Column, fmt.Sprintf("%s must be of type %s, and is %s",
				column.Column, column.Type, short(v.String())), "")
			continue
		}
		fields = append(fields, model.Field{Name: name, Value: v})
	}
	if len(fields) > 0 {
		v := model.StructOf(fields...)
		b.cluster.Values = &v
	}
}

func empty(v model.Value) bool {
	return v.Kind() == model.Null || v.Kind() == model.String && v.Text() == ""
}

// typed reads a string as a value of a type. It returns other values unchanged.
func typed(v model.Value, as string) (model.Value, error) {
	if v.Kind() != model.String || as == "string" {
		return v, nil
	}
	text := strings.TrimSpace(v.Text())
	out := v
	var err error
	switch as {
	case "bool":
		if text != "true" && text != "false" {
			return v, fmt.Errorf("%q is neither true nor false", text)
		}
		return model.BoolOf(text == "true"), nil
	case "int", "number":
		if out, err = model.NumberOf(text); err == nil &&
			(out.Text() != text || as == "int" && out.Kind() != model.Int) {
			err = fmt.Errorf("%s is written otherwise, or not whole", text) // 007 may be no number
		}
	case "json":
		err = out.UnmarshalJSON([]byte(text))
	}
	if err != nil {
		return v, err
	}
	return out, nil
}

// identify sets the cluster's digest.
func (b *builder) identify() {
	h := b.inv.scratch[:0]
	c := &b.cluster
	for _, s := range []string{c.Name, c.ClusterType, c.Address, c.Description} {
		h = appendPart(h, s)
	}
	names := b.inv.names[:0]
	for name := range c.Labels {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		h = appendPart(appendPart(h, name), c.Labels[name])
	}
	if c.Values != nil {
		h = c.Values.AppendJSON(h)
	}
	c.Digest = model.DigestBytes(h)
	b.inv.scratch, b.inv.names = h, names
}
