package query

import (
	"reflect"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// TestGateTexts checks that the graph of an environment shows each gate of the model, except what
// people have to approve in addition for changes of its own files.
func TestGateTexts(t *testing.T) {
	for gate := range reflect.TypeFor[model.Gates]().Fields() {
		if gate.Name == "OwnApprovals" {
			continue
		}
		var g model.Gates
		of := reflect.ValueOf(&g).Elem().FieldByIndex(gate.Index)
		if of.Kind() == reflect.Slice {
			of.Set(reflect.MakeSlice(of.Type(), 1, 1))
		} else {
			of.Set(reflect.New(of.Type().Elem()))
		}
		if b := g.Budget; b != nil {
			b.Assignments = new(int)
		}
		if texts := gateTexts(&g); len(texts) == 0 {
			t.Errorf("the graph does not show gate %s", gate.Name)
		}
	}
}
