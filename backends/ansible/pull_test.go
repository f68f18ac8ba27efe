package ansible_test

import (
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/model"
	bt "github.com/kalypso-io/kalypso/internal/testing/backendtest"
)

// workloads is a playbook that writes its variables to a file.
const workloads = `---
- name: Write down what is given
  hosts: all
  gather_facts: false
  tasks:
    - name: Write
      ansible.builtin.copy:
        dest: "/srv/{{ out }}"
        content: "{{ GREETING }}|{{ own }}|{{ SITE }}|{{ PASSWORD | default('') }}"
        mode: "0644"
`

// TestSlowPull has a machine pull the tree from git, with the units that Bootstrap
// installs, and run two playbooks: one of a repository, one of the folder.
func TestSlowPull(t *testing.T) {
	t.Parallel()
	m := newMachine(t, releases[0])
	m.write("/srv/packages/Packages", "", 0o644)
	m.write("/srv/app/deploy/site.yml", workloads, 0o644)
	m.write("/srv/secret", "top {{ secret }}\n", 0o600)
	m.sh("cd /srv/app; " + commit1 + "; git tag v1")
	tree := m.install(pulled(t))
	m.write("/srv/bootstrap.yml", string(tree.Bootstrap), 0o644)
	m.sh("mkdir -p /srv/gitops/fleet; mv /srv/tree /srv/gitops/fleet/large; cd /srv/gitops; " + commit1)

	if r := m.bootstrap(); r.failed != 0 || r.changed == 0 {
		t.Fatal(r)
	}
	if told := m.told(); !strings.HasSuffix(told, "enable kalypso-dev-large.timer\nstart kalypso-dev-large.timer\n") {
		t.Errorf("the timer is not started:\n%s", told)
	}
	if r := m.pull(); r.failed != 0 || r.changed == 0 {
		t.Fatal(r)
	}
	l := lifecycle{machine: m}
	l.expect("cat /srv/referenced", hostile+"|{{ own }}|{{ site }}|top {{ secret }}")
	l.expect("cat /srv/rendered", "plain|{{ own }}|{{ site }}|")
	l.expect("stat -c '%n %a' /etc/app-main/variables.yml /etc/app-main/platform-secrets.yml", "/etc/app-main/variables.yml 600\n/etc/app-main/platform-secrets.yml 600")
	if r := m.pull(); r.failed != 0 || r.changed != 0 {
		t.Errorf("pulled twice: %s", r)
	}
	m.sh("rm /srv/rendered")
	if r := m.pull(); r.failed != 0 || r.changed != 1 {
		t.Errorf("what a playbook changes is a change: %s", r)
	}
}

const commit1 = "git init --quiet --initial-branch=main; git add --all; git -c user.name=tests -c user.email=tests@example.test commit --quiet --message=one"

func pulled(t *testing.T) bt.Platform {
	values := bt.Value(t, `{"SITE": "{{ site }}"}`)
	git := &model.Git{Repo: "file:///srv/app", Tag: "v1"}
	return bt.Platform{
		Options: defaults, GitOps: &model.GitOps{Repo: "file:///srv/gitops", Branch: "main", Path: "fleet"},
		Clusters: []model.Cluster{{Name: "one", Values: &values}},
		Targets: []bt.Target{
			{
				Name: "app/main", Values: `{"GREETING": ` + bt.JSON(hostile) + `}`,
				Secrets:   []backends.Secret{{Name: "PASSWORD", Store: "x", Key: "/srv/secret"}},
				Service:   `{"name": "x", "deletion": "delete", "secrets": {"lookup": {"plugin": "ansible.builtin.file", "terms": ["$(key)"]}}}`,
				Manifests: playbook(model.Playbook{Git: git, Playbook: "deploy/site.yml", Vars: value(t, `{"out": "referenced", "own": "{{ own }}"}`)}),
			},
			{
				Name: "other/main", Values: `{"GREETING": "plain"}`, Render: true,
				Manifests:  playbook(model.Playbook{Git: git, Playbook: "deploy/site.yml", Vars: value(t, `{"out": "rendered", "own": "{{ own }}"}`)}),
				Projection: &model.Projection{Files: []model.ProjectedFile{{Path: "deploy/site.yml", Data: []byte(workloads)}}},
			},
		},
	}
}

// bootstrap runs the playbook of Bootstrap on the machine.
func (m *machine) bootstrap() recap {
	m.Helper()
	return m.ends("ansible-playbook", "--connection=local", "--inventory=/srv/gitops/fleet/large/inventory/hosts.yml", "/srv/bootstrap.yml")
}

// pull does the work of systemd when the timer elapses.
func (m *machine) pull() recap {
	m.Helper()
	unit := m.read("/etc/systemd/system/kalypso-dev-large.service")
	_, start, _ := strings.Cut(unit, "ExecStart=")
	config := unit[strings.Index(unit, "ANSIBLE_CONFIG="):]
	config, _, _ = strings.Cut(config, "\n")
	return m.ends("env", config, "sh", "-c", start)
}
