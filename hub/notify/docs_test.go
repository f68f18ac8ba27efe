package notify

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The targets in the documentation are valid.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/hub-notifications.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```yaml\n(- name:.*?)```").FindSubmatch(text)
	if block == nil {
		t.Fatal("there are none")
	}
	secrets := t.TempDir()
	for name, secret := range map[string]string{"slack": "https://a.example.com", "shop-slack": "https://a.example.com", "incidents-key": "a-key-of-many-characters"} {
		if err := os.WriteFile(filepath.Join(secrets, name), []byte(secret), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	targets, err := Parse([]byte(strings.ReplaceAll(string(block[1]), "/run/secrets", secrets)))
	if err != nil || len(targets) != 3 {
		t.Errorf("there are %d, %v", len(targets), err)
	}
}
