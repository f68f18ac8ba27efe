package engine

import (
	"fmt"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
)

// machineGroup is the group of what backends for machines create: no Kubernetes
// object, and named by its kind.
const machineGroup = "machine"

// forMachines says whether a backend, by its key in #Reconciler, delivers to
// machines alone, which have no namespaces.
func (p *Inputs) forMachines(backend string) bool {
	b, known := p.request.Backends[backend]
	return known && b.Traits().Machines
}

// machineHints say what to do about two assignments that create one thing on a
// machine, by its kind.
var machineHints = map[string]string{
	"user": "leave machine.user out, or let it use what tells them apart: " +
		"#assignment.deploymentTarget; a daemon that brings its own user takes harden: false",
	"directory": "let the directory's path use what tells them apart: #assignment.deploymentTarget",
	"package":   "give the package to one deployment target, and let the others depend on that with dependsOn",
	"file": "give the file to one deployment target, and let the others depend on that with " +
		"dependsOn, or give each a path of its own",
	"unit": "give the unit to one deployment target, and let the others depend on that with " +
		"dependsOn, or give each a name of its own",
}

// onMachines takes the collisions of things on machines out of found, and returns
// for each pair of assignments what its error is to name: what follows from
// another collision, as a user's directories do, is left out.
func onMachines(found []collision) (others []collision, pairs [][]collision) {
	at := map[[2]int]int{}
	for _, c := range found {
		if c.object.Group != machineGroup {
			others = append(others, c)
			continue
		}
		pair := [2]int{c.first, c.second}
		i, there := at[pair]
		if !there {
			i = len(pairs)
			at[pair] = i
			pairs = append(pairs, nil)
		}
		pairs[i] = append(pairs[i], c)
	}
	for i, pair := range pairs {
		var causes []collision
		for _, c := range pair {
			if !follows(c.object, pair) {
				causes = append(causes, c)
			}
		}
		pairs[i] = causes
	}
	return others, pairs
}

// follows says whether a file or directory is there because of a user or a unit
// that collides itself.
func follows(o backends.Object, pair []collision) bool {
	if o.Kind != "file" && o.Kind != "directory" {
		return false
	}
	for _, c := range pair {
		switch name := c.object.Name; {
		case c.object.Kind == "user" && (o.Name == "/var/lib/"+name || strings.HasPrefix(o.Name+"/", "/etc/"+name+"/")),
			c.object.Kind == "unit" && strings.HasPrefix(o.Name, "/etc/systemd/system/"+name):
			return true
		}
	}
	return false
}

// collideOnMachine returns the message and the hint for what two assignments both create.
func collideOnMachine(pair []collision) (message, hint string) {
	var names []string
	for _, c := range pair {
		names = append(names, "the "+c.object.Kind+" "+c.object.Name)
	}
	return "two assignments create " + strings.Join(names, ", "), machineHints[pair[0].object.Kind]
}

// machineRemoval says what goes from the machines of a cluster type with an
// assignment.
func machineRemoval(clusterType string, f backends.Folder) diag.Diagnostic {
	what := fmt.Sprintf("%s is removed from the machines of cluster type %s", f.DeploymentTarget, clusterType)
	if f.Orphan {
		return diag.New(diag.RemovesNamespace, what+", and its user and directories stay, as its namespace service says")
	}
	return diag.New(diag.RemovesNamespace, what).
		Hinting("its user goes with /etc/<user>, /var/lib/<user> and what is in them, and so do " +
			"packages, files and units that nothing else on the machine needs; to leave the user and the " +
			"directories, build and deploy it once with deletion: \"orphan\" on the namespace service " +
			"before this change")
}
