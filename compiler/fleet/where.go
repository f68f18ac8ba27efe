package fleet

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/selector"
	"github.com/kalypso-io/kalypso/internal/spelling"
)

// Filter decides which rows of an inventory's file are clusters of the environment: those
// that satisfy the inventory's where. It evaluates where once for each distinct combination
// of the values of the columns that where names. It is for one goroutine at a time.
type Filter struct {
	// Columns are the columns that where names, sorted.
	Columns []string

	where     model.Selector
	satisfies selector.Satisfier
	decisions map[string]bool // by the values of Columns
	texts     []string        // of Columns in the latest row
	key       []byte          // of texts
	rows      int             // the number of rows that were decided
	held      int             // the number of them that are clusters of the environment
	// examples are the facts of the first combinations, for messages.
	examples []selector.Facts
	seen     map[string]bool // the columns that have a text in some row
	names    []string        // the fields of the first object, for messages
}

// maxExamples is the largest number of combinations whose values are kept for messages.
const maxExamples = 1000

// NewFilter returns the filter of an inventory, or nil if all rows are clusters of the
// environment.
func NewFilter(inv *model.Inventory, satisfies selector.Satisfier) *Filter {
	if inv.Where.Op == model.OpAll {
		return nil
	}
	columns := map[string]bool{}
	inv.Where.AddKeys(columns)
	return &Filter{Columns: slices.Sorted(maps.Keys(columns)), where: inv.Where,
		satisfies: satisfies, decisions: map[string]bool{}, seen: map[string]bool{}}
}

// Holds reports whether a row is a cluster of the environment. text returns the text of a
// column of the row without white space around it; "" is an absent fact.
func (f *Filter) Holds(text func(column string) string) bool {
	f.key, f.texts = f.key[:0], f.texts[:0]
	for _, c := range f.Columns {
		value := text(c)
		f.key, f.texts = appendPart(f.key, value), append(f.texts, value)
	}
	holds, known := f.decisions[string(f.key)]
	if !known {
		facts := selector.Facts{}
		for i, c := range f.Columns {
			if f.texts[i] != "" {
				facts[c], f.seen[c] = selector.Values(f.texts[i]), true
			}
		}
		row := selector.NewIndex(slices.Values([]selector.Facts{facts}), f.satisfies)
		holds = row.Holds(f.where, 0)
		f.decisions[string(f.key)] = holds
		if len(f.examples) < maxExamples {
			f.examples = append(f.examples, facts)
		}
	}
	f.rows++
	if holds {
		f.held++
	}
	return holds
}

// conjuncts are the constraints that must all hold.
func (f *Filter) conjuncts() []model.Selector {
	if f.where.Op == model.OpAnd {
		return f.where.Args
	}
	return []model.Selector{f.where}
}

// Fixed returns the columns that have the same text in all rows of the environment, with
// the text.
func (f *Filter) Fixed() map[string]string {
	fixed := map[string]string{}
	for _, s := range f.conjuncts() {
		if s.Op == model.OpField && s.Args[0].Op == model.OpEqual {
			fixed[s.Key] = s.Args[0].Text
		}
	}
	return fixed
}

// unsatisfied returns the reason why none of the rows is a cluster of the environment, or
// nil if that is allowed. A required field that no object has may be misspelt, and is never
// allowed.
func (f *Filter) unsatisfied(inv *model.Inventory) *fault {
	for _, s := range f.conjuncts() {
		if s.Op == model.OpField && !f.seen[s.Key] && Format(inv) != model.CSVInventory {
			return &fault{path: model.JoinPath("where", model.Label(s.Key)),
				message: "has no row with the field " + s.Key, hint: spelling.DidYouMean(s.Key, f.names)}
		}
	}
	if inv.AllowEmpty {
		return nil
	}
	d := selector.VocabularyOf(slices.Values(f.examples)).Explain(diag.Diagnostic{}, "row", &f.where)
	return &fault{path: "where", message: fmt.Sprintf("has no row that satisfies where (rows: %d)",
		f.rows), hint: d.Hint + "; if the environment has none of them, write allowEmpty: true"}
}
