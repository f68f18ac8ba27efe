package ansible

import (
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// service are the fields of #NamespaceService for a machine, and the fields that only
// Kubernetes supports.
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

// limits are the limits of #Machine.
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
	f.spec.User, f.spec.Home = user, "/var/lib/"+user
	f.thing(groupThing, user, at.At("user"))
	for _, g := range slices.Compact(slices.Sorted(slices.Values(m.Groups))) {
		switch {
		case !userName.MatchString(g):
			f.misfit("machine.groups", "%q is no name of a group", g)
		case g != user:
			f.spec.Groups = append(f.spec.Groups, g)
			f.thing(groupThing, g, at.At("groups"))
		}
	}
	f.thing(userThing, user, at.At("user"))
	f.directory("/etc/"+user, "0750", at.At("user"))
	f.directory(f.spec.Home, "0750", at.At("user"))
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
	f.spec.Directories = append(f.spec.Directories, directory{path, mode})
}

// user returns the name of the user that the workload runs as.
func (f *folder) user() string {
	if given := f.service.Machine.User; given != nil {
		if !userName.MatchString(*given) {
			f.misfit("machine.user", "%q is no name of a user", *given).
				hint("a name has at most 32 lower case letters, digits, dashes and underscores, and begins " +
					"with no digit")
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
		d := diag.New(diag.NoEffect,
			field+" of the namespace service is for Kubernetes, and means nothing on a machine").
			On(ref.At(field).String()).At(ref.At(field), "").
			Hinting("give cluster types of machines a namespace service of their own, with machine")
		f.ds = append(f.ds, d)
	}
}

// configFormat returns the format of the platform config on a machine, which has no
// ConfigMap.
func (f *folder) configFormat() model.ConfigFormat {
	if format := f.assignment.ConfigFormat; format != model.ConfigMap && format != "" {
		return format
	}
	return model.Env
}

// config adds the platform config, which only the user can read.
func (f *folder) config() {
	format := f.configFormat()
	text, ds := kubernetes.ConfigText(format, f.assignment.Values)
	if format == model.Env {
		for _, v := range f.assignment.Values.Fields() {
			if v.Value.Kind() == model.String && strings.ContainsFunc(v.Value.Text(), refusedBySystemd) {
				ds = append(ds,
					kubernetes.BadKey(v.Name, "has a control character, and systemd passes such a value over",
						"encode the value, for instance with base64.Encode"))
			}
		}
	}
	f.ds = append(f.ds, ds...)
	name := "platform-config." + string(format)
	f.write(name, text, false)
	f.spec.Config = document{Path: f.etc(name), Source: name, Format: string(format)}
	f.thing(fileThing, f.spec.Config.Path, f.assignment.Ref)
}

// refusedBySystemd reports whether a character keeps a value out of a unit's
// environment (string_has_cc in systemd's src/basic/string-util.c).
func refusedBySystemd(r rune) bool {
	return r != '\t' && r != '\n' && r < 0x80 && unicode.IsControl(r)
}

// etc returns the path of a file in the directory for configuration.
func (f *folder) etc(name string) string { return path.Join("/etc", f.spec.User, name) }

// secrets are the fields of #Secrets, as far as machines are concerned.
type secrets struct {
	Lookup *lookup
}

// variables is the format of a file of variables. Ansible does not read its strings as
// templates.
const variables model.ConfigFormat = "yml"

// lookup describes how a playbook reads a secret.
type lookup struct {
	Plugin  string
	Terms   []string
	Options map[string]string
	Result  string
}

// secrets adds the lookup of the assignment's secrets, and the file on the machine that contains
// them. The format is variables for a playbook, and env if the platform config is env or sh.
// Otherwise it is the format of the platform config.
func (f *folder) secrets() {
	if len(f.assignment.Secrets) == 0 {
		return
	}
	format := f.configFormat()
	switch {
	case f.assignment.Manifests.Ansible != nil:
		format = variables
	case format == model.Sh:
		format = model.Env
	}
	how := f.lookup()
	var values yaml.Mapping
	for _, s := range f.assignment.Secrets {
		switch {
		case how == nil:
			f.undeliverable(s,
				s.Name+" refers to a secret, and the namespace service does not say how machines look it up",
				`give the namespace service of machines secrets: lookup: {plugin: "..."}; externalSecret and secretProviderClass are for Kubernetes`)
		case (format == model.Env || f.assignment.Manifests.Ansible != nil) &&
			!variable.MatchString(s.Name):
			f.undeliverable(s, s.Name+" cannot be the name of a variable", "name the value with letters, "+
				"digits and '_' only, at the top level")
		default:
			values = append(values, yaml.Entry{Key: s.Name, Value: "{{ " + how.expression(s) + " }}"})
		}
	}
	if len(values) != len(f.assignment.Secrets) {
		return
	}
	f.write(secretsFile, ansibleYAML(values), false)
	name := "platform-secrets." + string(format)
	f.spec.Secrets = &document{Path: f.etc(name), Format: string(format)}
	f.thing(fileThing, f.spec.Secrets.Path, f.assignment.Ref)
}

// lookup returns how the namespace service looks secrets up; nil for not at all.
func (f *folder) lookup() *lookup {
	if f.service.Secrets == nil || f.service.Secrets.Lookup == nil {
		return nil
	}
	how := f.service.Secrets.Lookup
	if !plugin.MatchString(how.Plugin) {
		f.misfit("secrets.lookup.plugin", "%q is no name of a lookup plugin", how.Plugin)
	}
	for name := range how.Options {
		if !variable.MatchString(name) {
			f.misfit("secrets.lookup.options", "%q is no name of an option", name)
		}
	}
	return how
}

func (f *folder) undeliverable(s backends.Secret, message, hint string) {
	ref := f.assignment.NamespaceService.Ref.At("secrets")
	f.ds = append(f.ds, diag.New(diag.UndeliverableSecret, message).On(s.Name).
		At(ref, "how the namespace service delivers secrets").Hinting(hint))
}

// expression returns the Jinja expression that looks the secret up. It contains users' text only as
// strings, which cannot be anything else.
func (l *lookup) expression(s backends.Secret) string {
	fill := strings.NewReplacer("$(store)", s.Store, "$(key)", s.Key, "$(property)", s.Property,
		"$(version)", s.Version)
	arguments := []string{jinjaString(l.Plugin)}
	for _, t := range l.Terms {
		arguments = append(arguments, jinjaString(fill.Replace(t)))
	}
	for _, name := range sortedKeys(l.Options) {
		arguments = append(arguments, name+"="+jinjaString(fill.Replace(l.Options[name])))
	}
	call := "lookup(" + strings.Join(arguments, ", ") + ")"
	if l.Result == "" {
		return call
	}
	for field := range strings.SplitSeq(l.Result, ".") {
		call += "[" + jinjaString(fill.Replace(field)) + "]"
	}
	return call
}

// jinjaString returns a string literal of Jinja, which reads escapes as Python does. It also
// escapes braces, because Jinja would read them again if the result of a template is a
// template (https://jinja.palletsprojects.com/templates/#literals).
func jinjaString(s string) string { return "'" + jinjaEscapes.Replace(s) + "'" }

var jinjaEscapes = strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\r", `\r`, "{", `\x7b`,
	"}", `\x7d`)
