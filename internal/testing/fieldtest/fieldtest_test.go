package fieldtest_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/kalypso-io/kalypso/internal/testing/fieldtest"
)

// errors are the errors that a check reports.
type errors struct {
	testing.TB
	all []string
}

func (*errors) Helper() {}

func (e *errors) Errorf(format string, args ...any) {
	e.all = append(e.all, fmt.Sprintf(format, args...))
}

func TestCheck(t *testing.T) {
	type inner struct{ Counts, Forgotten int }
	type outer struct {
		Name, Label string
		Inner       []inner
		Unread      func()
	}
	e := &errors{TB: t}
	fieldtest.Check(e, func() *outer { return &outer{} }, func(o *outer) string {
		text := o.Name + o.Label
		for _, in := range o.Inner {
			text += fmt.Sprint(" ", in.Counts)
		}
		return text
	}, map[string]string{"Unread": "nobody reads it", "Gone": "there was one"})
	want := []string{
		"there is no field Gone, which does not count",
		"a change of Label gives the result of Name",
		"a change of Inner gives the result of Inner.Forgotten",
	}
	if !slices.Equal(e.all, want) {
		t.Errorf("reported are %q, want %q", e.all, want)
	}
}
