package flux

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/lazyregexp"
)

// Values of single clusters. All clusters of a type apply the same folders. If clusters have values
// of their own, the platform config and the chart's values contain variables in place of these
// values. Flux replaces the variables when it applies the folder
// (https://fluxcd.io/flux/components/kustomize/kustomizations/#post-build-variable-substitution). A
// ConfigMap on each cluster contains their values. It is in the folder clusters/<cluster>, which a
// Kustomization of the cluster's own applies before the cluster type's folder. Flux does not read
// variables from other objects, and does not change this one.

// clustersFolder contains a folder for each cluster with values. No assignment's folder has
// this name, because a full name has a dash.
const clustersFolder = "clusters"

// disabled keeps Flux from replacing anything in an object.
var disabled = map[string]string{"kustomize.toolkit.fluxcd.io/substitute": "disabled"}

// variableName matches a name that is valid for a variable after a prefix.
var variableName = lazyregexp.New(`^[A-Za-z0-9_]+$`)

// variable is a value that each cluster has: in all assignments, or composed for one.
type variable struct {
	name   string // of the value
	target string // the deployment target's full name; "" for all assignments
}

// id returns the variable as indexInput has it. No value's name has a slash.
func (v variable) id() string {
	if v.target == "" {
		return v.name
	}
	return v.target + "/" + v.name
}

// Each value has two variables. Flux replaces text, and then reads the result as YAML. Therefore
// one variable contains the value's JSON, and the other its text as a JSON string. Without the
// quotes, "no" would be read as false in a ConfigMap, which needs text.
func (v variable) value() string { return v.nameIn("value_") }
func (v variable) text() string  { return v.nameIn("text_") }

// nameIn returns the name of a variable. Names of variables have no dash, so the length of the
// deployment target marks the beginning of the value's name.
func (v variable) nameIn(prefix string) string {
	if v.target == "" {
		return prefix + v.name
	}
	return fmt.Sprintf("own_%s%d_%s_%s", prefix, len(v.target), strings.ReplaceAll(v.target, "-", "_"),
		v.name)
}

// variablesOf returns the values that the clusters have in an assignment, sorted. If target
// is "", it returns their values in all assignments and in each. It returns nil if there are
// no such values. It reports a value that is not a scalar, or that a cluster does not have.
func variablesOf(clusters []model.Cluster, target string) ([]variable, []diag.Diagnostic) {
	found := map[variable]bool{}
	for i := range clusters {
		for v := range variablesOn(&clusters[i], target) {
			found[v] = true
		}
	}
	all := slices.SortedFunc(maps.Keys(found), func(a, b variable) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.target, b.target))
	})
	// A value that a cluster has for all assignments overrides a value composed for one.
	all = slices.DeleteFunc(all,
		func(v variable) bool { return v.target != "" && found[variable{v.name, ""}] })
	var ds []diag.Diagnostic
	for _, v := range all {
		ds = append(ds, v.unfit(clusters)...)
	}
	return all, ds
}

// variablesOn yields the values that a cluster has of its own.
func variablesOn(c *model.Cluster, target string) iter.Seq[variable] {
	return func(yield func(variable) bool) {
		if c.Values != nil {
			for _, f := range c.Values.Fields() {
				if !yield(variable{f.Name, ""}) {
					return
				}
			}
		}
		for of, values := range c.Composed {
			for _, f := range values.Fields() {
				if (target == "" || target == of) && !yield(variable{f.Name, of}) {
					return
				}
			}
		}
	}
}

// valueOn returns the value on a cluster, and the place that declares it.
func (v variable) valueOn(c *model.Cluster) (value model.Value, ref model.Ref, there bool) {
	value, there = c.ValuesOf(v.target).Lookup(v.name)
	ref = model.Ref{Collection: "clusters", Name: c.Name, Path: "values"}.At(model.Label(v.name))
	if c.Values != nil {
		if _, own := c.Values.Lookup(v.name); own {
			return value, ref, there
		}
	}
	if v.target != "" {
		ref.Path = ""
	}
	return value, ref, there
}

