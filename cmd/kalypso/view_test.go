package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// TestView serves pages of a platform, changes a file, and sees that open pages change, and
// show it.
func TestView(t *testing.T) {
	w := newWatching(t)
	w.cmd.Args = []string{"kalypso", "view", "-C", w.platform, "--listen", "127.0.0.1:0"}
	out, in := io.Pipe()
	w.cmd.Stdout, w.cmd.Stderr = in, &w.stderr
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.follow(out, "\n", func() { _ = in.Close() })
	server := strings.TrimSpace(w.next())
	if !regexp.MustCompile(`^http://127\.0\.0\.1:\d+/$`).MatchString(server) {
		t.Fatalf("it serves at %q", server)
	}
	page := func(path string, status int) string {
		t.Helper()
		answer, err := http.Get(server + path)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != status {
			t.Fatalf("%s: %s, %v\n%s", path, answer.Status, err, text)
		}
		return string(text)
	}
	for path, want := range map[string]string{
		"":                                "shop",
		"assignments/dev/small/shop-test": "value of config east",
		"assignments/dev/small/shop-live": "there is no deployment target shop-live in dev",
		"environments/dv":                 "did you mean dev?",
		"compare/dev/prod":                "1.0.0",
		"diagnostics":                     "Nothing is wrong",
	} {
		status := http.StatusOK
		if strings.HasSuffix(path, "live") || strings.HasSuffix(path, "dv") {
			status = http.StatusNotFound
		}
		if text := page(path, status); !strings.Contains(text, want) {
			t.Errorf("%s does not say %q:\n%s", path, want, text)
		}
	}

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"events", nil)
	if err != nil {
		t.Fatal(err)
	}
	events, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer events.Body.Close()
	lines := bufio.NewScanner(events.Body)
	generation := func(want string) {
		t.Helper()
		for lines.Scan() {
			if data, is := strings.CutPrefix(lines.Text(), "data: "); is {
				if data != want {
					t.Fatalf("generation %s, not %s", data, want)
				}
				return
			}
		}
		t.Fatalf("the events end: %v", lines.Err())
	}
	generation("1")
	name := filepath.Join(w.platform, "environments", "dev", "more.cue")
	if err := os.WriteFile(name, []byte("package platform\n\nconfigs: east: values: DATABASE: \"east.db.example.com\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	generation("2")
	if text := page("assignments/dev/small/shop-test", http.StatusOK); !strings.Contains(text, "east.db.example.com") {
		t.Errorf("the change is not shown:\n%s", text)
	}
	if err := os.WriteFile(name, []byte("package platform\n\nconfigs: east: values: {\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	generation("3")
	if text := page("diagnostics", http.StatusOK); !strings.Contains(text, "environments/dev/more.cue") {
		t.Errorf("the error is not shown:\n%s", text)
	}
	if err := w.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	w.ends(130)
}
