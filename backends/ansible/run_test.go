package ansible_test

import (
	"strings"
	"testing"

	bt "github.com/kalypso-io/kalypso/backends/internal/backendtest"
	"github.com/kalypso-io/kalypso/compiler/model"
)

const defaults = `{"interval": "15m", "maxFailPercentage": 0, "python": "/usr/bin/python3", "stateDirectory": "/var/lib/kalypso"}`

func value(t *testing.T, text string) *model.Value {
	v := bt.Value(t, text)
	return &v
}

func text(s string) *string { return &s }

// one is the inventory of a machine.
var one = []model.Cluster{{Name: "one", Address: "127.0.0.1"}}

// TestMachine runs a platform on a machine while it changes.
func TestMachine(t *testing.T) {
	m := newMachine(t, "bookworm")
	m.publish(deb(t, "hello-kalypso", "1.0"), deb(t, "hello-kalypso", "2.0"))
	hello := func(version string) bt.Target {
		return bt.Target{Name: "hello/main", Values: `{"GREETING": "hi {{ 1 + 1 }} \"$HOME\" \\ end"}`, Manifests: model.Manifests{Package: &model.Package{
			Deb:   map[string]model.Deb{"hello-kalypso": {Version: version}},
			Files: map[string]model.MachineFile{"/opt/hello/conf/x.conf": {Content: text("a: {{ 1 }} {% raw %}\n"), Mode: "0640"}},
			Units: map[string]model.Unit{"hello-kalypso.service": {Enabled: true, Harden: true}},
		}}}
	}
	p := bt.Platform{Options: defaults, Clusters: one, Targets: []bt.Target{hello("1.0")}}
	tree := m.install(p)
	for _, d := range tree.Diagnostics {
		t.Logf("%+v", d)
	}
	r := m.site()
	t.Log(r)
	t.Log(m.told())
	t.Log(m.sh("cat /var/lib/kalypso/dev/large/status.json /var/lib/kalypso/dev/large/assignments/*; ls -la /etc/hello-main; cat /etc/hello-main/*; cat /opt/hello/conf/*"))
	r = m.site()
	if r.changed != 0 {
		t.Fatal(r)
	}
	if !strings.Contains(r.out, "ok") {
		t.Fatal()
	}
}
