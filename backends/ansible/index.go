package ansible

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// role is the Ansible role that brings assignments about.
//
//go:embed role
var role embed.FS

// roleFolder is the role's place in a cluster type's folder.
const roleFolder = "roles/kalypso"

// settings is ansible.cfg. Roles of the machine that runs the playbook do not
// count, and modules are piped to the host, not copied there: a run has many.
const settings = `[defaults]
inventory = inventory/hosts.yml
roles_path = %sroles

[connection]
pipelining = true
`

// settingsFrom returns ansible.cfg of a folder. up is the path from there to the folder with
// the role.
func settingsFrom(up string) backends.File {
	return backends.File{Path: "ansible.cfg", Data: fmt.Appendf(nil, settings, up)}
}

// play is a play of a playbook.
type play struct {
	Name              string            `yaml:"name"`
	Hosts             string            `yaml:"hosts"`
	Connection        string            `yaml:"connection,omitempty"`
	Become            bool              `yaml:"become,omitempty"`
	GatherFacts       bool              `yaml:"gather_facts"`
	Serial            *model.Value      `yaml:"serial,omitempty"`
	MaxFailPercentage *int              `yaml:"max_fail_percentage,omitempty"`
	Vars              map[string]string `yaml:"vars,omitempty"`
	Tasks             []task            `yaml:"tasks"`
}

// task includes tasks of the role, or imports the tasks of a file.
type task struct {
	Name    string      `yaml:"name"`
	Include *roleTasks  `yaml:"ansible.builtin.include_role,omitempty"`
	Import  *tasksFile  `yaml:"ansible.builtin.import_tasks,omitempty"`
	Vars    *assignment `yaml:"vars,omitempty"`
}

type roleTasks struct {
	Name      string `yaml:"name"`
	TasksFrom string `yaml:"tasks_from"`
}

type tasksFile struct {
	File string `yaml:"file"`
}

// assignment are the variables of the role for an assignment.
type assignment struct {
	Assignment string   `yaml:"kalypso_assignment"`
	DependsOn  []string `yaml:"kalypso_depends_on"`
	// Values are the values of the host; "" if no host has values composed for the assignment.
	Values string `yaml:"kalypso_values,omitempty"`
}

// Index returns the inventory, the playbooks site.yml, for a machine that reaches
// the hosts, and local.yml, for ansible-pull on a host, and the role.
func (ansible) Index(ct *backends.ClusterType, folders []backends.Folder) ([]backends.File,
	[]diag.Diagnostic) {
	o, ds := optionsOf(ct.Reconciler)
	if diag.Errors(ds) {
		return nil, ds
	}
	hosts, ds := inventory(ct, ct.Clusters)
	if diag.Errors(ds) {
		return nil, ds
	}
	group := identifier(ct.Name)
	title := "Deploy what is assigned to " + ct.Name + " in " + ct.Environment
	imported := []task{{Name: "Deploy the assignments",
		Import: &tasksFile{File: "tasks/assignments.yml"}}}
	// site is for the hosts of the inventory. local is for the host that it runs on. If the
	// inventory lists that host, kalypso_cluster is its name.
	site := play{Name: title, Hosts: group, Become: o.become(),
		Serial: o.Serial, MaxFailPercentage: &o.MaxFailPercentage, Tasks: imported}
	local := play{Name: title + " to this machine",
		Hosts: "{{ kalypso_cluster | default('localhost') }}", Connection: "local",
		Vars: map[string]string{"ansible_python_interpreter": o.Python}, Tasks: imported}
	assigned := []string{}
	for _, f := range folders {
		assigned = append(assigned, f.DeploymentTarget)
	}
	slices.Sort(assigned)
	files := append(roleFiles(),
		readme(ct, folders),
		settingsFrom(""),
		backends.File{Path: hostsFile, Data: ansibleYAML(hosts)},
		backends.File{Path: "inventory/group_vars/" + group + "/kalypso.yml",
			Data: ansibleYAML(connectionOf(o))},
		backends.File{Path: "site.yml", Data: ansibleYAML([]play{site})},
		backends.File{Path: "local.yml", Data: ansibleYAML([]play{local})},
		backends.File{Path: "tasks/assignments.yml", Data: ansibleYAML(tasks(ct, folders))},
		backends.File{Path: roleFolder + "/vars/main.yml", Data: ansibleYAML(struct {
			Environment string   `yaml:"kalypso_environment"`
			ClusterType string   `yaml:"kalypso_cluster_type"`
			State       string   `yaml:"kalypso_state"`
			Assigned    []string `yaml:"kalypso_assigned"`
		}{ct.Environment, ct.Name, o.state(ct.Environment, ct.Name), assigned})},
	)
	return delivery.Sorted(files), ds
}

