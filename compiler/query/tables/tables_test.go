package tables

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// TestAll checks that All has each list with a doc, which is a table of kalypso query.
func TestAll(t *testing.T) {
	text, err := os.ReadFile("entities.go")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`Table\{\s+Name: "(\w+)", Doc:`).FindAllStringSubmatch(string(text), -1)
	if len(found) == 0 {
		t.Fatal("entities.go has no tables")
	}
	for _, m := range found {
		if !slices.Contains(Names(), m[1]) {
			t.Errorf("All has no table %s", m[1])
		}
	}
}
