package platform_test

import (
	"testing"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/view/platform"
)

func TestLinker(t *testing.T) {
	at := model.Position{File: "environments/dev/a b.cue", Line: 3, Column: 2}
	none := func(string) string { return "" }
	for remote, want := range map[string]string{
		"https://github.com/acme/platform.git":     "https://github.com/acme/platform/blob/c0ffee/fleet/environments/dev/a%20b.cue#L3",
		"git@github.com:acme/platform.git":         "https://github.com/acme/platform/blob/c0ffee/fleet/environments/dev/a%20b.cue#L3",
		"https://user:secret@gitlab.com/a/b/c.git": "https://gitlab.com/a/b/c/-/blob/c0ffee/fleet/environments/dev/a%20b.cue#L3",
		"https://codeberg.org/acme/platform":       "https://codeberg.org/acme/platform/src/commit/c0ffee/fleet/environments/dev/a%20b.cue#L3",
		"https://git.example.com/acme/platform":    "",
		"../platform.git":                          "",
		"":                                         "",
		"https://github.com":                       "",
	} {
		link := platform.Linker(remote, none, "c0ffee", "fleet", func(file string) bool { return file != "changed.cue" })
		if link == nil {
			if want != "" {
				t.Errorf("%s: no links", remote)
			}
			continue
		}
		if got := link(at); got != want {
			t.Errorf("%s: %q, not %q", remote, got, want)
		}
		for _, elsewhere := range []model.Position{{}, {File: "/etc/passwd", Line: 1}, {File: "changed.cue", Line: 1}} {
			if got := link(elsewhere); got != "" {
				t.Errorf("%s: %v has the link %q", remote, elsewhere, got)
			}
		}
	}
	if platform.Linker("https://github.com/acme/platform", none, "", "", nil) != nil {
		t.Error("there are links without a commit")
	}
}
