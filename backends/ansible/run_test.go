package ansible_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	bt "github.com/kalypso-io/kalypso/internal/testing/backendtest"
)

// releases are the Debian releases with the versions of Ansible that the output supports:
// 2.14 and 2.19.
var releases = []string{"bookworm", "trixie"}

// TestSlowMachine runs a platform on a machine while it changes: each step is a build and a run.
// The test checks the effect of each step on the machine, and that a second run changes nothing.
func TestSlowMachine(t *testing.T) {
	for _, release := range releases {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, release)
			old, next := deb(t, "hello-kalypso", "1.0"), deb(t, "hello-kalypso", "2.0-1~rc1")
			m.publish(old, next)
			fetched := deb(t, "fetched", "1:0.9")
			server := httptest.NewServer(http.FileServer(http.Dir(filepath.Dir(fetched))))
			defer server.Close()
			m.sh("useradd --system legacy; mkdir /srv/shared; echo theirs >/srv/shared/motd; echo top-secret >/srv/secret")
			l := lifecycle{machine: m, url: server.URL + "/" + filepath.Base(fetched), digest: digestOf(t, fetched)}
			l.first()
			if release != releases[0] {
				return // runs take a while, and the other steps use no other modules
			}
			l.change()
			l.downgrade()
			l.move()
			l.remove()
		})
	}
}

// lifecycle are the steps of TestSlowMachine.
type lifecycle struct {
	*machine
	url, digest string
}

// hostile is a text that Ansible, sh and systemd all read differently.
const hostile = `it's {{ 1 + 1 }} {% raw %} {# #} "$HOME" \ ` + "`id`\nnext line"

// hello has a file, and a package that contains its own unit.
func (l lifecycle) hello(version, extra string) bt.Target {
	return bt.Target{
		Name: "hello/main", Values: `{"GREETING": ` + bt.JSON(hostile) + `, "EXTRA": ` + bt.JSON(extra) + `}`,
		Service: `{"name": "x", "deletion": "delete", "machine": {"groups": ["audio", "hello-ops"], "directories": {"/srv/data/hello": {"mode": "0700"}}, "limits": {"memory": "64M", "cpu": "50%", "tasks": 9, "openFiles": 99}}}`,
		Manifests: model.Manifests{Package: &model.Package{
			Deb:   map[string]model.Deb{"hello-kalypso": {Version: version}},
			Files: map[string]model.MachineFile{"/opt/hello/conf/x.conf": {Content: text("a: {{ 1 }} {% raw %}\n"), Mode: "0640", Group: "hello-ops"}},
			Units: map[string]model.Unit{"hello-kalypso.service": {Enabled: true, Harden: true}},
		}},
	}
}

// own has units of its own, a package by URL, a file that was there before, and a
// secret; it runs as a user that was there before. It shares a group and a folder
// with hello.
func (l lifecycle) own(motd string) bt.Target {
	return bt.Target{
		Name: "own/main", Secrets: []backends.Secret{{Name: "PASSWORD", Store: "x", Key: "/srv/secret"}},
		Service: `{"name": "x", "deletion": "delete", "machine": {"user": "legacy", "groups": ["hello-ops"]}, "secrets": {"lookup": {"plugin": "ansible.builtin.file", "terms": ["$(key)"]}}}`,
		Manifests: model.Manifests{Package: &model.Package{
			Deb: map[string]model.Deb{"fetched": {Version: "1:0.9", URL: l.url, Digest: l.digest}},
			Files: map[string]model.MachineFile{
				"/srv/shared/motd":    {Content: &motd, Mode: "0644"},
				"/opt/hello/own.conf": {Content: text("shared\n"), Mode: "0640", Group: "hello-ops"},
			},
			Units: map[string]model.Unit{
				"own.service":     {Enabled: true, Harden: true, Service: value(l.T, `{"ExecStart": "/usr/bin/env cat /srv/shared/motd", "NoNewPrivileges": false}`)},
				"other.service":   {Enabled: true, Harden: true, Service: value(l.T, `{"ExecStart": "/usr/bin/env sleep inf"}`)},
				"once.service":    {Enabled: true, Service: value(l.T, `{"Type": "oneshot", "ExecStart": "/usr/bin/env true"}`)},
				"tick.timer":      {Enabled: true, Timer: value(l.T, `{"OnCalendar": "daily"}`)},
				"tick.service":    {Service: value(l.T, `{"Type": "oneshot", "ExecStart": "/usr/bin/env true"}`)},
				"fetched.service": {},
			},
		}},
	}
}

