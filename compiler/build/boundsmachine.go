package build

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// machine reports what a package or a playbook does to machines that its workspace does not
// allow; user is the assignment's own.
func (b *bounds) machine(m model.Manifests, user string) {
	of := b.of.Machines
	if m.Ansible != nil && !of.Users.Allow(root) {
		b.report(b.manifests, "machines.users", "may not run playbooks, which run as root")
	}
	p := m.Package
	if p == nil {
		return
	}
	b.reportAll(b.manifests+".files", "machines.files", "may not put files on machines at ", outside(p, of.Files))
	b.reportAll(b.manifests+".deb", "machines.packages", "may not install ", without(of.Packages, slices.Sorted(maps.Keys(p.Deb))))
	b.reportAll(b.manifests+".units", "machines.units", "may not have the units ", without(of.Units, slices.Sorted(maps.Keys(p.Units))))
	var users, capabilities []string
	for _, name := range slices.Sorted(maps.Keys(p.Units)) {
		u := p.Units[name]
		for _, other := range without(of.Users, usersOf(name, u)) {
			if other != user {
				users = append(users, other+" ("+name+")")
			}
		}
		for _, capability := range without(of.Capabilities, capabilitiesOf(u)) {
			capabilities = append(capabilities, capability+" ("+name+")")
		}
	}
	b.reportAll(b.manifests+".units", "machines.users", "may not run anything as ", users)
	b.reportAll(b.manifests+".units", "machines.capabilities", "may not have the capabilities ", capabilities)
}

// without returns the names that patterns do not allow.
func without(patterns model.Patterns, names []string) []string {
	return slices.DeleteFunc(names, patterns.Allow)
}

// outside returns the paths of a package's files that a workspace does not allow, sorted.
// What is below /proc, /sys and /dev leads anywhere, and is not allowed.
func outside(p *model.Package, allowed model.Patterns) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(p.Files)) {
		clean := path.Clean(name)
		first, _, _ := strings.Cut(strings.TrimPrefix(clean, "/"), "/")
		if slices.Contains([]string{"proc", "sys", "dev"}, first) || !allowed.Allow(clean) {
			out = append(out, name)
		}
	}
	return out
}

// root is who may do everything on a machine.
const root = "root"

// usersOf returns the users and groups that a unit runs as beside the assignment's own user,
// which a service has that is confined and names no other, sorted.
func usersOf(name string, u model.Unit) []string {
	var out []string
	for _, section := range []*model.Value{u.Service, u.Socket, u.Path, u.Timer} {
		if section == nil {
			continue
		}
		for _, d := range section.Fields() {
			values := texts(d.Value)
			switch d.Name {
			case "User", "Group", "SupplementaryGroups", "SocketUser", "SocketGroup":
				for _, v := range values {
					out = append(out, strings.Fields(v)...)
				}
			case "StandardInput", "StandardOutput", "StandardError":
				if slices.ContainsFunc(values, func(v string) bool { return strings.Contains(v, ":/") }) {
					out = append(out, root) // systemd opens the file
				}
			case "LoadCredential", "LoadCredentialEncrypted", "ImportCredential", "PermissionsStartOnly", "RootDirectory", "RootImage", "MountImages", "ExtensionImages", "BindPaths":
				out = append(out, root)
			default:
				// Of a service, commands run as its user, but for those with these marks
				// (systemd.service(5), "Command lines"); of a socket, as root.
				if strings.HasPrefix(d.Name, "Exec") && (section != u.Service || slices.ContainsFunc(values, privileged)) {
					out = append(out, root)
				}
			}
		}
	}
	if _, named := lookupIn(u.Service, "User"); !named && !u.Harden && strings.HasSuffix(name, ".service") {
		out = append(out, root)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// privileged says whether a command of a service runs with more rights than its user has.
func privileged(command string) bool {
	marks := command[:len(command)-len(strings.TrimLeft(command, "@-:+!|"))]
	return strings.ContainsAny(marks, "+!")
}

// capabilitiesOf returns the capabilities that a service asks for, sorted.
func capabilitiesOf(u model.Unit) []string {
	var out []string
	if v, given := lookupIn(u.Service, "AmbientCapabilities"); given { // the bounding set gives none
		for _, text := range texts(v) {
			out = append(out, strings.Fields(text)...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func lookupIn(section *model.Value, name string) (model.Value, bool) {
	if section == nil {
		return model.Value{}, false
	}
	return section.Lookup(name)
}

// texts returns the texts of a directive, which is one or a list of them.
func texts(v model.Value) []string {
	if v.Kind() != model.List {
		return []string{v.Text()}
	}
	var out []string
	for _, elem := range v.Elems() {
		out = append(out, elem.Text())
	}
	return out
}
