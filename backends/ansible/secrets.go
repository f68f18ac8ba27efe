package ansible

import (
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// secrets are the fields of #Secrets, as far as machines are concerned.
type secrets struct {
	Lookup *lookup
}

// variables is the format of a file of variables in which no string is a template.
const variables model.ConfigFormat = "yml"

// lookup is how a secret is read where the playbook runs.
type lookup struct {
	Plugin  string
	Terms   []string
	Options map[string]string
	Result  string
}

// secrets adds what looks the assignment's secrets up, and the file on the
// machine that holds them: env beside a platform config in env or sh, json and
// yaml beside one of these, and variables for a playbook.
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
			f.undeliverable(s, s.Name+" refers to a secret, and the namespace service does not say how machines look it up",
				`give the namespace service of machines secrets: lookup: {plugin: "..."}; externalSecret and secretProviderClass are for Kubernetes`)
		case (format == model.Env || f.assignment.Manifests.Ansible != nil) && !variable.MatchString(s.Name):
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
	f.wanted.Secrets = &document{Path: f.etc(name), Format: string(format)}
	f.thing(fileThing, f.wanted.Secrets.Path, f.assignment.Ref)
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

// expression returns the Jinja expression that looks the secret up. What users
// wrote stands in it as strings, and cannot be anything else.
func (l *lookup) expression(s backends.Secret) string {
	fill := strings.NewReplacer("$(store)", s.Store, "$(key)", s.Key, "$(property)", s.Property, "$(version)", s.Version)
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

// jinjaString returns a string literal of Jinja, which reads escapes as Python
// does. Braces are escaped as well: they would be read again where the result of
// a template is a template (https://jinja.palletsprojects.com/templates/#literals).
func jinjaString(s string) string { return "'" + jinjaEscapes.Replace(s) + "'" }

var jinjaEscapes = strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\r", `\r`, "{", `\x7b`, "}", `\x7d`)
