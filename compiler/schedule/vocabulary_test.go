package schedule

import (
	"testing"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/selector"
)

// The hint names exactly the words that keep the selector from holding.
func TestHint(t *testing.T) {
	either := func(s ...model.Selector) model.Selector { return model.Selector{Op: model.OpOr, Args: s} }
	label := func(op model.SelectorOp, key string, s model.Selector) model.Selector {
		field := model.Selector{Op: op, Key: key, Args: []model.Selector{s}}
		return model.Selector{Op: model.OpField, Key: "labels", Args: []model.Selector{field}}
	}
	is := func(text string) model.Selector { return model.Selector{Op: model.OpEqual, Text: text} }
	words := selector.VocabularyOf(newFleet(sample(), never).typeFacts())
	for _, c := range []struct {
		name     string
		selector model.Selector
		want     string
	}{
		{"the misspelt one first", where("labels.zone=a", "labels.reigon=b"), "no cluster type has labels.reigon; did you mean region?"},
		{"one alternative is known", label(model.OpField, "size", either(is("lagre"), is("small"))), "no cluster type satisfies all of it at once"},
		{"no alternative is known", label(model.OpField, "size", either(is("tiny"), is("lagre"))), `no cluster type has labels.size: "lagre"; did you mean large?`},
		{"an optional value", label(model.OpOptional, "size", is("lagre")), `no cluster type has labels.size: "lagre"; did you mean large?`},
		{"an optional label", label(model.OpOptional, "sise", is("large")), "no cluster type satisfies all of it at once"},
		{"an expression", label(model.OpField, "size", model.Selector{Op: model.OpSatisfy, Expr: `=~"^x"`}), "no cluster type satisfies all of it at once"},
	} {
		if got := words.Explain(diag.Diagnostic{}, kindType, &c.selector).Hint; got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// A value that is one of several in a selector is in use, too.
func TestEqualities(t *testing.T) {
	s := model.Selector{Op: model.OpAnd, Args: []model.Selector{
		{Op: model.OpSatisfy, Expr: `!="z"`},
		{Op: model.OpOr, Args: []model.Selector{{Op: model.OpEqual, Text: "a"}, {Op: model.OpEqual, Text: "b"}}},
	}}
	equal(t, "equalities", equalities(&s), []string{"a", "b"})
}
