package hubtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// Webhooks builds the program of internal/testing/webhooks, whose folder is given, and returns its path.
func Webhooks(t testing.TB, folder string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "webhooks")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir, build.Env = folder, append(os.Environ(), "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// Notifications returns argocd-notifications-cm as a page of the docs has it.
func Notifications(t testing.TB, page string) (config map[string]string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(text), "```yaml\nservice.webhook.kalypso:")
	block, _, found := strings.Cut(block, "\n```\n")
	if err := yaml.Unmarshal([]byte("service.webhook.kalypso:"+block), &config); err != nil || !found {
		t.Fatalf("%s has no notifications of Argo CD: %v", page, err)
	}
	return config
}