// valuesOfHost are the values of a host in an assignment: the values composed for the host,
// overridden by the host's values for all assignments. hostvars has the variables of the host,
// which the variables of a task do not hide.
const valuesOfHost = "{{ (hostvars[inventory_hostname].kalypso_composed | default({})).get('%s', " +
	"{}) | combine(hostvars[inventory_hostname].kalypso_values | default({}), recursive=true) }}"

// tasks returns the tasks of both plays: the assignments, each after its dependencies.
func tasks(ct *backends.ClusterType, folders []backends.Folder) []task {
	ordered := slices.Clone(folders)
	slices.SortStableFunc(ordered, func(a, b backends.Folder) int {
		return cmp.Or(cmp.Compare(a.Wave, b.Wave),
			strings.Compare(a.DeploymentTarget, b.DeploymentTarget))
	})
	from := func(name string) *roleTasks { return &roleTasks{Name: "kalypso", TasksFrom: name} }
	out := []task{{Name: "Begin", Include: from("begin")}}
	for _, f := range ordered {
		vars := &assignment{Assignment: f.DeploymentTarget, DependsOn: append([]string{}, f.DependsOn...)}
		if slices.ContainsFunc(ct.Clusters,
			func(c model.Cluster) bool { return len(c.Composed[f.DeploymentTarget].Fields()) > 0 }) {
			vars.Values = fmt.Sprintf(valuesOfHost, f.DeploymentTarget)
		}
		out = append(out,
			task{Name: "Deploy " + f.DeploymentTarget, Include: from("assignment"), Vars: vars})
	}
	return append(out,
		task{Name: "Remove what is no longer assigned, and report", Include: from("end")})
}

// roleFiles returns the role without its variables.
func roleFiles() []backends.File {
	var out []backends.File
	err := fs.WalkDir(role, "role", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := role.ReadFile(name)
		out = append(out, backends.File{Path: roleFolder + strings.TrimPrefix(name, "role"), Data: data})
		return err
	})
	if err != nil {
		panic(fmt.Sprintf("ansible: reading the role: %v", err)) // it is part of the program
	}
	return out
}

// readme returns README.md, with how the folder is used.
func readme(ct *backends.ClusterType, folders []backends.Folder) backends.File {
	file := kubernetes.README(ct, folders)
	var out bytes.Buffer
	out.Write(file.Data)
	out.WriteString("\n`ansible-playbook site.yml` brings all of it to the hosts of " +
		"`inventory/hosts.yml`, and `--check --diff` shows\n" +
		"what it would change. A host that pulls runs `local.yml`.\n")
	return backends.File{Path: file.Path, Data: out.Bytes()}
}

// Entries returns the inventory of the one host, and a playbook that imports the playbook of the
// host's folder. The name of the records on a host is the name of its cluster type. A run of
// another class therefore removes the things that the class does not assign.
func (ansible) Entries(ct *backends.ClusterType) (func(*model.Cluster) []backends.File,
	[]diag.Diagnostic) {
	o, ds := optionsOf(ct.Reconciler)
	if diag.Errors(ds) {
		return nil, ds
	}
	if _, ds := inventory(ct, ct.Clusters); diag.Errors(ds) {
		return nil, ds
	}
	connected, up := connectionOf(o), delivery.FromEntry(ct)+"/"
	config := settingsFrom(up)
	local := backends.File{Path: "local.yml",
		Data: ansibleYAML(
			[]importedPlaybook{{"Deploy what is assigned to the class of the host", up + "local.yml"}})}
	return func(c *model.Cluster) []backends.File {
		hosts, _ := inventory(ct, []model.Cluster{*c})
		hosts.All.Vars = &connected
		return []backends.File{config, {Path: hostsFile, Data: ansibleYAML(hosts)}, local}
	}, nil
}

// importedPlaybook is a playbook of another folder.
type importedPlaybook struct {
	Name     string `yaml:"name"`
	Playbook string `yaml:"ansible.builtin.import_playbook"`
}

// hostsFile is the inventory, in a cluster type's folder and in a cluster's entry.
const hostsFile = "inventory/hosts.yml"

// hosts is an inventory: one group, named after the cluster type.
type hosts struct {
	All struct {
		Vars     *connection      `yaml:"vars,omitempty"`
		Children map[string]group `yaml:"children"`
	} `yaml:"all"`
}

