// Package ansible emits the input of Ansible (https://docs.ansible.com) for virtual machines and
// bare metal. Each cluster type gets an inventory, a playbook, and the role that it runs. Each
// assignment gets a folder with the files for its machines. In the folder, assignment.yml describes
// everything that the role creates on the machines.
//
// The role, in the folder role, is Ansible's own code, the same for all assignments. It records on
// each host the things that it creates, so that it removes only those. It does not treat users'
// text as a template. The package reports a diagnostic for each request that Ansible or systemd
// cannot fulfill. The output runs with Ansible 2.14 and later, and passes ansible-lint's production
// profile.
//
// An example is the platform that kalypso init --reconciler ansible writes. Its workload has
//
//	manifests: package: units: "hello.service": {...}
//
// assignment.yml of dev/machines/hello-dev then contains, among other things,
//
//	id: dev/machines/hello-dev
//	user: hello-dev
//	config: {path: /etc/hello-dev/platform-config.env, source: platform-config.env, format: env}
//	units: [{name: hello.service, enabled: true, running: true, reads: [...]}]
//	things: [group:hello-dev, user:hello-dev, directory:/etc/hello-dev, ...]
package ansible

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/lazyregexp"
)

type ansible struct{}

// New returns the backend.
func New() backends.Backend { return ansible{} }

// Name is the backend's key in #Reconciler.
func (ansible) Name() string { return "ansible" }

// Support reports that Ansible delivers packages and playbooks, which run on machines.
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

// Traits returns the traits of Ansible: values of single clusters reach them in host variables.
func (ansible) Traits() backends.Traits {
	return backends.Traits{PerCluster: true, Machines: true,
		Bootstraps: "a playbook that has each machine pull and run its own, by a timer; run it\n" +
			"once, with the inventory of the tree"}
}

// Reconciled returns the zero value, because no object in a cluster shows a rollout.
func (ansible) Reconciled(string, string, backends.Folder) backends.Reconciled {
	return backends.Reconciled{}
}

// Emit returns the folder with assignment.yml, the platform config, and the files
// that go to the machine.
func (ansible) Emit(a *backends.Assignment) (backends.Emission, []diag.Diagnostic) {
	o, ds := optionsOf(a.Reconciler)
	f := &folder{assignment: a, options: o, ds: ds, things: map[string]bool{}}
	if err := a.NamespaceService.Decode(&f.service); err != nil {
		f.misfit("", "the namespace service cannot be read: %v", err)
	}
	f.spec = assignmentSpec{ID: a.Origin(), Version: a.Version, Digest: string(a.Digest),
		Deletion: f.service.Deletion}
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
	if !diag.Errors(f.ds) {
		f.write(assignmentFile, ansibleYAML(f.spec), false)
	}
	for i := range f.ds {
		f.ds[i].Environment = a.Environment
	}
	return delivery.Finish(a, backends.Emission{Files: f.files, Objects: f.objects}, nil, f.ds)
}

// Central returns nil, because Ansible creates all objects on the machines.
func (ansible) Central(*backends.ClusterType, []string) []backends.Object { return nil }

// options are the fields of #Ansible.
type options struct {
	RemoteUser        string
	Serial            *model.Value // an int or a percentage
	MaxFailPercentage int
	Interval          string
	Python            string
	StateDirectory    string
}

// optionsOf returns the reconciler's fields. Each has a form that is safe in a playbook and in a
// unit of systemd.
func optionsOf(s backends.Spec) (options, []diag.Diagnostic) {
	var o options
	ds := s.Fields(&o)
	if diag.Errors(ds) {
		return o, ds
	}
	refuse := func(field, format string, args ...any) {
		path := "ansible." + field
		ds = append(ds,
			diag.New(diag.BadSpec, fmt.Sprintf(format, args...)).On(path).At(s.Ref.At(path), ""))
	}
	if d, err := time.ParseDuration(o.Interval); err != nil || d < time.Minute {
		refuse("interval", "%q is no time between two runs: the shortest is 1m", o.Interval)
	}
	if o.RemoteUser != "" && !userName.MatchString(o.RemoteUser) {
		refuse("remoteUser", "%q is no name of a user", o.RemoteUser)
	}
	for _, p := range []struct{ field, path string }{{"python", o.Python},
		{"stateDirectory", o.StateDirectory}} {
		if !machinePath.MatchString(p.path) {
			refuse(p.field, "%q is no absolute path of plain names", p.path)
		}
	}
	if systemDirectory(o.StateDirectory) {
		refuse("stateDirectory", "%s belongs to the system, and not to kalypso alone", o.StateDirectory)
	}
	return o, ds
}

