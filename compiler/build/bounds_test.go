package build

import (
	"slices"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/model"
)

func TestClimbs(t *testing.T) {
	for address, want := range map[string]bool{
		"https://git.example.com/billing/app":         false,
		"https://git.example.com/billing/..app/a..b":  false,
		"https://git.example.com/billing/../platform": true,
		"https://git.example.com/billing/%2E%2e/x":    true,
		"https://git.example.com/billing/./app":       true,
		`https://git.example.com/billing\..\platform`: true,
		"oci://registry.example.com/billing/..":       true,
	} {
		if climbs(address) != want {
			t.Errorf("%s climbs: %t", address, !want)
		}
	}
}

func TestOutside(t *testing.T) {
	p := &model.Package{Files: map[string]model.MachineFile{}}
	for _, name := range []string{"/opt/app/a", "/opt/../etc/passwd", "/proc/self/root/etc/passwd", "/dev/sda", "/srv/x", "/etc/app/x"} {
		p.Files[name] = model.MachineFile{}
	}
	want := []string{"/dev/sda", "/etc/app/x", "/opt/../etc/passwd", "/proc/self/root/etc/passwd"}
	if got := outside(p, model.Patterns{"/opt/*", "/srv/*"}); !slices.Equal(got, want) {
		t.Errorf("outside are %q, want %q", got, want)
	}
	want = []string{"/dev/sda", "/proc/self/root/etc/passwd"}
	if got := outside(p, model.Patterns{"*"}); !slices.Equal(got, want) {
		t.Errorf("outside of everything are %q, want %q", got, want)
	}
}
