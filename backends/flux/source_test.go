package flux

import (
	"testing"
	"time"
)

func TestWithoutHours(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "30s": "30s", "90m": "90m", "1h": "60m", "1h30m": "90m", "1.5h": "90m", "1h1.5s": "60m1.5s", "2h250ms": "120m250ms", "0h": "0m",
	} {
		got, err := withoutHours(in)
		if err != nil || got != want {
			t.Errorf("%s: got %s, %v, want %s", in, got, err, want)
		}
		if in == "" {
			continue
		}
		a, _ := time.ParseDuration(in)
		if b, err := time.ParseDuration(got); a != b || err != nil {
			t.Errorf("%s is %s long, and %s is %s", in, a, got, b)
		}
	}
	for _, in := range []string{"1d", "h", "99999999h"} {
		if got, err := withoutHours(in); err == nil {
			t.Errorf("%s: got %s and no error", in, got)
		}
	}
}

func TestGitURL(t *testing.T) {
	for in, want := range map[string]string{
		"https://x/y":           "https://x/y",
		"http://x/y":            "http://x/y",
		"ssh://git@x:22/y":      "ssh://git@x:22/y",
		"git@x:team/app.git":    "ssh://git@x/team/app.git",
		"git@x:/srv/app.git":    "ssh://git@x/srv/app.git",
		"git://x/y":             "",
		"file:///y":             "",
		"no-repository-at-all@": "",
	} {
		got, ok := gitURL(in)
		if ok != (want != "") || ok && got != want {
			t.Errorf("%s: got %q, %v, want %q", in, got, ok, want)
		}
	}
}
