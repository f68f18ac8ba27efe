package gotemplate

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// dataOf returns the data of an assignment for a template. The first nine fields are the fields of
// the original Kalypso. The data belongs to the template, which may change it.
func dataOf(a *backends.Assignment) map[string]any {
	labels := textsOf(a.Labels)
	labels["workspace"], labels["workload"] = a.Workspace, a.Workload
	var dependsOn, images, rendered, secrets []any
	for _, image := range a.Images {
		of := map[string]any{}
		add(of, &image)
		images = append(images, of)
	}
	for _, target := range a.DependsOn {
		dependsOn = append(dependsOn, target)
	}
	if a.Render && a.Projection != nil {
		objects, _ := kubernetes.Split(a.Projection.Objects, kubernetes.IsStable)
		for _, o := range objects {
			rendered = append(rendered, plain(o.Value))
		}
	}
	for _, s := range a.Secrets {
		secrets = append(secrets, map[string]any{"name": s.Name, "store": s.Store, "key": s.Key,
			"property": s.Property, "version": s.Version})
	}
	manifests := a.Manifests
	if a.Registration != "" {
		manifests = manifests.WithoutSecrets()
	}
	return map[string]any{
		"DeploymentTargetName": a.DeploymentTarget,
		"Namespace":            a.Namespace,
		"Environment":          a.Environment,
		"Workspace":            a.Workspace,
		"Workload":             a.Workload,
		"Labels":               labels,
		"Manifests":            manifestsOf(manifests),
		"ClusterType":          a.ClusterType,
		"ConfigData":           plain(a.Values),

		"Application":       a.Application,
		"ClusterTypeLabels": textsOf(a.ClusterTypeLabels),
		"Version":           a.Version,
		"ConfigFormat":      string(a.ConfigFormat),
		"DependsOn":         dependsOn,
		"Images":            images,
		"Wave":              a.Wave,
		"Secrets":           secrets,
		"Rendered":          rendered,
	}
}

func textsOf(texts map[string]string) map[string]any {
	out := map[string]any{}
	for name, text := range texts {
		out[name] = text
	}
	return out
}

// fieldNames returns the names of the fields in a template's data.
func fieldNames() []string { return sortedKeys(dataOf(&backends.Assignment{})) }

// manifestsOf returns the source in the form of the original Kalypso, without a level for its kind.
// For a git repository it has repo, branch and path, with the attributes beside them. The field
// kind has the kind of the source.
func manifestsOf(m model.Manifests) map[string]any {
	out := map[string]any{}
	if m.Attributes != nil {
		for _, f := range m.Attributes.Fields() {
			out[f.Name] = plain(f.Value)
		}
	}
	var source any
	switch {
	case m.Git != nil:
		source = m.Git
	case m.OCI != nil:
		source = m.OCI
	case m.Helm != nil:
		source = m.Helm
	case m.Kustomize != nil:
		source = m.Kustomize
		add(out, m.Kustomize.Git)
		add(out, m.Kustomize.OCI)
	case m.Package != nil:
		source = m.Package
	case m.Ansible != nil:
		source = m.Ansible
		add(out, m.Ansible.Git)
	}
	add(out, source)
	if m.Kustomize != nil || m.Ansible != nil {
		delete(out, "git") // its fields are there
	}
	if m.Kustomize != nil {
		delete(out, "oci")
	}
	out["kind"] = string(m.Kind())
	return out
}

// add adds the fields of a struct of the model, by their names in the schema.
func add(into map[string]any, source any) {
	if v := reflect.ValueOf(source); !v.IsValid() || v.IsNil() {
		return
	}
	text, err := json.Marshal(source)
	var v model.Value
	if err == nil {
		err = v.UnmarshalJSON(text)
	}
	if err != nil {
		// strings, bools and Values always have JSON
		panic(fmt.Sprintf("gotemplate: reading %T: %v", source, err))
	}
	for _, f := range v.Fields() {
		into[f.Name] = plain(f.Value)
	}
}

// plain returns a value as templates and sprig know values: ints that can be
// counted with are int, others json.Number, and floats decimals.
func plain(v model.Value) any {
	switch v.Kind() {
	case model.Null:
		return nil
	case model.Bool:
		return v.Text() == "true"
	case model.Int:
		if i, err := strconv.Atoi(v.Text()); err == nil {
			return i
		}
		return json.Number(v.Text())
	case model.Float:
		return decimal(v.Text())
	case model.String:
		return v.Text()
	case model.List:
		out := make([]any, len(v.Elems()))
		for i, e := range v.Elems() {
			out[i] = plain(e)
		}
		return out
	}
	out := make(map[string]any, len(v.Fields()))
	for _, f := range v.Fields() {
		out[f.Name] = plain(f.Value)
	}
	return out
}

// valueOf is the reverse of plain, for the values that templates and sprig make.
func valueOf(x any) (model.Value, error) {
	switch x := x.(type) {
	case nil:
		return model.Value{}, nil
	case json.Number:
		return model.NumberOf(string(x))
	case decimal:
		return model.FloatOf(string(x))
	}
	v := reflect.ValueOf(x)
	switch v.Kind() {
	case reflect.Bool:
		return model.BoolOf(v.Bool()), nil
	case reflect.String:
		return model.StringOf(v.String()), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return model.IntOf(v.Int()), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return model.NumberOf(strconv.FormatUint(v.Uint(), 10))
	case reflect.Float32, reflect.Float64:
		return model.FloatOf(strconv.FormatFloat(v.Float(), 'g', -1, 64))
	case reflect.Slice, reflect.Array:
		elems := make([]model.Value, v.Len())
		for i := range elems {
			var err error
			if elems[i], err = valueOf(v.Index(i).Interface()); err != nil {
				return model.Value{}, err
			}
		}
		return model.ListOf(elems...), nil
	case reflect.Map:
		if v.Type().Key().Kind() != reflect.String {
			return model.Value{}, fmt.Errorf("a %s has keys that are no strings", v.Type())
		}
		fields := make([]model.Field, 0, v.Len())
		for it := v.MapRange(); it.Next(); {
			of, err := valueOf(it.Value().Interface())
			if err != nil {
				return model.Value{}, err
			}
			fields = append(fields, model.Field{Name: it.Key().String(), Value: of})
		}
		return model.StructOf(fields...), nil
	}
	return model.Value{}, fmt.Errorf("a %T has no YAML", x)
}