type group struct {
	Hosts map[string]host `yaml:"hosts"`
}

// host are the variables of a cluster.
type host struct {
	Address string         `yaml:"ansible_host,omitempty"`
	Labels  map[string]any `yaml:"kalypso_labels,omitempty"`
	Values  yaml.Mapping   `yaml:"kalypso_values,omitempty"`
	// Composed are the values composed only for the cluster, by assignment.
	Composed map[string]any `yaml:"kalypso_composed,omitempty"`
}

// connection is how the hosts of a cluster type are reached.
type connection struct {
	Python string `yaml:"ansible_python_interpreter"`
	User   string `yaml:"ansible_user,omitempty"`
}

func connectionOf(o options) connection { return connection{Python: o.Python, User: o.RemoteUser} }

// inventory returns clusters of a cluster type. The values of a cluster are part of the platform
// config there, and override the values of its assignments. Their names must therefore be valid in
// every format.
func inventory(ct *backends.ClusterType, clusters []model.Cluster) (hosts, []diag.Diagnostic) {
	var ds []diag.Diagnostic
	all := map[string]host{}
	for _, c := range clusters {
		h := host{Address: c.Address, Labels: map[string]any{}}
		for key, value := range c.Labels {
			h.Labels[key] = unsafe(model.StringOf(value))
		}
		check := func(values model.Value, ref model.Ref) {
			for _, v := range values.Fields() {
				problem := ""
				_, nulls := v.Value.WithoutNulls()
				switch {
				case !variable.MatchString(v.Name):
					problem = "cannot be the name of a variable: use letters, digits and '_'"
				case v.Value.Kind() == model.Null || nulls.Kind() == model.Struct:
					problem = "is null, or has a null, which takes nothing away on a single machine: give the " +
						"cluster a cluster type of its own, and a config in which it is null"
				case slices.ContainsFunc(texts(v.Value),
					func(s string) bool { return strings.ContainsFunc(s, refusedBySystemd) }):
					problem = "has a control character: encode it, for instance with base64.Encode"
				default:
					continue
				}
				at := ref.At(model.Label(v.Name))
				ds = append(ds, diag.New(diag.BadConfigKey,
					fmt.Sprintf("the value %s of cluster %s %s", v.Name, c.Name, problem)).On(at.String()).At(at,
					""))
			}
		}
		ref := model.Ref{Collection: "clusters", Name: c.Name}
		if c.Values != nil {
			check(*c.Values, ref.At("values"))
			h.Values, _ = unsafe(*c.Values).(yaml.Mapping)
		}
		for _, target := range slices.Sorted(maps.Keys(c.Composed)) {
			values := c.Composed[target]
			check(values, ref)
			if h.Composed == nil {
				h.Composed = map[string]any{}
			}
			h.Composed[target] = unsafe(values)
		}
		all[c.Name] = h
	}
	var out hosts
	out.All.Children = map[string]group{identifier(ct.Name): {Hosts: all}}
	return out, ds
}

// texts returns all strings of a value.
func texts(v model.Value) []string {
	var out []string
	for _, e := range v.Elems() {
		out = append(out, texts(e)...)
	}
	for _, f := range v.Fields() {
		out = append(out, texts(f.Value)...)
	}
	if v.Kind() == model.String {
		out = append(out, v.Text())
	}
	return out
}

// Divide returns the parts of a file that are for single clusters, by cluster, and the part
// for all clusters under "". It returns nil if the whole file is for all clusters.
func (ansible) Divide(file string, data []byte, own bool) map[string][]byte {
	if !own || file != hostsFile {
		return nil
	}
	return delivery.Divide(data, func(doc *yamlnode.Node, part func(string, *yamlnode.Node)) {
		groups := delivery.Node(doc, "all", "children")
		if groups == nil || groups.Kind != yamlnode.MappingNode {
			return
		}
		for i := 1; i < len(groups.Content); i += 2 {
			hosts := delivery.Node(groups.Content[i], "hosts")
			if hosts == nil || hosts.Kind != yamlnode.MappingNode {
				continue
			}
			for n := 1; n < len(hosts.Content); n += 2 {
				part(hosts.Content[n-1].Value, hosts.Content[n])
			}
			hosts.Content = nil
		}
	})
}

// Takes reports that all of a host's variables are for all of its assignments, except its
// address.
func (ansible) Takes(_ backends.Folder, path string) (string, bool) {
	return "", !strings.HasSuffix(path, ".ansible_host")
}
