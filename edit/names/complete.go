package names

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/evaluate/shape"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/edit/syntax"
)

// Kind is the kind of a completion.
type Kind string

// The kinds of completions.
const (
	OfField Kind = "field" // of the schema
	OfEnum  Kind = "enum"  // a value that the schema lists
	OfName  Kind = "name"  // of an entity or a deployment target
	OfLabel Kind = "label" // a label, or another fact that selectors constrain
	OfValue Kind = "value" // of a label
	OfKey   Kind = "key"   // a value that a contract or another config has
)

// Completion is a possible text at a place.
type Completion struct {
	Label         string
	Kind          Kind
	Detail        string // a short description
	Documentation string
	// Place is the text that Text replaces: the existing word, or nothing.
	Place Place
	Text  string
}

// cursor marks the place of the next text.
const cursor = "_kalypso_cursor_"

// Complete returns the possible texts at an offset, sorted. It ignores the existing beginning
// of a word. It leaves out fields of the schema that the struct already has.
func (x *Index) Complete(path string, offset int) []Completion {
	f := x.byPath[path]
	if f == nil || !f.part || offset < 0 || offset > len(f.Text) {
		return nil
	}
	at := f.wordAtOffset(offset)
	if at == nil {
		with := read(File{path, slices.Concat(f.Text[:offset], []byte(cursor), f.Text[offset:])})
		if at = with.wordAtOffset(offset); at == nil || at.Text != cursor {
			return nil // in a comment
		}
		at.End, at.Text = at.Start, ""
	}
	c := &completer{Index: x, file: f, word: at}
	switch at.Kind {
	case syntax.Label:
		c.labels(at.Path[:len(at.Path)-1])
	case syntax.Text:
		c.values(at.Path)
	case syntax.Identifier:
		c.labels(at.Path)
		c.values(at.Path)
	}
	slices.SortFunc(c.out, func(a,
		b Completion) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Label, b.Label))
	})
	return slices.CompactFunc(c.out,
		func(a, b Completion) bool { return a.Kind == b.Kind && a.Label == b.Label })
}

// completer collects the possible texts at a word.
type completer struct {
	*Index
	file *file
	word *syntax.Word
	out  []Completion
}

// label adds a field. It adds no colon if the word is already a label.
func (c *completer) label(name string, kind Kind, detail, doc string) {
	place := c.file.place(c.word)
	add := Completion{Label: name, Kind: kind, Detail: detail, Documentation: doc, Place: place,
		Text: name}
	if !c.word.Quoted {
		add.Text = model.Label(name)
	}
	if c.word.Kind != syntax.Label {
		add.Text += ": "
	}
	c.out = append(c.out, add)
}

// value adds a value.
func (c *completer) value(name string, kind Kind, detail, doc string) {
	add := Completion{Label: name, Kind: kind, Detail: detail, Documentation: doc,
		Place: c.file.place(c.word), Text: name}
	switch {
	case !c.word.Quoted:
		add.Text = string(model.AppendJSONString(nil, name))
	case c.word.Open:
		add.Text += `"`
	}
	c.out = append(c.out, add)
}

// labels adds the fields of a value with a path.
func (c *completer) labels(path []string) {
	if key := contractPath(path); key != nil {
		c.keys(key)
		return
	}
	s := slotAt(path)
	switch {
	case s == nil || len(path) > 0 && s.of == nil:
	case s.labels == ofBoth && s.of.Name == "match" && s.key == "":
		// Add the facts that a match can constrain.
		for name, p := range slotAt([]string{"#assignment"}).Fields {
			if model.References["#Assignment."+name] != "" {
				c.label(name, OfLabel, "fact", p.Doc)
			}
		}
		c.labelKeys(ofBoth)
	case s.labels != noLabels && s.key == "" && s.of.Name == "labels":
		c.labelKeys(s.labels)
	default:
		c.fields(s, path)
	}
	if len(path) == 1 && slices.Contains(model.CollectionNames, path[0]) {
		c.names(path[0], c.label)
	}
}

