//go:build unix

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/model"
)

func TestFoldersOf(t *testing.T) {
	got := foldersOf([]string{
		"dev/plant/orders-canary/platform-config.yaml", "dev/plant/orders-canary/namespace.yaml", "dev/depot/orders-canary/a/b.yaml",
		"dev/.kalypso/provenance.json", "dev/plant/README.md",
	})
	want := []string{"dev/depot/orders-canary", "dev/plant/README.md", "dev/plant/orders-canary"}
	if !slices.Equal(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestChecksFail has builds that change too much, too little and elsewhere.
func TestChecksFail(t *testing.T) {
	c := &change{Config: "network", Assignments: 2}
	for _, test := range []struct{ got, want []string }{
		{[]string{"a", "b", "c"}, []string{"a", "b"}},
		{[]string{"a"}, []string{"a", "b"}},
		{[]string{"a", "c"}, []string{"a", "b"}},
		{[]string{"a"}, []string{"a"}},
	} {
		if err := c.check("folder", test.got, test.want); err == nil {
			t.Errorf("%s for %s passes", test.got, test.want)
		}
	}
	if err := c.check("folder", []string{"a", "b"}, []string{"a", "b"}); err != nil {
		t.Error(err)
	}
}

func TestChangeIsOfItsConfig(t *testing.T) {
	dir := t.TempDir()
	text := "configs: {\n\t\"a\": {\n\t\tvalues: {\n\t\t\t\"A_URL\": \"https://a\"\n\t}\n\t}\n\t\"a-b\": {\n\t\tvalues: {\n\t\t\t\"B_URL\": \"https://b\"\n\t}\n\t}\n}\n"
	file := filepath.Join(dir, "configs-000.cue")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, url := range map[string]string{"a": "https://a", "a-b": "https://b"} {
		c := &change{Config: name}
		if err := c.find(dir); err != nil || string(c.url) != url {
			t.Errorf("%s: found %s, %v", name, c.url, err)
		}
	}
	if err := (&change{Config: "c"}).find(dir); err == nil {
		t.Error("a config that is nowhere is found")
	}
}

func TestEqualValues(t *testing.T) {
	values := func(text string) (v map[string]json.RawMessage) {
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, test := range []struct {
		cue, kalypso string
		equal        bool
	}{
		{`{"A": {"x": 1, "y": [2]}}`, `{"A": {"y":[2],"x":1}}`, true},
		{`{}`, `{"RETRIES": 3}`, true},
		{`{}`, `{"A": 3}`, false},
		{`{"A": 3}`, `{}`, false},
		{`{"A": 1}`, `{"A": "1"}`, false},
		{`{"A": [1, 2]}`, `{"A": [2, 1]}`, false},
	} {
		if err := equalValues(values(test.cue), values(test.kalypso)); (err == nil) != test.equal {
			t.Errorf("%s and %s: %v", test.cue, test.kalypso, err)
		}
	}
}

func TestMatchingConfigs(t *testing.T) {
	match := func(key, text string) model.Selector {
		return model.Selector{Op: model.OpField, Key: key, Args: []model.Selector{{Op: model.OpEqual, Text: text}}}
	}
	configs := []model.Config{
		{Name: "high", Layer: 20, Match: match("region", "west")},
		{Name: "all", Match: model.Selector{Op: model.OpAll}},
		{Name: "other", Layer: 20, Match: match("region", "east")},
		{Name: "both", Layer: 10, Match: model.Selector{Op: model.OpAnd, Args: []model.Selector{match("region", "west"), match("class", "store")}}},
		{Name: "function", Layer: 30, Facts: []string{"environment"}},
	}
	got, err := matchingConfigs(configs, map[string]string{"region": "west", "class": "store"})
	if err != nil || !slices.Equal(got, []string{"all", "both", "high"}) {
		t.Errorf("got %s, %v", got, err)
	}
	for name, c := range map[string]model.Config{
		"not an equality":    {Name: "x", Match: model.Selector{Op: model.OpOr}},
		"another of a layer": {Name: "x", Layer: 20, Match: match("region", "west")},
	} {
		if _, err := matchingConfigs(append(configs, c), map[string]string{"region": "west"}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
