package main

import (
	"reflect"
	"testing"
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
		{18, [][]string{{"NAME", "DESCRIP…"}, {"shop", "sells t…"}, {"a-longe…", "x"}}},
		{3, [][]string{{"NAME", "DESCR…"}, {"shop", "sells…"}, {"a-lon…", "x"}}},
	} {
		got := rows()
		if fit(got, test.columns); !reflect.DeepEqual(got, test.want) {
			t.Errorf("in %d columns: %q, want %q", test.columns, got, test.want)
		}
	}
}