// fields adds the fields of the schema that the struct lacks.
func (c *completer) fields(s *slot, path []string) {
	// the key is the name
	there := map[string]bool{"name": len(path) == 2 || len(path) == 4 && path[0] == "workloads"}
	for i := range c.file.words {
		if w := &c.file.words[i]; w.Kind == syntax.Label && w.Start != c.word.Start &&
			len(w.Path) == len(path)+1 && slices.Equal(w.Path[:len(path)], path) {
			there[w.Text] = true
		}
	}
	for name, p := range s.Fields {
		if there[name] || strings.HasPrefix(name, "#") || p.Name == "" {
			continue
		}
		detail := "optional"
		if p.Required {
			detail = "required"
		}
		c.label(name, OfField, detail, p.Doc)
	}
}

func (c *completer) labelKeys(of side) {
	c.eachLabel(of, func(key, _ string) { c.label(key, OfLabel, "label", "") })
	if of == ofTargets {
		c.label("workload", OfLabel, "implied label", "")
		c.label("workspace", OfLabel, "implied label", "")
	}
}

// eachLabel calls a function for the labels of entities, with their values. The value is "" if
// it is not a text.
func (c *completer) eachLabel(of side, call func(key, value string)) {
	for _, f := range c.files {
		if !f.part || !sees(f.environment, c.file.environment) {
			continue
		}
		for i := range f.words {
			w := &f.words[i]
			if key, ok := labelKey(w.Path, of); ok && w.Text != cursor && w.Start != c.word.Start {
				switch w.Kind {
				case syntax.Label:
					call(key, "")
				case syntax.Text:
					call(key, w.Text)
				}
			}
		}
	}
}

// labelKey returns the key of the label to which a path of an entity belongs.
func labelKey(path []string, of side) (key string, ok bool) {
	n := len(path)
	if n < 4 || path[n-2] != "labels" || path[n-1] == "*" {
		return "", false
	}
	switch {
	case n == 4 && path[0] == "clusterTypes":
		ok = of != ofTargets
	case n == 4 && (path[0] == "clusters" || path[0] == "inventories"):
		ok = of == ofClusters
	case n == 4 && path[0] == "workloads",
		n == 6 && path[0] == "workloads" && path[2] == model.DeploymentTargets:
		ok = of == ofTargets || of == ofBoth
	}
	return path[n-1], ok
}

// values adds the possible values of the field with a path.
func (c *completer) values(path []string) {
	s := slotAt(path)
	if s == nil {
		return
	}
	switch {
	case s.names != "":
		c.names(s.names, c.value)
	case len(s.Texts) > 0:
		for _, name := range s.Texts {
			c.value(name, OfEnum, "", "")
		}
	case s.key != "":
		c.eachLabel(s.labels, func(key, value string) {
			if key == s.key && value != "" {
				c.value(value, OfValue, "label "+key, "")
			}
		})
	}
}

// names adds the names of a collection's entities.
func (c *completer) names(collection string, add func(name string, kind Kind, detail, doc string)) {
	if collection == model.DeploymentTargets || collection == model.TargetNames {
		for _, name := range c.declared(c.file.environment, model.DeploymentTargets) {
			t := split(name)
			doc := c.description("workloads", t.workload, model.DeploymentTargets, t.name)
			if collection == model.TargetNames {
				add(t.name, OfName, kindOf(collection), doc)
			} else {
				add(t.full(), OfName, kindOf(collection), doc)
			}
		}
		return
	}
	for _, name := range c.declared(c.file.environment, collection) {
		if c.word.Kind != syntax.Text && c.declaredHere(collection, name) {
			continue
		}
		add(name, OfName, kindOf(collection), c.description(collection, name))
	}
	if collection == "namespaceServices" && c.word.Kind != syntax.Label {
		add("default", OfName, kindOf(collection),
			"The namespace service of a cluster type that names none.")
	}
	if collection == "workspaces" {
		c.each(c.file.environment, func(f *file, u *use) {
			if u.collection == collection && !u.declares && &f.words[u.word] != c.word &&
				f.words[u.word].Start != c.word.Start {
				add(u.name, OfName, kindOf(collection), "")
			}
		})
	}
}

// declaredHere reports whether a label of the word's own struct has the name. The name is then
// not a completion.
func (c *completer) declaredHere(collection, name string) bool {
	if c.word.Kind == syntax.Identifier && slotAt(c.word.Path) != nil &&
		slotAt(c.word.Path).names != "" {
		return false // it is a value
	}
	return slices.ContainsFunc(c.file.uses, func(u use) bool {
		return u.declares && u.collection == collection && u.name == name &&
			c.file.words[u.word].Start != c.word.Start
	})
}

