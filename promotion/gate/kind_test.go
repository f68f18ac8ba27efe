package gate

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso"
	"github.com/kalypso-io/kalypso/compiler/model"
)

func names() (names []string) {
	for _, k := range table {
		names = append(names, k.Name)
	}
	return names
}

// Every row has all columns, and one of the two functions.
func TestRowsAreComplete(t *testing.T) {
	for i, k := range table {
		var zero []string
		for j := range reflect.TypeFor[Kind]().NumField() {
			if reflect.ValueOf(k).Field(j).IsZero() {
				zero = append(zero, reflect.TypeFor[Kind]().Field(j).Name)
			}
		}
		if len(zero) != 1 || zero[0] != "commit" && zero[0] != "change" {
			t.Errorf("row %d, %s, has no %v", i, k.Name, zero)
		}
		if slices.Index(names(), k.Name) != i {
			t.Errorf("%s is in two rows", k.Name)
		}
	}
}

// Every gate of the model is evaluated by the row with its name. rollout is not a gate of the new
// commit, but determines when the stages in after count as passed.
func TestModelIsInTable(t *testing.T) {
	for i := range reflect.TypeFor[model.Gates]().NumField() {
		name := strings.TrimPrefix(strings.ToLower(reflect.TypeFor[model.Gates]().Field(i).Name), "own")
		if name == "rollout" {
			continue
		}
		var g model.Gates
		if field := reflect.ValueOf(&g).Elem().Field(i); field.Kind() == reflect.Slice {
			field.Set(reflect.MakeSlice(field.Type(), 1, 1))
		} else {
			field.Set(reflect.New(field.Type().Elem()))
		}
		vs := Commit(gates(g), facts(), Skip{})
		vs = append(vs, Planned(t.Context(), gates(g), ChangeFacts{Now: now, Change: change(0, 0, 0, 0), OwnFiles: true}, Skip{})...)
		if len(vs) != 1 || vs[0].Gate != name {
			t.Errorf("gate %s of the model has the verdicts %+v", name, vs)
		}
	}
}

// The schema allows the gates in skippable that the table does, and in allow the other gates of
// the planned change.
func TestSchemaIsInTable(t *testing.T) {
	text, err := kalypso.Module.ReadFile("schema/promotion.cue")
	if err != nil {
		t.Fatal(err)
	}
	var allow []string
	for _, k := range table {
		if k.Skip == Nobody && k.OfChange() {
			allow = append(allow, k.Name)
		}
	}
	for line, want := range map[string][]string{`#GateName: (.*)`: MayBeSkippable(), `allow\?: (.*)`: allow} {
		var got []string
		for _, quoted := range regexp.MustCompile(`"\w+"`).FindAllString(regexp.MustCompile(line).FindString(string(text)), -1) {
			got = append(got, strings.Trim(quoted, `"`))
		}
		if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
			t.Errorf("%s: the schema has %v, and the table %v", line, got, want)
		}
	}
}

// TestPageHasGates compares the table of docs/promotion.md with the gates that policies have.
func TestPageHasGates(t *testing.T) {
	page, err := os.ReadFile("../../docs/promotion.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range MayBeSkippable() {
		if name == "removals" {
			continue // no policy has to name it: the text below the table describes it
		}
		if !strings.Contains(string(page), "\n| `"+name+"` ") {
			t.Errorf("the table of gates in docs/promotion.md has no row for %s", name)
		}
	}
}

// TestChangeFields compares the fields that policies may constrain with the fields that exist.
func TestChangeFields(t *testing.T) {
	var fields []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Change]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields = append(fields, name)
	}
	slices.Sort(fields)
	if !slices.Equal(fields, model.ChangeFields) {
		t.Errorf("a change has the fields %q, and model.ChangeFields are %q", fields, model.ChangeFields)
	}
}
