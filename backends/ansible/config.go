package ansible

import (
	"path"
	"strings"
	"unicode"

	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// configFormat returns the shape of the platform config on a machine, which has
// no ConfigMap.
func (f *folder) configFormat() model.ConfigFormat {
	if format := f.assignment.ConfigFormat; format != model.ConfigMap && format != "" {
		return format
	}
	return model.Env
}

// config adds the platform config, which the user alone can read.
func (f *folder) config() {
	format := f.configFormat()
	text, ds := kubernetes.ConfigText(format, f.assignment.Values)
	if format == model.Env {
		for _, v := range f.assignment.Values.Fields() {
			if v.Value.Kind() == model.String && strings.ContainsFunc(v.Value.Text(), refusedBySystemd) {
				ds = append(ds, badKey(v.Name, "has a control character, and systemd passes such a value over",
					"encode the value, for instance with base64.Encode"))
			}
		}
	}
	f.ds = append(f.ds, ds...)
	name := "platform-config." + string(format)
	f.write(name, text, false)
	f.wanted.Config = document{Path: f.etc(name), Source: name, Format: string(format)}
	f.thing(fileThing, f.wanted.Config.Path, f.assignment.Ref)
}

// refusedBySystemd says whether a character keeps a value out of a unit's
// environment (string_has_cc in systemd's src/basic/string-util.c).
func refusedBySystemd(r rune) bool {
	return r != '\t' && r != '\n' && r < 0x80 && unicode.IsControl(r)
}

// badKey reports a value of the platform config.
func badKey(name, problem, hint string) diag.Diagnostic {
	return diag.New(diag.BadConfigKey, "the value "+model.Label(name)+" "+problem).On(model.Label(name)).Hinting(hint)
}

// etc returns the path of a file in the directory for configuration.
func (f *folder) etc(name string) string { return path.Join("/etc", f.wanted.User, name) }