// unfit returns the reasons why Flux cannot give clusters the value: each once, with the
// first clusters.
func (v variable) unfit(clusters []model.Cluster) (ds []diag.Diagnostic) {
	reasons := map[string][]*model.Cluster{}
	for i := range clusters {
		of := ""
		switch value, _, there := v.valueOn(&clusters[i]); {
		case !there:
			of = absent
		case !variableName.MatchString(v.name):
			of = misnamed
		case value.Kind() == model.Null || !value.IsScalar():
			of = value.Kind().String()
		default:
			continue
		}
		reasons[of] = append(reasons[of], &clusters[i])
	}
	for _, of := range slices.Sorted(maps.Keys(reasons)) {
		which := "cluster " + reasons[of][0].Name
		if more := len(reasons[of]) - 1; more > 0 {
			which += fmt.Sprintf(" and %d more", more)
		}
		message, hint := "", ""
		switch of {
		case absent:
			message = fmt.Sprintf("%s has no value on %s, and has one on other clusters of the type: Flux "+
				"would fail there", v.name, which)
			hint = "give it to every cluster of the type, or to none"
		case misnamed:
			message, hint = fmt.Sprintf("Flux cannot give clusters a value named %s", model.Label(v.name)),
				"use letters, digits and '_'"
		case model.Null.String():
			message = fmt.Sprintf("Flux cannot take %s away on %s alone: the folder is the same for all "+
				"clusters of the type", v.name, which)
			hint = fmt.Sprintf("give the cluster a cluster type of its own, and write configs: %[1]q: "+
				"{match: clusterType: %[1]q, values: {%[2]s: null}}", reasons[of][0].Name, model.Label(v.name))
		default:
			message = fmt.Sprintf("Flux cannot give clusters a %s, as %s of %s is", of, v.name, which)
			hint = "give each of its values a name of its own"
		}
		d := diag.New(diag.ClusterValues, message).Hinting(hint)
		for _, c := range reasons[of][:min(len(reasons[of]), maxShown)] {
			_, ref, _ := v.valueOn(c)
			d = d.At(ref, "")
			if d.Path == "" && v.target != "" {
				d = d.On(model.Label(v.name))
			} else if d.Path == "" {
				d = d.On(ref.String())
			}
		}
		ds = append(ds, d)
	}
	return ds
}

// maxShown is how many clusters a diagnostic points to.
const maxShown = 3

// The reasons why a value does not fit a cluster, in addition to kinds other than scalars.
const (
	absent   = "absent"
	misnamed = "misnamed"
)

// escape returns a value without variables for Flux, which replaces two dollar signs by one.
func escape(v model.Value) model.Value {
	double := func(s string) string { return strings.ReplaceAll(s, "$", "$$") }
	switch v.Kind() {
	case model.String:
		return model.StringOf(double(v.Text()))
	case model.List:
		elems := slices.Clone(v.Elems())
		for i := range elems {
			elems[i] = escape(elems[i])
		}
		return model.ListOf(elems...)
	case model.Struct:
		fields := slices.Clone(v.Fields())
		for i, f := range fields {
			fields[i] = model.Field{Name: double(f.Name), Value: escape(f.Value)}
		}
		return model.StructOf(fields...)
	}
	return v
}

// withVariables returns escaped values, with variables in place of the values that the
// cluster has.
func withVariables(values model.Value, of []variable, name func(variable) string) model.Value {
	given := func(f model.Field) bool {
		return slices.ContainsFunc(of, func(v variable) bool { return v.name == f.Name })
	}
	fields := slices.DeleteFunc(slices.Clone(escape(values).Fields()), given)
	for _, v := range of {
		fields = append(fields, model.Field{Name: v.name, Value: model.StringOf("${" + name(v) + "}")})
	}
	return model.StructOf(fields...)
}

// onClusters returns the assignment with variables in its platform config, and the folder.
// It protects all other objects of the folder from replacement.
func onClusters(a *backends.Assignment, c delivery.Content, of []variable) (*backends.Assignment,
	delivery.Content, []diag.Diagnostic) {
	var ds []diag.Diagnostic
	if a.ConfigFormat != model.ConfigMap && a.ConfigFormat != "" {
		ref := model.Ref{Collection: "clusterTypes", Name: a.ClusterType, Path: "configFormat"}
		ds = append(ds, diag.New(diag.ClusterValues,
			fmt.Sprintf("Flux cannot put the values of clusters into a platform config of the format %s, "+
				"which is one text", a.ConfigFormat)).
			On(ref.String()).At(ref,
			"").Hinting(`use configFormat: "configmap", or remove the values of the clusters`))
	}
	if a.GitOps == nil {
		ds = append(ds,
			delivery.NeedsGitOps(a.Environment, "the delivery of values to single clusters").At(a.Ref, ""))
	}
	there := *a
	there.Values = withVariables(a.Values, of, variable.text)
	c.NamespaceAnnotations = disabled
	for i := range c.Manifests {
		c.Manifests[i].Value = kubernetes.Annotate(c.Manifests[i].Value,
			"kustomize.toolkit.fluxcd.io/substitute", "disabled")
	}
	for _, o := range c.Reconciler {
		// Only the release of a chart with the platform's values contains variables.
		if o.Kind != "HelmRelease" || a.Manifests.Helm.PlatformValues == "" {
			maps.Copy(o.Metadata.Annotations, disabled)
		}
	}
	return &there, c, ds
}

