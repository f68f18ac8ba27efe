package people

import (
	"os"
	"regexp"
	"testing"
)

// The rules in the documentation are valid.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/hub-access.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```yaml\n(groups:.*?)```").FindSubmatch(text)
	if block == nil {
		t.Fatal("there are none")
	}
	rules, err := Parse(block[1])
	if err != nil || len(rules.Groups) != 3 || len(rules.CI) != 2 {
		t.Errorf("they are %+v, %v", rules, err)
	}
}
