package ansible

import (
	"maps"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// service are the fields of #NamespaceService that concern a machine, and those
// that only Kubernetes knows.
type service struct {
	Deletion string
	Machine  machine
	Secrets  *secrets
}

// machine are the fields of #Machine.
type machine struct {
	User        *string
	Groups      []string
	Directories map[string]struct{ Mode string }
	Limits      limits
}

// limits are those of #Machine.
type limits struct {
	CPU       string
	Memory    string
	Tasks     int
	OpenFiles int
}

// workspace adds the user with its groups and directories.
func (f *folder) workspace() {
	f.noEffect()
	m, at := f.service.Machine, f.assignment.NamespaceService.Ref.At("machine")
	user := f.user()
	f.wanted.User, f.wanted.Home = user, "/var/lib/"+user
	f.thing(groupThing, user, at.At("user"))
	for _, g := range slices.Compact(slices.Sorted(slices.Values(m.Groups))) {
		switch {
		case !userName.MatchString(g):
			f.misfit("machine.groups", "%q is no name of a group", g)
		case g != user:
			f.wanted.Groups = append(f.wanted.Groups, g)
			f.thing(groupThing, g, at.At("groups"))
		}
	}
	f.thing(userThing, user, at.At("user"))
	f.directory("/etc/"+user, "0750", at.At("user"))
	f.directory(f.wanted.Home, "0750", at.At("user"))
	for _, path := range slices.Sorted(maps.Keys(m.Directories)) {
		ref, mode := at.At("directories").At(model.Label(path)), m.Directories[path].Mode
		switch {
		case !machinePath.MatchString(path) || !fileMode.MatchString(mode):
			f.report(diag.BadSpec, ref, "%q with the mode %q is no directory", path, mode)
		case !f.fits(path, ref):
		case systemDirectory(path):
			f.report(diag.BadSpec, ref, "%s belongs to the system, and cannot become %s's", path, user).
				hint("name a directory below it")
		default:
			f.directory(path, mode, ref)
		}
	}
}

func (f *folder) directory(path, mode string, ref model.Ref) {
	f.thing(directoryThing, path, ref)
	f.wanted.Directories = append(f.wanted.Directories, directory{path, mode})
}

// user returns the name of the user that the workload runs as.
func (f *folder) user() string {
	if given := f.service.Machine.User; given != nil {
		if !userName.MatchString(*given) {
			f.misfit("machine.user", "%q is no name of a user", *given).
				hint("a name has at most 32 lower case letters, digits, dashes and underscores, and begins with no digit")
		}
		return *given
	}
	return model.UserName(f.assignment.DeploymentTarget)
}

// noEffect warns of fields that mean something on Kubernetes only.
func (f *folder) noEffect() {
	v, ref := f.assignment.NamespaceService.Value, f.assignment.NamespaceService.Ref
	for _, field := range []string{"limits", "manifests", "namespaces", "networkPolicy", "objects",
		"podSecurity", "quota", "rbac"} {
		given, ok := v.Lookup(field)
		if !ok || given.Kind() == model.String && given.Text() == "none" ||
			given.Kind() == model.Struct && len(given.Fields()) == 0 {
			continue
		}
		d := diag.New(diag.NoEffect, field+" of the namespace service is for Kubernetes, and means nothing on a machine").
			On(ref.At(field).String()).At(ref.At(field), "").
			Hinting("give cluster types of machines a namespace service of their own, with machine")
		f.ds = append(f.ds, d)
	}
}
