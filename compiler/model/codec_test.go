package model

import (
	"bytes"
	"reflect"
	"testing"
)

// sample has a value of every kind in a model.
func sample() Environment {
	number, _ := NumberOf("1.50")
	value := StructOf(Field{"a", number}, Field{"b", ListOf(StringOf("x"), Value{}, BoolOf(true))})
	return Environment{
		Name: "dev", Settings: Settings{After: []string{}, GitOps: &GitOps{Repo: "r"}},
		ClusterTypes: []ClusterType{{Name: "c", Labels: map[string]string{"b": "2", "a": "1", "c": ""}}, {Labels: map[string]string{}}},
		Workloads: []Workload{{Name: "w", Targets: []DeploymentTarget{{Manifests: Manifests{Helm: &Helm{Values: &value}}}},
			Requires: &Contract{Ref: Ref{"workloads", "w", "requires"}, Mentions: []string{}, Fields: []ContractField{{Optional: true}}}}},
		Configs: []Config{{Name: "c", Layer: -3, Match: Selector{Op: OpAnd, Args: []Selector{{Op: OpEqual, Text: "x"}}},
			Values: StructTreeOf(TreeField{"A", Tree{Kind: FinalLeaf, Final: value}}, TreeField{"B", Tree{Kind: OpenLeaf, Open: &Open{Default: &number}}})}},
		ConfigSchemas: []ConfigSchema{{Lists: map[string]ListStrategy{"x": {Append: true}, "a": {MergeBy: "name"}}}},
		Invalid:       map[Ref]bool{{"configs", "x", ""}: true},
		Incomplete:    true,
	}
}

func TestCodec(t *testing.T) {
	want := sample()
	data := Encode(want)
	for range 10 {
		if !bytes.Equal(Encode(sample()), data) {
			t.Fatal("equal values have different bytes")
		}
	}
	var got Environment
	if err := Decode(data, &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nbecame\n%+v", want, got)
	}
	for n := range data {
		if err := Decode(data[:n], new(Environment)); err == nil {
			t.Errorf("the first %d of %d bytes are read", n, len(data))
		}
	}
	if err := Decode(append(data, 0), new(Environment)); err == nil {
		t.Error("a byte too many is read")
	}
}

// FuzzDecode checks that Decode either reads or rejects untrusted bytes, and that a decoded
// value has a single encoded form with sorted maps.
func FuzzDecode(f *testing.F) {
	f.Add(Encode(sample()))
	f.Add(bytes.Repeat([]byte{0xff}, 40))
	f.Add(bytes.Repeat([]byte{2}, 400))
	f.Fuzz(func(t *testing.T, data []byte) {
		var e Environment
		if Decode(data, &e) != nil {
			return
		}
		var again Environment
		if err := Decode(Encode(e), &again); err != nil || !reflect.DeepEqual(e, again) {
			t.Errorf("%v: %+v became %+v", err, e, again)
		}
	})
}
