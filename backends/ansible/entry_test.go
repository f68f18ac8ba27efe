package ansible_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/ansible"
	"github.com/kalypso-io/kalypso/compiler/model"
	bt "github.com/kalypso-io/kalypso/internal/testing/backendtest"
)

// TestSlowEntry lets a machine pull its entry while the entry names another class, and then the
// first class again. Assignments of both classes stay unchanged. After only a commit, the next run
// removes the assignments that the class does not have. A run of the class's own inventory then
// changes nothing.
func TestSlowEntry(t *testing.T) {
	for _, release := range releases[:1] { // both take as long as all other tests together
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			l := lifecycle{machine: newMachine(t, release)}
			l.write("/srv/packages/Packages", "", 0o644)
			values := bt.Value(t, `{"SITE": "{{ site }}"}`)
			kept, extra := marked("kept/main", "/srv/kept"), marked("extra/main", "/srv/extra")
			classes := map[string]bt.Platform{"large": {Targets: []bt.Target{kept}}, "large.cameras": {Targets: []bt.Target{extra, kept}}}
			l.sh("mkdir -p /srv/gitops/fleet")
			for folder, p := range classes {
				p.Options, p.GitOps = defaults, &model.GitOps{Repo: "file:///srv/gitops", Branch: "main", Path: "fleet"}
				p.Clusters = []model.Cluster{{Name: "one", Values: &values}}
				classes[folder] = p
				l.install(p)
				l.sh(`mv /srv/tree "$1"`, "/srv/gitops/fleet/"+folder)
			}
			l.follow(classes["large"], "large")
			l.sh("cd /srv/gitops; " + commit1)
			if r := l.ends("ansible-playbook", "--connection=local", "--inventory=/srv/gitops/fleet/"+backends.EntryDir("one")+"/inventory/hosts.yml", "/srv/bootstrap.yml"); r.failed != 0 || r.changed == 0 {
				t.Fatal(r)
			}
			if r := l.pull(); r.failed != 0 || r.changed == 0 {
				t.Fatal(r)
			}
			const look = "stat -c '%i %Y' /srv/kept; cat /srv/extra 2>/dev/null || echo gone; grep -c '{{ site }}' /etc/kept-main/platform-config.env"
			first := strings.TrimSpace(l.sh(look))
			for _, step := range []struct{ folder, extra string }{{"large.cameras", "extra/main"}, {"large", "gone"}} {
				l.follow(classes[step.folder], step.folder)
				l.sh("cd /srv/gitops; git add --all; git -c user.name=tests -c user.email=tests@example.test commit --quiet --message=" + step.folder)
				if r := l.pull(); r.failed != 0 || r.changed == 0 {
					t.Fatal(r)
				}
				l.expect("cat /srv/extra 2>/dev/null || echo gone", step.extra)
				if r := l.pull(); r.failed != 0 || r.changed != 0 {
					t.Errorf("pulled twice: %s", r)
				}
				if release != releases[0] {
					return // runs take a while, and the way back tests nothing new
				}
				if r := l.ends("env", "--chdir=/srv/gitops/fleet/"+step.folder, "ansible-playbook", "--connection=local", "site.yml"); r.failed != 0 || r.changed != 0 {
					t.Errorf("pushed after it is pulled: %s", r)
				}
			}
			l.expect(look, first)
		})
	}
}

// marked has a file with its own name.
func marked(name, file string) bt.Target {
	return bt.Target{Name: name, Manifests: model.Manifests{Package: &model.Package{Files: map[string]model.MachineFile{file: {Content: text(name), Mode: "0644"}}}}}
}

// follow writes the entry of the host, which follows a folder, and its bootstrap.
func (l lifecycle) follow(p bt.Platform, folder string) {
	l.Helper()
	ct := p.ClusterType(l.T)
	ct.Folder, ct.Entries, ct.Cluster = folder, true, "one"
	entry, ds := ansible.New().Entries(ct)
	if len(ds) > 0 {
		l.Fatal(ds)
	}
	for _, f := range entry(&ct.Clusters[0]) {
		l.write(filepath.Join("/srv/gitops/fleet", backends.EntryDir("one"), f.Path), string(f.Data), 0o644)
	}
	bootstrap, ds := ansible.New().Bootstrap(ct, nil)
	if len(ds) > 0 {
		l.Fatal(ds)
	}
	l.write("/srv/bootstrap.yml", string(bootstrap), 0o644)
}
