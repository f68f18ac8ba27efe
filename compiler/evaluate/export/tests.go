package export

import (
	"fmt"

	"cuelang.org/go/cue"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/cuevalue"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// tests exports the tests, invalid ones included, which cannot be run.
func (x *Exporter) tests() []model.Test {
	return entities(x, "tests", func(v cue.Value, ref model.Ref) (model.Test, bool) {
		t := model.Test{Name: ref.Name}
		t.Invalid = x.matching(v, ref, &t.Match, &t.MatchUnknown, &t.Clusters, func() { x.test(v, ref, &t) })
		t.MatchUnknown = t.MatchUnknown && cuevalue.Field(v, "match").Exists()
		return t, true
	})
}

func (x *Exporter) test(v cue.Value, ref model.Ref, t *model.Test) {
	var said struct {
		Description string `json:"description"`
	}
	if !x.read.decode(&said, v, ref, "match", "clusters", "values", "assignment", "count") {
		return
	}
	t.Description = said.Description
	if of := cuevalue.Field(v, "values"); of.Exists() {
		t.Values = x.contracts.contract(of, ref.At("values"), "")
	}
	if of := cuevalue.Field(v, "assignment"); of.Exists() {
		t.Assignment = x.contracts.contract(of, ref.At("assignment"), "")
	}
	if of := cuevalue.Field(v, "count"); of.Exists() {
		t.Count = x.number(of, ref.At("count"))
	}
	if t.Values == nil && t.Assignment == nil && t.Count == nil && !x.Invalid[ref] {
		x.Fail(ref, diag.New(diag.Missing, "the test asks nothing").Hinting("give it values, assignment or count"))
	}
}

// number exports a constraint on a number, which may also be one number; nil where it
// cannot be used.
func (x *Exporter) number(v cue.Value, ref model.Ref) *model.Contract {
	x.note(v, ref)
	if v.Validate() != nil {
		return nil // check has reported it
	}
	if cuevalue.IsUnknown(v) {
		x.read.unknown(v, ref)
		return nil
	}
	e, err := cuevalue.Syntax(v)
	if err == nil {
		var text string
		if text, err = cuevalue.Write(e); err == nil {
			return &model.Contract{Ref: ref, Expr: model.Expr(text),
				Fields: []model.ContractField{{Text: x.contracts.asWritten(v)}}}
		}
	}
	x.Fail(ref, diag.New(diag.BadContract, fmt.Sprintf("the constraint cannot be used: %v", err)))
	return nil
}
