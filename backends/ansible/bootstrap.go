package ansible

import (
	"fmt"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// The tasks of the bootstrap playbook.
type (
	bootstrapPlay struct {
		Name        string          `yaml:"name"`
		Hosts       string          `yaml:"hosts"`
		Become      bool            `yaml:"become,omitempty"`
		GatherFacts bool            `yaml:"gather_facts"`
		Tasks       []bootstrapTask `yaml:"tasks"`
	}
	bootstrapTask struct {
		Name    string       `yaml:"name"`
		Apt     *aptTask     `yaml:"ansible.builtin.apt,omitempty"`
		Copy    *copyTask    `yaml:"ansible.builtin.copy,omitempty"`
		Systemd *systemdTask `yaml:"ansible.builtin.systemd,omitempty"`
	}
	aptTask struct {
		Name           []string `yaml:"name"`
		State          string   `yaml:"state"`
		UpdateCache    bool     `yaml:"update_cache"`
		CacheValidTime int      `yaml:"cache_valid_time"`
	}
	copyTask struct {
		Dest    string `yaml:"dest"`
		Content string `yaml:"content"`
		Owner   string `yaml:"owner"`
		Group   string `yaml:"group"`
		Mode    string `yaml:"mode"`
	}
	systemdTask struct {
		Name         string `yaml:"name"`
		Enabled      bool   `yaml:"enabled"`
		State        string `yaml:"state"`
		DaemonReload bool   `yaml:"daemon_reload"`
	}
)

// Accounts returns the reason why there are no service accounts: machines do not have them.
func (ansible) Accounts(*backends.ClusterType) backends.Accounts {
	return backends.Accounts{Unknown: "Ansible changes machines, where Kubernetes admits nothing"}
}

// Bootstrap returns a playbook for the hosts of the cluster type. It makes each host pull
// the environment's tree and run local.yml from it, with a systemd timer. The playbook
// contains no credentials: git on the host finds them.
func (ansible) Bootstrap(ct *backends.ClusterType, _ []backends.Folder) ([]byte,
	[]diag.Diagnostic) {
	o, ds := optionsOf(ct.Reconciler)
	switch {
	case diag.Errors(ds):
		return nil, ds
	case ct.GitOps == nil:
		return nil, []diag.Diagnostic{delivery.NeedsGitOps(ct.Environment,
			"what cluster type "+ct.Name+" pulls").
			At(delivery.Environment(ct.Environment, ""), "")}
	}
	if ds := delivery.NeedsRepository(ct, "ansible-pull"); len(ds) > 0 {
		return nil, ds
	}
	for _, field := range []struct {
		name, value string
		fits        bool
	}{
		{"repo", ct.GitOps.Repo, repository.MatchString(ct.GitOps.Repo)},
		{"branch", ct.GitOps.Branch, revision.MatchString(ct.GitOps.Branch)},
		{"path", ct.GitOps.Path, delivery.Path(ct.GitOps.Path) == "." ||
			machinePath.MatchString("/"+delivery.Path(ct.GitOps.Path))},
	} {
		if !field.fits {
			ds = append(ds, diag.New(diag.BadSpec,
				fmt.Sprintf("%q has characters that cannot stand in a unit of systemd", field.value)).
				At(delivery.Environment(ct.Environment, "gitops."+field.name), ""))
		}
	}
	if len(ds) > 0 {
		return nil, ds
	}
	name := model.ShortName("kalypso-"+ct.Environment+"-"+ct.Name, model.MaxLabel)
	file := func(title, unit, content string) bootstrapTask {
		return bootstrapTask{Name: title, Copy: &copyTask{
			Dest: unitDirectory + unit, Content: content, Owner: "root", Group: "root", Mode: "0644",
		}}
	}
	hosts := identifier(ct.Name)
	if ct.Entries {
		hosts = ct.Cluster // the entry that it pulls has its name
	}
	return ansibleYAML([]bootstrapPlay{{
		Name: "Have the hosts of " + ct.Name + " in " + ct.Environment +
			" pull what is assigned to them",
		Hosts: hosts, Become: o.become(),
		Tasks: []bootstrapTask{
			{Name: "Install Ansible and git", Apt: &aptTask{Name: []string{"ansible-core", "git",
				"python3-apt"}, State: "present", UpdateCache: true, CacheValidTime: 3600}},
			file("Write the service that pulls", name+".service", pullService(ct, o)),
			file("Write the timer", name+".timer", fmt.Sprintf(`[Unit]
Description=Pull what kalypso assigns to %s in %s

[Timer]
OnBootSec=1min
OnUnitInactiveSec=%s
RandomizedDelaySec=1min

[Install]
WantedBy=timers.target
`, ct.Name, ct.Environment, o.Interval)),
			{Name: "Start the timer", Systemd: &systemdTask{Name: name + ".timer", Enabled: true,
				State: "started", DaemonReload: true}},
		},
	}}), nil
}

// pullService returns the unit that pulls once. The unit names the inventory of the tree, and an
// inventory of only the host, in case the tree does not list it. ansible-pull itself checks out as
// localhost.
func pullService(ct *backends.ClusterType, o options) string {
	state, folder := o.state(ct.Environment, ct.Name), delivery.Path(ct.GitOps.Path, ct.Pulled())
	const host = "{{ inventory_hostname }}"
	command := []string{
		"/usr/bin/ansible-pull",
		"--url=" + ct.GitOps.Repo, "--checkout=" + ct.GitOps.Branch, "--directory=" + state + "/tree",
		"--clean", "--force",
		"--inventory=" + folder + "/" + hostsFile, "--inventory=" + host + ",localhost,",
		"--limit=" + host,
		"--extra-vars=kalypso_cluster=" + host, folder + "/local.yml",
	}
	for i := range command {
		command[i] = strings.ReplaceAll(command[i], "%", "%%") // a specifier's sign (systemd.unit(5))
	}
	return fmt.Sprintf(`[Unit]
Description=Pull what kalypso assigns to %s in %s
Wants=network-online.target
After=network-online.target

[Service]
Type=oneshot
Environment=ANSIBLE_CONFIG=%s/tree/%s/ansible.cfg
ExecStart=%s
`, ct.Name, ct.Environment, state, folder, strings.Join(command, " \\\n  "))
}
