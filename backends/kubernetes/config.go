package kubernetes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// configName is the name of the ConfigMap with the platform's values for an application. A
// document with all values also has a name that begins with it.
const configName = "platform-config"

// valuesAnnotation has the digest of the values in the platform config.
const valuesAnnotation = "kalypso.io/values"

// platformConfig adds the ConfigMap, even without values, because applications mount it. In the
// format configmap it has a key for each value, in the other formats one key
// platform-config.<format> with all of them. Only this object carries the digest of the values. If
// other objects carried it, each change of a value would change all of them.
func (w *workspace) platformConfig() {
	a := w.assignment
	data, ds := ConfigData(a.ConfigFormat, a.Values)
	w.ds = append(w.ds, ds...)
	w.configMap(data, nil)
}

// configMap adds the ConfigMap "platform-config" with data. In a patch, gone are keys
// that the ConfigMap does not have any more.
func (w *workspace) configMap(data map[string]string, gone []string) {
	a := w.assignment
	n := 0
	for key, text := range data {
		n += len(key) + len(text)
	}
	if n > maxConfigMap {
		w.ds = append(w.ds, diag.New(diag.TooLarge,
			fmt.Sprintf("the platform config has %d bytes, and a ConfigMap holds %d", n, maxConfigMap)).
			At(a.Ref, "").Hinting("keep files and other bulk in the application's manifests"))
	}
	meta := w.meta(configName)
	if a.Digest != "" {
		meta.Annotations[valuesAnnotation] = string(a.Digest)
	}
	w.add(struct {
		Object `yaml:",inline"`
		Data   map[string]*string `yaml:"data,omitempty"`
	}{Object{APIVersion: "v1", Kind: "ConfigMap", Metadata: meta}, patchData(data, gone)}, "")
}

// patchData returns the data of a patch. A null removes a key.
func patchData(data map[string]string, gone []string) map[string]*string {
	out := make(map[string]*string, len(data)+len(gone))
	for key, text := range data {
		out[key] = &text
	}
	for _, key := range gone {
		out[key] = nil
	}
	return out
}

// ConfigData returns the data of the ConfigMap "platform-config" for values. It reports a
// diagnostic for each value that the ConfigMap cannot contain.
func ConfigData(format model.ConfigFormat, values model.Value) (map[string]string,
	[]diag.Diagnostic) {
	if format == model.ConfigMap || format == "" {
		return configData(values)
	}
	text, ds := ConfigText(format, values)
	return map[string]string{configName + "." + string(format): string(text)}, ds
}

// maxConfigMap is the number of bytes that fit into a ConfigMap (MaxSecretSize in
// k8s.io/api/core/v1, which its validation also applies to ConfigMaps).
const maxConfigMap = 1 << 20

// configData returns the data of a ConfigMap with a key for each value. Each key has the
// text of its value.
func configData(values model.Value) (map[string]string, []diag.Diagnostic) {
	data := make(map[string]string, len(values.Fields()))
	var ds []diag.Diagnostic
	for _, f := range values.Fields() {
		if !validKey(f.Name) {
			ds = append(ds, BadKey(f.Name, "cannot be a key of a ConfigMap",
				"use letters, digits, '-', '_' and '.', or one of the config formats json and yaml"))
			continue
		}
		text, err := valueText(f.Value)
		if err != nil {
			ds = append(ds, BadKey(f.Name, "cannot be written: "+err.Error(), ""))
			continue
		}
		data[f.Name] = text
	}
	return data, ds
}

// valueText returns a value as text. All formats that have a text for each value use it: a scalar
// is its own text and null is the empty string. Structs and lists are JSON on one line.
func valueText(v model.Value) (string, error) {
	switch {
	case v.Kind() == model.Null:
		return "", nil
	case v.IsScalar():
		return v.Text(), nil
	}
	text, err := v.MarshalJSON()
	return string(text), err
}

// validKey reports whether a ConfigMap or Secret may have the key (Kubernetes'
// IsConfigMapKey).
func validKey(key string) bool {
	if key == "" || len(key) > 253 || key == "." || strings.HasPrefix(key, "..") {
		return false
	}
	for _, c := range []byte(key) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_',
			c == '.':
		default:
			return false
		}
	}
	return true
}

// BadKey reports a key of the values of a platform config.
func BadKey(key, problem, hint string) diag.Diagnostic {
	return diag.New(diag.BadConfigKey,
		"the value "+model.Label(key)+" "+problem).On(model.Label(key)).Hinting(hint)
}

// ConfigText returns all values, a struct, as one document.
//
//   - json and yaml hold the values themselves, with their types.
//   - env has a line NAME="value" for each value, which means the same to `sh`
//     (set -a; . file) and as an EnvironmentFile of systemd.
//   - sh has a line export NAME='value' for each value.
//   - configmap is not a document, so it has the lines of env.
//
// In env and sh a scalar is its text, null is empty, and structs and lists are JSON. ConfigText
// leaves out a value if its name is not valid for an environment variable, or if an environment
// cannot contain it. It reports a diagnostic for each.
func ConfigText(format model.ConfigFormat, values model.Value) ([]byte, []diag.Diagnostic) {
	switch format {
	case model.JSON:
		var out bytes.Buffer
		if err := json.Indent(&out, values.AppendJSON(nil), "", "  "); err != nil {
			return nil, []diag.Diagnostic{unwritable(format, err)}
		}
		out.WriteByte('\n')
		return out.Bytes(), nil
	case model.YAML:
		out, err := yaml.Marshal(values)
		if err != nil {
			return nil, []diag.Diagnostic{unwritable(format, err)}
		}
		return out, nil
	case model.Sh:
		return assignments(values, func(name, value string) string {
			// For sh, everything between single quotes is itself.
			return "export " + name + "='" + strings.ReplaceAll(value, "'", `'\''`) + "'\n"
		})
	case model.Env, model.ConfigMap:
		return assignments(values,
			func(name, value string) string { return name + `="` + doubleQuotes.Replace(value) + "\"\n" })
	}
	return nil, []diag.Diagnostic{unwritable(format, fmt.Errorf("there is no such format"))}
}

