package engine

import (
	"reflect"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/diag"
)

func TestTupleSummariesComeBack(t *testing.T) {
	for _, want := range []tupleSummary{
		{lists: []byte{}},
		{digest: "d", lists: encodeLists([]string{"ports", `"a b".c`})},
		{failed: true, digest: "d", lists: encodeLists([]string{""}), diagnostics: []diag.Diagnostic{diag.New(diag.ForeignFile, "m")}},
	} {
		encoded := want.encode()
		if got, err := decodeTupleSummary(encoded); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v comes back as %+v, %v", want, got, err)
		}
		whole := len(encoded)
		if len(want.diagnostics) > 0 {
			bare := want
			bare.diagnostics = nil
			whole = len(bare.encode()) // the start of the diagnostics
		}
		for n := range encoded {
			if _, err := decodeTupleSummary(encoded[:n]); err == nil && n != whole {
				t.Errorf("%q is read", encoded[:n])
			}
		}
	}
}
