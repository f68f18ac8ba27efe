package engine

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
	b.reportAll(b.manifests+".deb", "machines.packages", "may not install ",
		without(of.Packages, slices.Sorted(maps.Keys(p.Deb))))
	b.reportAll(b.manifests+".units", "machines.units", "may not have the units ",
		without(of.Units, slices.Sorted(maps.Keys(p.Units))))
	var users, capabilities []string
	for _, name := range slices.Sorted(maps.Keys(p.Units)) {
		u := p.Units[name]
		for _, r := range (unit{name, u, p.Units}).runs() {
			if r.as != user && !of.Users.Allow(r.as) {
				users = append(users, r.as+" ("+name+r.by+")")
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
