package diag

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/model"
)

func TestSortMergesWhatDiffersInAssignments(t *testing.T) {
	at := func(line int) model.Position { return model.Position{File: "a.cue", Line: line, Column: 1} }
	ds := Sort([]Diagnostic{
		New(NoValue, "second").In(at(2), "").For("dev/b/x"),
		New(Syntax, "first").In(at(1), ""),
		New(NoValue, "second").In(at(2), "").For("dev/a/x"),
		New(NoValue, "second").In(at(3), ""),
	})
	var got []string
	for _, d := range ds {
		got = append(got, d.Message+" "+strings.Join(d.Assignments, ","))
	}
	if want := []string{"first ", "second dev/a/x,dev/b/x", "second "}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSortMergesWhatOneTextCauses(t *testing.T) {
	at := model.Position{File: "a.cue", Line: 2, Column: 1}
	of := func(path, message string) Diagnostic { return New(WrongValue, message).On(path).In(at, "") }
	got := Sort([]Diagnostic{
		of("configs.c.values.A", "A cannot be 3"), of("configs.a.values.A", "A cannot be 1"), of("configs.b.values.A", "A cannot be 2"),
		of("configs.a.values.B", "B cannot be 1"), of("configs.a.values.A", "A must be odd"), of("workloads.a.values.A", "A cannot be 1"),
		New(WrongValue, "A cannot be 1").On("configs.d.values.A").In(model.Position{File: "a.cue", Line: 3, Column: 1}, ""),
	})
	var texts []string
	for _, d := range got {
		texts = append(texts, fmt.Sprint(d.Path, ": ", d.Message, " ", d.Also))
	}
	want := []string{
		"configs.a.values.A: A cannot be 1 [configs.b.values.A configs.c.values.A]", "configs.a.values.A: A must be odd []",
		"configs.a.values.B: B cannot be 1 []", "workloads.a.values.A: A cannot be 1 []", "configs.d.values.A: A cannot be 1 []",
	}
	if !slices.Equal(texts, want) {
		t.Errorf("got %q, want %q", texts, want)
	}
}

func TestCodes(t *testing.T) {
	if !slices.IsSortedFunc(Codes, func(a, b Explanation) int { return strings.Compare(string(a.Code), string(b.Code)) }) {
		t.Error("the codes are not sorted")
	}
	for i, e := range Codes {
		if i > 0 && Codes[i-1].Code == e.Code {
			t.Errorf("%s stands twice", e.Code)
		}
		if (e.Code[2] == '9') != (e.Severity == Warning) {
			t.Errorf("%s is of severity %s", e.Code, e.Severity)
		}
		if !strings.HasSuffix(e.Text, ".") {
			t.Errorf("the explanation of %s is no sentence", e.Code)
		}
	}
	catalogue, err := os.ReadFile("catalogue.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`Code = "(K\d+)"`).FindAllStringSubmatch(string(catalogue), -1) {
		if _, explained := Explain(Code(m[1])); !explained {
			t.Errorf("Codes has no entry for %s", m[1])
		}
	}
}

// TestGitHub checks the escapes of workflow commands.
func TestGitHub(t *testing.T) {
	var b bytes.Buffer
	d := New(Syntax, "100% wrong").In(model.Position{File: "a,b:c.cue", Line: 1, Column: 2}, "").Hinting("two\nlines")
	if err := WriteGitHub(&b, []Diagnostic{d}); err != nil {
		t.Fatal(err)
	}
	const want = "::error file=a%2Cb%3Ac.cue,line=1,col=2,title=K1001::100%25 wrong%0Aa,b:c.cue:1:2%0Ahint: two%0Alines\n"
	if b.String() != want {
		t.Errorf("got  %swant %s", b.String(), want)
	}
}

func TestSuggesting(t *testing.T) {
	d := New(UnknownField, "unknown field lables").Suggesting("lables", []string{"labels", "name"})
	if want := (Suggestion{Wrong: "lables", Right: "labels"}); d.Suggestion != want || d.Hint != "did you mean labels?" {
		t.Errorf("%+v, %s", d.Suggestion, d.Hint)
	}
	if d := d.Suggesting("colour", []string{"labels", "name"}); d.Suggestion != (Suggestion{}) || d.Hint != "there are: labels, name" {
		t.Errorf("no candidate is near: %+v, %s", d.Suggestion, d.Hint)
	}
}
