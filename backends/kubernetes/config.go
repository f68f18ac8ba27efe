package kubernetes

import (
	"fmt"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// configName is the ConfigMap in which an application finds the platform's
// values, and begins the name of a document that holds all of them.
const configName = "platform-config"

// valuesAnnotation has the digest of the values that the platform config holds.
const valuesAnnotation = "kalypso.io/values"

// platformConfig adds the ConfigMap, also without values: applications mount it.
// In the format configmap it has a key for each value, in the others one key
// platform-config.<format> with all of them. It alone says which values it was
// made of: were their digest on other objects, each change of a value would
// change all of them.
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
	if n := size(data); n > maxConfigMap {
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

// patchData returns the data of a patch: null takes a key away.
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

// ConfigData returns the data of the ConfigMap "platform-config" for values. What
// cannot be in it is a diagnostic about the value.
func ConfigData(format model.ConfigFormat, values model.Value) (map[string]string, []diag.Diagnostic) {
	if format == model.ConfigMap || format == "" {
		return configData(values)
	}
	text, ds := ConfigText(format, values)
	return map[string]string{configName + "." + string(format): string(text)}, ds
}

// maxConfigMap is how many bytes a ConfigMap can hold (MaxSecretSize in
// k8s.io/api/core/v1, which its validation applies to ConfigMaps as well).
const maxConfigMap = 1 << 20

func size(data map[string]string) int {
	n := 0
	for k, v := range data {
		n += len(k) + len(v)
	}
	return n
}

// configData returns the data of a ConfigMap that has a key for each value, which is
// the value's text.
func configData(values model.Value) (map[string]string, []diag.Diagnostic) {
	data := make(map[string]string, len(values.Fields()))
	var ds []diag.Diagnostic
	for _, f := range values.Fields() {
		if !validKey(f.Name) {
			ds = append(ds, badKey(f.Name, "cannot be a key of a ConfigMap",
				"use letters, digits, '-', '_' and '.', or one of the config formats json and yaml"))
			continue
		}
		text, err := valueText(f.Value)
		if err != nil {
			ds = append(ds, badKey(f.Name, "cannot be written: "+err.Error(), ""))
			continue
		}
		data[f.Name] = text
	}
	return data, ds
}

// valueText returns a value as text, in all formats that have a text for each
// value: a scalar as its own, null as the empty string, and structs and lists as
// JSON on one line.
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

// validKey says whether a ConfigMap or Secret may have the key (Kubernetes'
// IsConfigMapKey).
func validKey(key string) bool {
	if key == "" || len(key) > 253 || key == "." || strings.HasPrefix(key, "..") {
		return false
	}
	for _, c := range []byte(key) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return true
}

// badKey reports a key of the values.
func badKey(key, problem, hint string) diag.Diagnostic {
	return diag.New(diag.BadConfigKey, "the value "+model.Label(key)+" "+problem).On(model.Label(key)).Hinting(hint)
}
