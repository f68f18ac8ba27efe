package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestPeopleOptions(t *testing.T) {
	whole := peopleOptions{issuer: "https://login.example.com", client: "hub", rules: "roles.yaml", session: time.Hour}
	for name, c := range map[string]struct {
		change func(*peopleOptions)
		local  bool
		url    string
		want   string
	}{
		"whole":           {url: "https://hub.example.com"},
		"nothing":         {change: func(o *peopleOptions) { *o = peopleOptions{} }},
		"CI alone":        {change: func(o *peopleOptions) { o.issuer, o.client = "", "" }},
		"local":           {local: true, want: "everybody on this machine gets in"},
		"no rules":        {change: func(o *peopleOptions) { o.rules = "" }, want: "needs --oidc-roles"},
		"no client":       {change: func(o *peopleOptions) { o.client = "" }, want: "needs --oidc-client-id"},
		"no address":      {want: "needs --url"},
		"a client alone":  {change: func(o *peopleOptions) { o.issuer, o.rules = "", "" }, want: "go with --oidc-issuer"},
		"a long session":  {change: func(o *peopleOptions) { o.session = 48 * time.Hour }, url: "https://hub.example.com", want: "between a minute and a day"},
		"a short session": {change: func(o *peopleOptions) { o.session = 0 }, url: "https://hub.example.com", want: "between a minute and a day"},
	} {
		o := whole
		if c.change != nil {
			c.change(&o)
		}
		err := o.check(c.local, c.url)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, not %q", name, err, c.want)
		}
	}
}

func TestSecretIn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("  short\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := secretIn(file, "--key", 5); text != "short" || err != nil {
		t.Errorf("it has %q, %v", text, err)
	}
	if _, err := secretIn(file, "--key", 32); err == nil || strings.Contains(err.Error(), "short\n") || !strings.Contains(err.Error(), "it has 5 characters, and needs 32") {
		t.Errorf("of a short key: %v", err)
	}
	if _, err := secretIn(file+"x", "--key", 1); err == nil || !strings.HasPrefix(err.Error(), "--key: ") {
		t.Errorf("of no file: %v", err)
	}
	if text, err := secretIn("", "--key", 1); text != "" || err != nil {
		t.Errorf("without: %q, %v", text, err)
	}
}

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