// description returns the description of the entity with a path.
func (x *Index) description(path ...string) string {
	of := strings.Join(path, "/")
	for _, f := range x.files {
		if says := f.says[of]; says != "" {
			return says
		}
	}
	return ""
}

// contractPath returns the part of a path inside the values of a config, a contract or a test.
// It returns an empty path for all values, and nil for a path outside of values.
func contractPath(path []string) []string {
	switch {
	case len(path) >= 3 && path[0] == "configs" &&
		(path[2] == "values" || path[2] == "defaults" || path[2] == "overrides"),
		len(path) >= 3 && path[0] == "tests" && path[2] == "values",
		len(path) >= 3 && path[0] == "configSchemas" && path[2] == "schema",
		len(path) >= 3 && path[0] == "workloads" && path[2] == "requires":
		return append([]string{}, path[3:]...)
	case len(path) >= 5 && path[0] == "workloads" && path[2] == model.DeploymentTargets &&
		path[4] == "requires":
		return append([]string{}, path[5:]...)
	}
	return nil
}

// keys adds the values that contracts and configs have at a path of the values.
func (c *completer) keys(path []string) {
	for _, f := range c.files {
		if !f.part || !sees(f.environment, c.file.environment) {
			continue
		}
		for i := range f.words {
			w := &f.words[i]
			key := contractPath(w.Path)
			if w.Kind != syntax.Label || len(key) != len(path)+1 || !slices.Equal(key[:len(path)], path) ||
				w.Start == c.word.Start && f == c.file {
				continue
			}
			detail := "of config " + w.Path[1]
			if w.Path[0] != "configs" {
				detail = "of the contract of " + kindOf(w.Path[0]) + " " + w.Path[1]
			}
			c.label(w.Text, OfKey, detail, f.written(w))
		}
	}
}

// written returns the first line of a label's value.
func (f *file) written(w *syntax.Word) string {
	last := w.Field.Words[len(w.Field.Words)-1]
	if w.Start != f.words[last].Start {
		return ""
	}
	line, _, more := bytes.Cut(f.Text[w.Field.Value:w.Field.End], []byte("\n"))
	if more {
		return string(line) + " …"
	}
	return string(line)
}

// slot is the schema's description of a path.
type slot struct {
	*shape.Shape
	of *shape.Field // the field itself, or the one around
	// names is the collection of the entities that a value names.
	names string
	// labels is set inside a selector's labels, or inside the facts that a match constrains. It
	// says whose labels these are. For the value of a label, key is the label's name.
	labels side
	key    string
}

// side is the owner of the labels that a selector constrains.
type side int

const (
	noLabels side = iota
	ofTargets
	ofClusterTypes
	ofClusters
	ofBoth
)

// slotAt returns the schema's description of a path. It returns nil if the schema does not describe
// the path.
func slotAt(path []string) *slot {
	if path == nil {
		return nil
	}
	s := &slot{Shape: shape.Platform()}
	for i, name := range path {
		if s.labels == ofBoth || s.labels != noLabels && s.of.Name == "labels" {
			s.fact(name)
			if i < len(path)-1 && path[i+1] != "[]" {
				return nil
			}
			return s
		}
		if name == "[]" {
			if s.Elem != nil {
				s.Shape = s.Elem
			}
			continue
		}
		if of, isInput := s.Inputs[name]; isInput {
			s.of = &of
		} else if s.of = s.Field(name); s.of == nil {
			return nil
		}
		s.Shape = s.of.Shape
		s.names = model.References[s.of.In+"."+s.of.Name]
		switch {
		case s.of.Name == "match":
			s.labels = ofBoth
		case s.of.Name != "labels":
		case s.of.In == "#DeploymentTargetSelector":
			s.labels = ofTargets
		case s.of.In == "#ClusterTypeSelector":
			s.labels = ofClusterTypes
		case s.of.In == "#ClusterSelector":
			s.labels = ofClusters
		}
	}
	return s
}

// fact makes s the slot of a label, or of another fact of an assignment.
func (s *slot) fact(name string) {
	s.Shape = &shape.Shape{}
	if s.names = model.References["#Assignment."+name]; s.names == "" || s.labels == ofClusterTypes ||
		s.labels == ofClusters || s.labels == ofTargets && name != "workload" && name != "workspace" {
		s.names, s.key = "", name
	}
}
