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

func TestRuns(t *testing.T) {
	all := map[string]model.Unit{"a.service": {}, "a.timer": {}, "b.service": {}}
	section := func(name, value string) *model.Value {
		v := model.StructOf(model.Field{Name: name, Value: model.StringOf(value)})
		return &v
	}
	for _, test := range []struct {
		section, name, value string
		root                 bool
	}{
		{"service", "ExecStart", "-/opt/a --x", false},
		{"service", "ExecStart", "@+/opt/a", true},
		{"service", "ReadWritePaths", "/srv/a", false},
		{"service", "StateDirectory", "a a/b", false},
		{"service", "StateDirectory", "a b", true},
		{"service", "CacheDirectory", "a/../b", true},
		{"service", "LogsDirectory", "a:b", true},
		{"service", "EnvironmentFile", "/etc/shadow", true},
		{"service", "PIDFile", "/run/b.pid", true},
		{"service", "NotADirective", "x", true},
		{"service", "X-Team", "orders", false},
		{"socket", "ListenStream", "0.0.0.0:80", false},
		{"socket", "ListenStream", "/run/docker.sock", true},
		{"unit", "Wants", "network-online.target b.service", false},
		{"unit", "Wants", "reboot.target", true},
		{"unit", "Conflicts", "ssh.service", true},
		{"unit", "FailureAction", "reboot", true},
		{"timer", "OnCalendar", "daily", false},
		{"timer", "Unit", "a.service", false},
		{"timer", "Unit", "debug-shell.service", true},
		{"install", "WantedBy", "multi-user.target", false},
		{"install", "Alias", "ssh.service", true},
	} {
		u := unit{"a.service", model.Unit{Harden: true}, all}
		value := section(test.name, test.value)
		switch test.section {
		case "service":
			u.Service = value
		case "socket":
			u.Socket = value
		case "unit":
			u.Unit.Unit = value
		case "timer":
			u.Timer = value
		case "install":
			u.Install = value
		}
		var want []run
		if test.root {
			want = []run{{root, ": " + test.name}}
		}
		if got := u.runs(); !slices.Equal(got, want) {
			t.Errorf("[%s] %s=%s runs as %v, want %v", test.section, test.name, test.value, got, want)
		}
	}
}