// become reports whether tasks need the rights of root that the login does not have.
func (o options) become() bool { return o.RemoteUser != "root" }

// state returns the folder on a host with kalypso's records of an environment's cluster
// type.
func (o options) state(environment, clusterType string) string {
	return o.StateDirectory + "/" + environment + "/" + clusterType
}

// The forms of names on a machine. They are the same as in schema/manifests.cue. They check
// names from a pin or another program, which the schema has not checked.
var (
	userName = lazyregexp.New(`^[a-z_][a-z0-9_-]{0,31}$`) // useradd(8)
	// without ".." and characters to quote
	machinePath = lazyregexp.New(`^(/\.{0,2}[A-Za-z0-9_@:+-][A-Za-z0-9._@:+-]*)+$`)
	fileMode    = lazyregexp.New(`^0[0-7]{3}$`) //
	// Debian Policy 5.6.1
	debName = lazyregexp.New(`^[a-z0-9][a-z0-9+.-]+$`)
	// Debian Policy 5.6.12
	debVersion = lazyregexp.New(`^([0-9]+:)?[0-9][A-Za-z0-9.+~-]*$`)
	// systemd.unit(5)
	unitName = lazyregexp.New(`^[A-Za-z0-9:_.@-]+\.(service|socket|timer|path)$`)
	// systemd.syntax(7)
	directive = lazyregexp.New(`^[A-Z][A-Za-z0-9]*$`)
	sha256    = lazyregexp.New(`^sha256:[0-9a-f]{64}$`) //
	// RFC 3986 has no braces
	httpURL  = lazyregexp.New(`^https?://[!-z~]+$`)
	relative = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*$`) //
	// git-check-ref-format(1), without characters to quote
	revision = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9._/+@-]*$`)
	// a URL or user@host:path without a query
	repository = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._~:/@+%-]*$`)
	// of Ansible, and of an environment
	variable = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
	plugin   = lazyregexp.New(`^[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*){0,2}$`) //
)

// templated reports whether Ansible would read a text as a template.
func templated(s string) bool {
	return strings.Contains(s, "{{") || strings.Contains(s, "{%") || strings.Contains(s, "{#")
}

// identifier returns a name of letters, digits and underscores that begins with
// no digit, as names of groups must. Different DNS labels stay different.
func identifier(name string) string {
	name = strings.ReplaceAll(name, "-", "_")
	if name[0] >= '0' && name[0] <= '9' ||
		slices.Contains([]string{"all", "ungrouped", "localhost"}, name) {
		return "_" + name
	}
	return name
}

// systemDirectory reports whether a directory belongs to the system, by the Filesystem
// Hierarchy Standard or by systemd. Such a directory cannot become a user's.
func systemDirectory(path string) bool {
	return strings.Count(path, "/") < 2 || systemDirectories[path]
}

var systemDirectories = func() map[string]bool {
	all := map[string]bool{}
	for parent, names := range map[string]string{
		"/etc": "apt cron.d default init.d pam.d profile.d security skel ssh ssl sudoers.d " +
			"sysctl.d systemd systemd/system systemd/user udev",
		"/usr": "bin games include lib lib32 lib64 libexec libx32 local sbin share src lib/systemd " +
			"lib/systemd/system local/bin local/etc local/lib local/sbin local/share",
		"/var": "backups cache lib local lock log mail opt run spool tmp www lib/apt lib/dpkg " +
			"lib/systemd cache/apt log/journal spool/cron",
		"/run":     "lock systemd user",
		"/lib":     "systemd systemd/system",
		"/etc/apt": "apt.conf.d keyrings preferences.d sources.list.d trusted.gpg.d",
	} {
		for name := range strings.FieldsSeq(names) {
			all[parent+"/"+name] = true
		}
	}
	return all
}()