// clusterConfig is the name of the ConfigMap with the values of the variables on a cluster,
// and of the Kustomization that applies it. Two roots on one cluster have one each.
func clusterConfig(environment, clusterType string) string {
	return model.ShortName("kalypso-"+environment+"-"+clusterType+"-cluster", model.MaxLabel)
}

const valuesFile = "values.yaml"

// clusterValues returns the ConfigMap with the values of the variables on a cluster.
func clusterValues(ct *backends.ClusterType, o options, c *model.Cluster,
	all []variable) backends.File {
	data := map[string]string{}
	for _, v := range all {
		value, _, _ := v.valueOn(c)
		data[v.value()] = value.String()
		data[v.text()] = model.StringOf(value.Text()).String()
	}
	meta := delivery.ClusterTypeMeta(clusterConfig(ct.Environment, ct.Name), o.Namespace)
	// Flux applies the folders again as soon as it changes.
	meta.Labels["reconcile.fluxcd.io/watch"] = "Enabled"
	return backends.File{Path: valuesFile, Data: yaml.Must(struct {
		APIVersion string              `yaml:"apiVersion"`
		Kind       string              `yaml:"kind"`
		Metadata   kubernetes.Metadata `yaml:"metadata"`
		Data       map[string]string   `yaml:"data"`
	}{"v1", "ConfigMap", meta, data})}
}

// Entries returns the Kustomization of the folder, and the values of the cluster.
func (flux) Entries(ct *backends.ClusterType) (func(*model.Cluster) []backends.File,
	[]diag.Diagnostic) {
	o, ds := optionsOf(ct.Reconciler)
	if diag.Errors(ds) {
		return nil, ds
	}
	all, ds := variablesOf(ct.Clusters, "")
	if diag.Errors(ds) || len(all) == 0 { // Index reports it
		alone := []backends.File{delivery.Entry(ct)}
		return func(*model.Cluster) []backends.File { return alone }, nil
	}
	list := delivery.Entry(ct, valuesFile)
	return func(c *model.Cluster) []backends.File {
		return []backends.File{list,
			clusterValues(ct, o, c, all)}
	}, nil
}

// missing returns an error for each kept folder with variables that no cluster has a value
// for. Flux would fail to apply such a folder.
func missing(ct *backends.ClusterType, folders []backends.Folder,
	all []variable) []diag.Diagnostic {
	if ct.Entries {
		return nil // an entry always has the values
	}
	var ds []diag.Diagnostic
	for _, f := range folders {
		for _, name := range sharedOf(f).Variables {
			if slices.ContainsFunc(all, func(v variable) bool { return v.id() == name }) {
				continue
			}
			ds = append(ds, diag.New(diag.ClusterValues,
				fmt.Sprintf("the folder of %s is kept, and was built for a value %s of the clusters, which "+
					"have none now", f.DeploymentTarget, strings.TrimPrefix(name, f.DeploymentTarget+"/"))).
				At(ct.Ref, "").Hinting("give the clusters the value until the folder can be built again").
				For(delivery.FolderID(ct, f.DeploymentTarget)))
		}
	}
	return ds
}

// Divide returns the parts of a file that are for single clusters, by cluster, and the part
// for all clusters under "". It returns nil if the whole file is for all clusters.
func (flux) Divide(file string, data []byte, own bool) map[string][]byte {
	rest, is := strings.CutPrefix(file, clustersFolder+"/")
	if !own || !is {
		return nil
	}
	cluster, _, _ := strings.Cut(rest, "/")
	return map[string][]byte{cluster: data}
}

// Takes reports whether the folder contains the variable at a path in the ConfigMap of a
// cluster.
func (flux) Takes(f backends.Folder, path string) (string, bool) {
	for _, id := range sharedOf(f).Variables {
		v := variable{name: id}
		if target, name, own := strings.Cut(id, "/"); own {
			v = variable{name, target}
		}
		switch path {
		case "data." + v.value():
			return v.name, true
		case "data." + v.text():
			return "", true
		}
	}
	return "", false
}