func unwritable(format model.ConfigFormat, err error) diag.Diagnostic {
	return diag.New(diag.BadConfigKey,
		fmt.Sprintf("the platform config cannot be written as %s: %v", format, err))
}

// assignments returns a line, or several, for each value.
func assignments(values model.Value, line func(name, value string) string) ([]byte,
	[]diag.Diagnostic) {
	var out bytes.Buffer
	var ds []diag.Diagnostic
	for _, f := range values.Fields() {
		value, err := valueText(f.Value)
		switch {
		case err != nil:
			ds = append(ds, BadKey(f.Name, "cannot be written: "+err.Error(), ""))
		case !variableName(f.Name):
			ds = append(ds, BadKey(f.Name, "cannot be the name of an environment variable",
				"use letters, digits and '_', or one of the config formats configmap, json and yaml"))
		case shellsOwn[f.Name]:
			ds = append(ds, BadKey(f.Name, "has the name of a variable that shells keep for themselves",
				"use another name, or one of the config formats configmap, json and yaml"))
		case strings.ContainsRune(value, 0):
			ds = append(ds, BadKey(f.Name, "has a NUL character, which an environment cannot hold",
				"encode the value, for instance with base64.Encode"))
		default:
			out.WriteString(line(f.Name, value))
		}
	}
	return out.Bytes(), ds
}

// variableName reports whether a name is one of an environment variable
// (https://pubs.opengroup.org/onlinepubs/9799919799/basedefs/V1_chap08.html).
func variableName(name string) bool {
	for i, c := range name {
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// shellsOwn are the variables that dash or bash set themselves. A file that sets one of them
// fails, or the shell reads back a different value (bash(1), Shell Variables; dash(1)).
var shellsOwn = map[string]bool{
	"_": true, "BASHOPTS": true, "BASHPID": true, "BASH_ALIASES": true, "BASH_ARGC": true,
	"BASH_ARGV":  true,
	"BASH_ARGV0": true, "BASH_CMDS": true, "BASH_COMMAND": true, "BASH_LINENO": true,
	"BASH_MONOSECONDS": true,
	"BASH_REMATCH":     true, "BASH_SOURCE": true, "BASH_SUBSHELL": true, "BASH_VERSINFO": true,
	"COMP_WORDBREAKS": true,
	"DIRSTACK":        true, "EPOCHREALTIME": true, "EPOCHSECONDS": true, "EUID": true,
	"FUNCNAME": true, "GROUPS": true,
	"HISTCMD": true, "LINENO": true, "OPTIND": true, "PIPESTATUS": true, "PPID": true, "RANDOM": true,
	"SECONDS":   true,
	"SHELLOPTS": true, "SRANDOM": true, "UID": true,
}

// doubleQuotes escapes for sh and for systemd. To both, a backslash escapes only these four
// characters (POSIX 2.2.3; systemd's SHELL_NEED_ESCAPE in src/basic/env-file.c).
var doubleQuotes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`, "`", "\\`")

// ClusterConfig returns the file with the assignment's platform config for one cluster, as a
// strategic merge patch. values are the assignment's values, overridden by the cluster's values. A
// null value is removed on the cluster. ClusterConfig reports each value that it cannot write.
func ClusterConfig(a *backends.Assignment, values model.Value) (backends.File, []diag.Diagnostic) {
	there := *a
	there.Values = values
	w := &workspace{assignment: &there}
	data, _, gone, ds := clusterData(a, values)
	w.ds = ds
	w.configMap(data, gone)
	text, err := yaml.Marshal(w.docs...)
	if err != nil {
		w.misfit("", "%s cannot be written: %v", PlatformConfigFile, err)
	}
	return backends.File{Path: PlatformConfigFile, Data: text}, w.diagnostics()
}

// ConfigPatch returns a strategic merge patch with the changes of the platform config on a cluster.
// values are as for ClusterConfig. It returns nil if the cluster does not change the config.
func ConfigPatch(a *backends.Assignment, values model.Value) ([]byte, []diag.Diagnostic, error) {
	data, base, gone, ds := clusterData(a, values)
	maps.DeleteFunc(data, func(key, text string) bool {
		old, there := base[key]
		return there && old == text
	})
	if len(data)+len(gone) == 0 {
		return nil, ds, nil
	}
	text, err := yaml.Marshal(struct {
		APIVersion string             `yaml:"apiVersion"`
		Kind       string             `yaml:"kind"`
		Metadata   Metadata           `yaml:"metadata"`
		Data       map[string]*string `yaml:"data"`
	}{"v1", "ConfigMap", Metadata{Name: configName, Namespace: a.Namespace}, patchData(data, gone)})
	return text, ds, err
}

// clusterData returns the data of the platform config on a cluster, the data on the other
// clusters, and the keys that only the others have, sorted.
func clusterData(a *backends.Assignment, values model.Value) (data, base map[string]string,
	gone []string, ds []diag.Diagnostic) {
	kept, _ := values.WithoutNulls()
	data, ds = ConfigData(a.ConfigFormat, kept)
	// the emission of the assignment reports its problems
	base, _ = ConfigData(a.ConfigFormat, a.Values)
	for key := range base {
		if _, there := data[key]; !there {
			gone = append(gone, key)
		}
	}
	slices.Sort(gone)
	return data, base, gone, ds
}