// broken has a service that does not start unless program is there.
func (l lifecycle) broken(program string) bt.Target {
	return bt.Target{Name: "broken/main", Manifests: model.Manifests{Package: &model.Package{
		Units: map[string]model.Unit{"broken.service": {Enabled: true, Service: value(l.T, `{"ExecStart": "`+program+`"}`)}},
	}}}
}

// waits waits for broken, and its user and directories outlive it.
func (l lifecycle) waits() bt.Target {
	return bt.Target{
		Name: "waits/main", DependsOn: []string{"broken-main"}, Wave: 1, Format: model.JSON,
		Service:   `{"name": "x", "deletion": "orphan"}`,
		Manifests: model.Manifests{Package: &model.Package{Units: map[string]model.Unit{"waits.service": {Enabled: true, Service: value(l.T, `{"ExecStart": "/bin/sh"}`)}}}},
	}
}

// twice builds and runs the targets, and checks that the second run changes nothing.
func (l lifecycle) twice(targets ...bt.Target) (first recap, told string) {
	l.Helper()
	first, told = l.run(targets...)
	if again := l.site(); again.changed != 0 || again.failed != first.failed {
		l.Fatalf("the second run is not like the first: %s", again)
	}
	l.told()
	return first, told
}

// run builds and runs the targets, and returns the commands that the run gave to systemctl.
func (l lifecycle) run(targets ...bt.Target) (recap, string) {
	l.Helper()
	values := bt.Value(l.T, `{"SITE": "{{ site }}", "db": {"host": "here"}}`)
	tree := l.install(bt.Platform{Options: defaults, Targets: targets,
		Clusters: []model.Cluster{{Name: "one", Address: "127.0.0.1", Labels: map[string]string{"x": "{{ x }}"}, Values: &values}}})
	if diag.Errors(withoutBootstrap(tree.Diagnostics)) {
		l.Fatalf("%+v", tree.Diagnostics)
	}
	return l.site(), l.told()
}

// withoutBootstrap leaves out that there is no gitops.
func withoutBootstrap(ds []diag.Diagnostic) []diag.Diagnostic {
	var out []diag.Diagnostic
	for _, d := range ds {
		if d.Code != diag.NeedsGitOps {
			out = append(out, d)
		}
	}
	return out
}

// expect compares the output of a script.
func (l lifecycle) expect(script, want string) {
	l.Helper()
	if got := strings.TrimSpace(l.sh("{ " + script + "; } 2>&1 || true")); got != want {
		l.Errorf("%s:\n%s\nwant:\n%s", script, got, want)
	}
}

const dpkg = "dpkg-query --show --showformat '${Package}=${Version} ${db:Status-Status} ' "

