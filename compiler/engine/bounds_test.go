package engine

import (
	"slices"
	"strings"
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

func TestCapabilitiesOf(t *testing.T) {
	const bind = "CAP_NET_BIND_SERVICE"
	texts := func(all ...string) model.Value {
		var out []model.Value
		for _, text := range all {
			out = append(out, model.StringOf(text))
		}
		return model.ListOf(out...)
	}
	for _, test := range []struct {
		u    model.Unit
		want string
	}{
		{model.Unit{Service: section("AmbientCapabilities", model.StringOf("CAP_B CAP_A"))}, "CAP_A CAP_B"},
		{model.Unit{Service: section("CapabilityBoundingSet", model.StringOf("CAP_A"))}, ""},
		{model.Unit{Socket: section("ListenStream", model.IntOf(443))}, bind},
		{model.Unit{Socket: section("ListenStream", texts("8080", "[::]:80"))}, bind},
		{model.Unit{Socket: section("ListenDatagram", texts("192.0.2.1:53"))}, bind},
		{model.Unit{Socket: section("ListenStream", texts("[fe80::1]:80%eth0"))}, bind},
		{model.Unit{Socket: section("ListenStream", texts("%i"))}, bind},
		{model.Unit{Socket: section("ListenStream", texts("01750"))}, bind},
		{model.Unit{Socket: section("ListenStream", texts("", "1024", "[2001:db8::1]:8080"))}, ""},
	} {
		if got := strings.Join(capabilitiesOf(test.u), " "); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

func section(name string, v model.Value) *model.Value {
	v = model.StructOf(model.Field{Name: name, Value: v})
	return &v
}

func TestRuns(t *testing.T) {
	all := map[string]model.Unit{"a.service": {}, "a.timer": {}, "b.service": {}}
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
		{"install", "WantedBy", "b.service", false},
		{"install", "WantedBy", "sysinit.target", true},
		{"install", "WantedBy", "timers.target", true}, // for timers
		{"install", "Alias", "ssh.service", true},
		{"unit", "Before", "b.service shutdown.target", false},
		{"unit", "Before", "ssh.service", true},
		{"service", "Nice", "10", false},
		{"service", "Nice", "-5", true},
		{"service", "OOMScoreAdjust", "-1000", true},
		{"service", "CPUQuota", "20%", false},
		{"service", "CPUWeight", "50", false},
		{"service", "CPUWeight", "10000", true},
		{"service", "CPUSchedulingPolicy", "batch", false},
		{"service", "CPUSchedulingPolicy", "fifo", true},
		{"service", "IOSchedulingClass", "realtime", true},
		{"service", "IODeviceWeight", "/dev/sda 10000", true},
		{"service", "LimitNOFILE", "65536", false},
		{"service", "LimitRTPRIO", "99", true},
		{"service", "MemoryMax", "1G", false},
		{"service", "MemoryMin", "64G", true},
	} {
		u := unit{"a.service", model.Unit{Harden: true}, all}
		value := section(test.name, model.StringOf(test.value))
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
