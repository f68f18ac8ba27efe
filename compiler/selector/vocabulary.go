package selector

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/spelling"
)

// Vocabulary is the words that selectors can use: the names and values at each path of the
// entities' facts.
type Vocabulary map[string]words

// words are the names below a path, and the values at it.
type words struct{ names, values map[string]bool }

// VocabularyOf returns the vocabulary of entities.
func VocabularyOf(entities iter.Seq[Facts]) Vocabulary {
	v := make(Vocabulary)
	for facts := range entities {
		v.add("", facts)
	}
	return v
}

func (v Vocabulary) add(path string, facts Facts) {
	for name, f := range facts {
		below := model.JoinPath(path, model.Label(name))
		v.wordsAt(path).names[name] = true
		for _, value := range f.Values {
			v.wordsAt(below).values[value] = true
		}
		v.add(below, f.Facts)
	}
}

func (v Vocabulary) wordsAt(path string) words {
	w, ok := v[path]
	if !ok {
		w = words{names: make(map[string]bool), values: make(map[string]bool)}
		v[path] = w
	}
	return w
}

// unknown is a word of a selector that no entity has at that place.
type unknown struct {
	text  string // the name's path, or the path with the value
	word  string
	known []string // the words that exist, sorted
	name  bool     // it is a name, and no value
}

// Explain adds to a diagnostic the reason why a selector may select nothing. kind is the
// kind of entity to which the facts belong. The selector is a mistake if it uses a name
// that no entity has, or a value one edit away from an entity's value.
func (v Vocabulary) Explain(d diag.Diagnostic, kind string, s *model.Selector) diag.Diagnostic {
	if len(v) == 0 {
		return d.Hinting(fmt.Sprintf("the environment has no %ss", kind))
	}
	unknowns := v.unknowns(s, "")
	if len(unknowns) == 0 {
		return d.Hinting(fmt.Sprintf("no %s satisfies all of it at once", kind))
	}
	for _, u := range unknowns {
		if way := diag.FillIn(u.word); way != "" {
			return d.Hinting(way)
		}
	}
	near := func(u unknown) bool { return spelling.Meant(u.word, u.known) != "" }
	u := unknowns[max(0, slices.IndexFunc(unknowns, near))]
	hint := fmt.Sprintf("no %s has %s", kind, u.text)
	d = d.Suggesting(u.word, u.known)
	if d.Hint != "" {
		hint += "; " + d.Hint
	}
	right := d.Suggestion.Right
	d.Suggestion.Mistake = u.name || right != "" && spelling.OneEditAway(u.word, right)
	return d.Hinting(hint)
}

// unknowns returns the words that do not exist and therefore keep s from holding. s is a
// constraint on the value at path.
func (v Vocabulary) unknowns(s *model.Selector, path string) []unknown {
	var out []unknown
	switch s.Op {
	case model.OpAnd:
		for i := range s.Args {
			out = append(out, v.unknowns(&s.Args[i], path)...)
		}
	case model.OpOr:
		for i := range s.Args {
			u := v.unknowns(&s.Args[i], path)
			if u == nil {
				return nil
			}
			out = append(out, u...)
		}
	case model.OpField, model.OpOptional:
		below := model.JoinPath(path, model.Label(s.Key))
		if names := v[path].names; names[s.Key] {
			return v.unknowns(&s.Args[0], below)
		} else if s.Op == model.OpField {
			return []unknown{{below, s.Key, slices.Sorted(maps.Keys(names)), true}}
		}
	case model.OpEqual:
		if values := v[path].values; !values[s.Text] {
			return []unknown{{path + ": " + string(model.AppendJSONString(nil, s.Text)), s.Text,
				slices.Sorted(maps.Keys(values)), false}}
		}
	}
	return out
}