func (l lifecycle) first() {
	r, told := l.twice(l.hello("1.0", "1"), l.own("ours\n"), l.broken("/usr/bin/program"), l.waits())
	if r.failed != 1 || r.rescued != 1 || strings.Contains(r.out, "top-secret") {
		l.Fatalf("one assignment fails, and the run for it; no secret is shown: %s", r)
	}
	for _, want := range []string{"start hello-kalypso.service", "enable own.service", "start tick.timer", "start once.service"} {
		if !strings.Contains(told, want+"\n") {
			l.Errorf("systemctl is not told to %s, but to\n%s", want, told)
		}
	}
	for _, no := range []string{"tick.service", "fetched.service", "waits.service"} {
		if strings.Contains(told, "start "+no) || strings.Contains(told, "enable "+no) {
			l.Errorf("%s is started or enabled:\n%s", no, told)
		}
	}
	l.expect(dpkg+"hello-kalypso fetched", "fetched=1:0.9 installed hello-kalypso=1.0 installed")
	l.expect("stat -c '%n %U:%G %a' /etc/hello-main/* /srv/data/hello /opt/hello/conf/x.conf",
		"/etc/hello-main/platform-config.env hello-main:hello-main 600\n/srv/data/hello hello-main:hello-main 700\n/opt/hello/conf/x.conf root:hello-ops 640")
	l.expect("cat /opt/hello/conf/x.conf", "a: {{ 1 }} {% raw %}")
	l.expect("set -a; . /etc/hello-main/platform-config.env; printf '%s' \"$GREETING|$SITE|$db\"", hostile+`|{{ site }}|{"host":"here"}`)
	l.expect("id -nG hello-main", "hello-main audio hello-ops")
	l.expect("cat /etc/legacy/platform-secrets.env; stat -c '%U %a' /etc/legacy/platform-secrets.env", "PASSWORD=\"top-secret\"\nlegacy 600")
	l.expect("cat /etc/systemd/system/hello-kalypso.service.d/50-kalypso.conf | grep -E 'User|Mem|CPU|Tasks|NOFILE|ReadWrite|Environ'",
		"EnvironmentFile=/etc/hello-main/platform-config.env\nCPUQuota=50%\nMemoryMax=64M\nTasksMax=9\nLimitNOFILE=99\nUser=hello-main\nReadWritePaths=/var/lib/hello-main /srv/data/hello")
	l.expect("grep -c NoNewPrivileges /etc/systemd/system/own.service.d/50-kalypso.conf", "0")
	l.expect("ls /var/lib/kalypso/dev/large/assignments; grep -A3 -e broken -e waits /var/lib/kalypso/dev/large/status.json | grep -e id -e outcome -e reason | tr -s ' '",
		"broken-main.json\nhello-main.json\nown-main.json\n \"id\": \"dev/large/broken-main\",\n \"outcome\": \"failed\",\n \"reason\": \"Start units\"\n"+
			" \"id\": \"dev/large/waits-main\",\n \"outcome\": \"skipped\",\n \"reason\": \"depends on broken-main\"")
}

func (l lifecycle) change() {
	l.sh("ln -s /bin/sh /usr/bin/program")
	targets := []bt.Target{l.hello("2.0-1~rc1", "2"), l.own("new\n"), l.broken("/usr/bin/program"), l.waits()}
	before := l.sh("find /etc /opt /srv/data /srv/shared /var/lib/kalypso -type f -exec sha256sum {} +")
	l.install(bt.Platform{Options: defaults, Targets: targets, Clusters: one})
	if r := l.site("--check"); r.changed == 0 || r.failed != 0 {
		l.Errorf("a check shows what changes: %s", r)
	}
	if after := l.sh("find /etc /opt /srv/data /srv/shared /var/lib/kalypso -type f -exec sha256sum {} +"); after != before || l.told() != "" {
		l.Errorf("a check changes nothing:\n%s\n%s", before, after)
	}
	r, told := l.run(targets...)
	if r.failed != 0 {
		l.Fatal(r)
	}
	if told != "daemon-reload\nstart broken.service\ndaemon-reload\nrestart hello-kalypso.service\ndaemon-reload\nrestart own.service\ndaemon-reload\nenable waits.service\nstart waits.service\n" {
		l.Errorf("only what reads something new is restarted:\n%s", told)
	}
	l.expect(dpkg+"hello-kalypso", "hello-kalypso=2.0-1~rc1 installed")
	l.expect("cat /srv/shared/motd; tail -n 1 /etc/waits-main/platform-config.json; grep -c SITE /etc/waits-main/platform-config.json", "new\n}\n1")
}

