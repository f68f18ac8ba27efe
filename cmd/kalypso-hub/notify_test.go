package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNotifyOptions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "notify.yaml")
	if err := os.WriteFile(file, []byte("[{name: chat, kind: slack, url: 'https://chat.example.com/secret', events: [done]}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ file, want string }{
		"none":         {"", ""},
		"no such file": {file + "x", "--notify: open "},
		"no event":     {file, "notify.yaml: chat: there is no event \"done\""},
	} {
		err := (&notifyOptions{file: c.file}).check()
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: %v, not %q", name, err, c.want)
		}
	}
}
