package main

import (
	"reflect"
	"strings"
	"testing"

	"github.com/mattn/go-runewidth"
)

func TestFit(t *testing.T) {
	rows := func() [][]string {
		return [][]string{{"NAME", "DESCRIPTION"}, {"shop", "sells thïngs to people"}, {"a-longer-name", "x"}}
	}
	for _, test := range []struct {
		columns int
		want    [][]string
	}{
		{80, rows()},
		{37, rows()},
		{28, [][]string{{"NAME", "DESCRIPTION"}, {"shop", "sells thïngs…"}, {"a-longer-name", "x"}}},
		{18, [][]string{{"NAME", "DESCR…"}, {"shop", "sells…"}, {"a-longer-…", "x"}}},
		{3, [][]string{{"NAME", "DESCR…"}, {"shop", "sells…"}, {"a-lon…", "x"}}},
	} {
		got := rows()
		if fit(got, test.columns); !reflect.DeepEqual(got, test.want) {
			t.Errorf("in %d columns: %q, want %q", test.columns, got, test.want)
		}
	}
}

// The columns that name an item are cut last.
func TestFitKeepsNames(t *testing.T) {
	got := [][]string{{"ENVIRONMENT", "DEPLOYMENT TARGET", "LABELS"}, {"production", "a-very-long-name", "region=east,size=large"}}
	fit(got, 44)
	if want := []string{"production", "a-very-long-name", "region=east…"}; !reflect.DeepEqual(got[1], want) {
		t.Errorf("%q, want %q", got[1], want)
	}
}

// The last cell of a row continues below itself, and wide characters count as two columns.
func TestHang(t *testing.T) {
	for _, test := range []struct {
		text            string
		indent, columns int
		want            string
	}{
		{"it waits for an approval of one\n", 4, 60, "it waits for an approval of one\n"},
		{"it waits for an approval of one\n", 4, 26, "it waits for an\n    approval of one\n"},
		{"日本語 日本語 日本語 日本語\n", 4, 24, "日本語 日本語 日本語\n    日本語\n"},
		{"it waits for an approval of one\n", 4, 20, "it waits for an approval of one\n"},
		{"it waits for an approval of one\n", 0, 20, "it waits for an approval of one\n"},
	} {
		if got := hang(test.text, test.indent, test.columns); got != test.want {
			t.Errorf("%q after %d of %d: %q, want %q", test.text, test.indent, test.columns, got, test.want)
		}
	}
}

// If the first cells leave the last one too little room, writeNarrow cuts them, and no line is
// too wide.
func TestWriteNarrow(t *testing.T) {
	rows := func() [][]string {
		return [][]string{
			{"ENVIRONMENT", "DEPLOYMENT TARGET", "STATE", "REASON"},
			{"production", "self-checkout-production", "waiting", "approvals: 0 of 2 on the present head"},
		}
	}
	for _, columns := range []int{60, 80} {
		var out strings.Builder
		writeNarrow(&out, rows(), columns)
		for line := range strings.Lines(out.String()) {
			if w := runewidth.StringWidth(strings.TrimSuffix(line, "\n")); w > columns {
				t.Errorf("%d columns of %d: %q", w, columns, line)
			}
		}
		if words := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(words, "head") {
			t.Errorf("the reason is cut: %s", words)
		}
	}
}