func (l lifecycle) downgrade() {
	hello := l.hello("1.0", "2")
	hello.Manifests.Package.Files = nil
	l.sh("echo drift >/srv/shared/motd; rm /run/systemctl/active/own.service")
	r, told := l.run(hello, l.own("new\n"), l.broken("/usr/bin/program"), l.waits())
	if r.failed != 0 {
		l.Fatal(r)
	}
	if told != "daemon-reload\nrestart hello-kalypso.service\nstart own.service\n" {
		l.Errorf("what drifted is put right, and nothing else is touched:\n%s", told)
	}
	l.expect("cat /srv/shared/motd", "new")
	l.expect(dpkg+"hello-kalypso; ls -d /opt/hello/conf", "hello-kalypso=1.0 installed ls: cannot access '/opt/hello/conf': No such file or directory")
}

// move renames hello's deployment target, and moves the things of own to other targets. Some go to
// hello, which is deployed earlier, and some to waits, which is deployed later. A group that two
// targets had stays with one of them.
func (l lifecycle) move() {
	hello, own, waits := l.hello("1.0", "2"), l.own("new\n"), l.waits()
	hello.Name, hello.Service = "hello/prod", `{"name": "x", "deletion": "delete"}`
	from, to := own.Manifests.Package, hello.Manifests.Package
	to.Deb["fetched"], to.Files = from.Deb["fetched"], map[string]model.MachineFile{"/opt/hello/own.conf": from.Files["/opt/hello/own.conf"]}
	from.Deb = nil
	delete(from.Files, "/opt/hello/own.conf")
	delete(from.Units, "fetched.service")
	waits.Manifests.Package.Units["other.service"] = from.Units["other.service"]
	delete(from.Units, "other.service")
	r, told := l.twice(hello, own, l.broken("/usr/bin/program"), waits)
	if r.failed != 0 || strings.Contains(told, "stop ") || strings.Contains(told, "disable ") {
		l.Errorf("nothing is stopped that another assignment wants: %s\n%s", r, told)
	}
	l.expect("ls /var/lib/kalypso/dev/large/assignments; getent passwd hello-main hello-prod | cut -d: -f1; getent group hello-ops | cut -d: -f1; ls -d /etc/hello-main",
		"broken-main.json\nhello-prod.json\nown-main.json\nwaits-main.json\nhello-prod\nhello-ops\nls: cannot access '/etc/hello-main': No such file or directory")
	l.expect(dpkg+"hello-kalypso fetched; cat /opt/hello/own.conf; ls /run/systemctl/active",
		"fetched=1:0.9 installed hello-kalypso=1.0 installed shared\nbroken.service\nhello-kalypso.service\nonce.service\nother.service\nown.service\ntick.timer\nwaits.service")
}

func (l lifecycle) remove() {
	r, told := l.run(l.broken("/usr/bin/program"))
	if r.failed != 0 {
		l.Fatal(r)
	}
	for _, unit := range []string{"hello-kalypso", "own", "other", "waits"} {
		if !strings.Contains(told, "stop "+unit+".service\n") || !strings.Contains(told, "disable "+unit+".service\n") {
			l.Errorf("%s is not stopped and disabled:\n%s", unit, told)
		}
	}
	l.expect("getent passwd hello-prod legacy waits-main | cut -d: -f1", "legacy\nwaits-main")
	l.expect("getent group hello-prod hello-ops | cut -d: -f1", "")
	l.expect("ls -d /opt/hello /etc/hello-prod /var/lib/hello-prod /var/lib/hello-main /etc/waits-main /srv/data /etc/legacy /var/lib/legacy 2>/dev/null", "/etc/waits-main")
	l.expect("cat /srv/shared/motd; ls /etc/systemd/system /etc/apt/preferences.d | grep -e own -e hello -e waits -e tick -e once", "new")
	l.expect("dpkg-query --show --showformat '${db:Status-Status}' hello-kalypso fetched 2>&1", "dpkg-query: no packages found matching hello-kalypso\ndpkg-query: no packages found matching fetched")
	l.expect("cat /var/lib/kalypso/dev/large/status.json | grep id; ls /var/lib/kalypso/dev/large/assignments", "\"id\": \"dev/large/broken-main\",\nbroken-main.json")
}
