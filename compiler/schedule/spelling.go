package schedule

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/spelling"
)

// maxVocabulary is the largest number of different words at one place for which misspelt
// words are searched. More words than that are identifiers, and comparing all of them would
// take long.
const maxVocabulary = 300

// usage counts the uses of words at one place: label keys, or one label's values.
type usage map[string]*use

// use is a word's use.
type use struct {
	count  int
	ref    model.Ref         // its first use; zero if that is not to be reported
	beside map[string]string // the labels of the entity that used it first
}

func (u usage) add(word string, ref model.Ref, beside map[string]string) {
	if first := u[word]; first != nil {
		first.count++
		return
	}
	u[word] = &use{1, ref, beside}
}

// labelUsage is the usage of labels: as they are written, not as they are
// inherited.
type labelUsage struct {
	keys   usage
	values map[string]usage // by key
}

func (s *labelUsage) addKey(key string, ref model.Ref, beside map[string]string) {
	s.keys.add(key, ref, beside)
}

func (s *labelUsage) addValue(key, value string, ref model.Ref, beside map[string]string) {
	if s.values[key] == nil {
		s.values[key] = make(usage)
	}
	s.values[key].add(value, ref, beside)
}

// addEntities adds the labels of workloads, of targets as far as they are their
// own, and of cluster types.
func (s *Schedule) addEntities(words *labelUsage) {
	seen := make(map[*model.Workload]bool)
	for _, t := range s.fleet.targets {
		if !seen[t.workload] {
			seen[t.workload] = true
			ref := model.Ref{Collection: "workloads", Name: t.workload.Name}
			words.addLabels(t.workload.Labels, nil, ref)
		}
		words.addLabels(t.Labels, t.workload.Labels, t.ref())
	}
	for _, c := range s.fleet.types {
		words.addLabels(c.Labels, nil, c.Ref())
	}
}

// addLabels adds an entity's labels that it does not inherit.
func (s *labelUsage) addLabels(labels, inherited map[string]string, entity model.Ref) {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		value := labels[key]
		if old, ok := inherited[key]; ok && old == value {
			continue
		}
		ref := entity.At("labels").At(model.Label(key))
		s.addKey(key, ref, labels)
		s.addValue(key, value, ref, labels)
	}
}

// addSelector adds the labels that a selector of labels names.
func (s *labelUsage) addSelector(labels *model.Selector, ref model.Ref) {
	switch labels.Op {
	case model.OpAnd, model.OpOr:
		for i := range labels.Args {
			s.addSelector(&labels.Args[i], ref)
		}
	case model.OpField, model.OpOptional:
		at := ref
		if ref != (model.Ref{}) {
			at = ref.At(model.Label(labels.Key))
		}
		s.addKey(labels.Key, at, nil)
		for _, value := range equalities(&labels.Args[0]) {
			s.addValue(labels.Key, value, at, nil)
		}
	}
}

// fieldsNamed returns the constraints that a selector sets for a field.
func fieldsNamed(key string, s *model.Selector) []*model.Selector {
	var out []*model.Selector
	switch s.Op {
	case model.OpAnd, model.OpOr:
		for i := range s.Args {
			out = append(out, fieldsNamed(key, &s.Args[i])...)
		}
	case model.OpField, model.OpOptional:
		if s.Key == key {
			out = append(out, &s.Args[0])
		}
	}
	return out
}

// equalities returns the values that a constraint names.
func equalities(s *model.Selector) []string {
	if s.Op == model.OpEqual {
		return []string{s.Text}
	}
	var out []string
	if s.Op == model.OpAnd || s.Op == model.OpOr {
		for i := range s.Args {
			out = append(out, equalities(&s.Args[i])...)
		}
	}
	return out
}

// warnOfMisspelt reports the words of one place that are used once and look like
// a word that is used more often.
func warnOfMisspelt(what string, words usage, r *report) {
	if len(words) > maxVocabulary {
		return
	}
	sorted := slices.Sorted(maps.Keys(words))
	for _, word := range sorted {
		u := words[word]
		if u.count > 1 || u.ref == (model.Ref{}) {
			continue
		}
		for _, other := range sorted {
			if _, both := u.beside[other]; words[other].count > 1 && !both &&
				spelling.Misspelt(word, other) {
				r.add(diag.New(diag.LikelyMisspelt,
					fmt.Sprintf("%s %q is used once, and looks like %q, which is used %d times",
						what, word, other, words[other].count)).
					On(u.ref.String()).At(u.ref, "").Suggesting(word, []string{other}))
				break
			}
		}
	}
}
