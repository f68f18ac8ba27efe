// Package ansible emits what Ansible (https://docs.ansible.com) brings to virtual
// machines and bare metal: for each cluster type an inventory, a playbook, and
// the role that it runs; for each assignment a folder with the files of its
// machine and, in assignment.yml, what the role makes of them there.
//
// The role, in the folder role, is Ansible's own code, the same for all. It
// records on each host what it made, so that it removes that and nothing else. It
// takes nothing that users wrote for a template. What Ansible or systemd cannot
// do is a diagnostic. The output runs with Ansible 2.14 and later, and passes
// ansible-lint's production profile.
package ansible

import (
	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

type ansible struct{}

// New returns the backend.
func New() backends.Backend { return ansible{} }

// Name is the backend's key in #Reconciler.
func (ansible) Name() string { return "ansible" }

// Support says that Ansible delivers what runs on machines.
func (ansible) Support(kind model.SourceKind) backends.Support {
	switch kind {
	case model.PackageSource:
		return backends.Support{Rendered: "a package has nothing to render"}
	case model.AnsibleSource:
		return backends.Support{}
	}
	const why = "it is for Kubernetes, and the reconciler is for machines"
	return backends.Support{Referenced: why, Rendered: why}
}

// Traits are those of Ansible: values of single clusters reach them in host variables.
func (ansible) Traits() backends.Traits {
	return backends.Traits{PerCluster: true, Machines: true,
		Bootstraps: "a playbook that has each machine pull and run its own, by a timer; run it\n" +
			"once, with the inventory of the tree"}
}

// Reconciled says that nothing in a cluster tells.
func (ansible) Reconciled(string, string, backends.Folder) backends.Reconciled {
	return backends.Reconciled{}
}

// Emit returns the folder with assignment.yml, the platform config, and the files
// that go to the machine.
func (ansible) Emit(a *backends.Assignment) (backends.Emission, []diag.Diagnostic) {
	f := newFolder(a)
	if !diag.Errors(f.ds) {
		f.workspace()
		f.config()
		f.secrets()
		switch m := a.Manifests; {
		case m.Package != nil:
			f.packages(m.Package.Deb)
			f.machineFiles(m.Package.Files)
			f.units(m.Package.Units)
		case m.Ansible != nil:
			f.playbook(m.Ansible)
			f.ds = append(f.ds, backends.NoRestart(a, "a playbook restarts what it manages itself",
				"let the playbook notify a handler when its variables change")...)
		}
	}
	return f.emission()
}

// Central returns nothing: what is created is created on the machines.
func (ansible) Central(*backends.ClusterType, []string) []backends.Object { return nil }
