package model

import (
	"strings"
	"testing"
)

func TestShortName(t *testing.T) {
	long := strings.Repeat("abcdefghi-", 7)
	for _, name := range []string{"a", strings.Repeat("x", 63), strings.Repeat("abcdefghijk.", 7), long, long + "b", strings.Repeat("-", 70)} {
		got := ShortName(name, MaxLabel)
		if len(got) > MaxLabel {
			t.Errorf("ShortName(%s) has %d characters", name, len(got))
		}
		if len(name) <= MaxLabel && got != name {
			t.Errorf("ShortName changed %s to %s", name, got)
		}
		if strings.Contains(got, ".-") {
			t.Errorf("ShortName(%s) = %s, which has a label that begins with a dash", name, got)
		}
	}
	if ShortName(long+"a", 53) == ShortName(long+"b", 53) {
		t.Error("two long names have one short name")
	}
}

func TestIsDNSSubdomain(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "dev.hello-world-app.test": true, "a.1.b-c": true, "": false, ".": false, "a.": false, ".a": false, "a..b": false, "a.-b": false, "a-.b": false, "A.b": false, "a_b": false,
	} {
		if got := IsDNSSubdomain(name); got != want {
			t.Errorf("IsDNSSubdomain(%q) = %v", name, got)
		}
	}
}

func TestParsePath(t *testing.T) {
	for in, want := range map[string]string{
		"a": "a", "a.b": "a.b", "reject-tags": `"reject-tags"`, "module.tag.reject-tags": `module.tag."reject-tags"`,
		`"a.b".c`: `"a.b".c`, `x."y z"`: `x."y z"`, "0": `"0"`, `"_a"`: `"_a"`,
	} {
		if got, ok := ParsePath(in); !ok || got != want {
			t.Errorf("ParsePath(%s) = %s, %v, want %s", in, got, ok, want)
		}
	}
	for _, bad := range []string{"", ".", "a.", ".a", "a..b", `"a`, `"a"b`, " a", "a b ."} {
		if got, ok := ParsePath(bad); ok {
			t.Errorf("ParsePath(%q) = %s", bad, got)
		}
	}
}

func TestPositionsOf(t *testing.T) {
	at := func(line int) Position { return Position{"a.cue", line, 1} }
	table := &Positions{}
	config := Ref{Collection: "configs", Name: "a"}
	table.Add(config, at(1))
	table.Add(config.At("values"), at(2))
	table.Add(config.At(`values."x.y"`), at(3))
	table.Add(config.At("values.list[0]"), at(4))
	table.Add(config.At("values.list[0]"), at(4))
	for path, want := range map[string]int{
		"": 1, "match": 1, "values": 2, "values.other.deep": 2, `values."x.y"`: 3, `values."x.y".z`: 3, "values.list[0]": 4, "values.list[1]": 2,
	} {
		got := table.Of(config.At(path))
		if len(got) != 1 || got[0].Line != want {
			t.Errorf("%q is at %v, want line %d", path, got, want)
		}
	}
	if got := table.Of(Ref{Collection: "configs", Name: "b", Path: "values.x"}); got != nil {
		t.Errorf("an unknown entity is at %v", got)
	}
}

func TestIsDevice(t *testing.T) {
	for name, want := range map[string]bool{
		"con": true, "CON": true, "aux.cue": true, "nul.tar.gz": true, "com1": true, "lpt9.txt": true,
		"cons": false, "com": false, "com10": false, "a.con": false, "comx": false, "": false,
	} {
		if got := IsDevice(name); got != want {
			t.Errorf("IsDevice(%q) = %v, want %v", name, got, want)
		}
	}
}
