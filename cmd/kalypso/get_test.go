package main

import (
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// TestCollectionsAreListed checks that get and describe know each collection of the language.
func TestCollectionsAreListed(t *testing.T) {
	g := inspector{newPlatform(streams{}, nil)}
	for _, command := range []string{"get", "describe"} {
		listed := map[string]bool{}
		parent := newGet(g)
		if command == "describe" {
			parent = newDescribe(g)
		}
		for _, c := range parent.Commands() {
			for _, name := range append(c.Aliases, c.Name()) {
				if listed[name] {
					t.Errorf("%s %s is ambiguous", command, name)
				}
				listed[name] = true
			}
		}
		for _, name := range model.CollectionNames {
			var kebab strings.Builder
			for _, r := range name {
				if r >= 'A' && r <= 'Z' {
					kebab.WriteByte('-')
				}
				kebab.WriteString(strings.ToLower(string(r)))
			}
			if !listed[kebab.String()] {
				t.Errorf("there is no %s %s", command, kebab.String())
			}
		}
	}
}
