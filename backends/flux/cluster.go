package flux

import (
	"fmt"
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

// Values of single clusters. All clusters of a type apply the same folders. Where
// they have values of their own, the platform config and the chart's values hold
// variables in their place, which Flux replaces when it applies the folder
// (https://fluxcd.io/flux/components/kustomize/kustomizations/#post-build-variable-substitution).
// A ConfigMap on each cluster says what they are: it is in the folder
// clusters/<cluster>, which a Kustomization of the cluster's own applies before the
// cluster type's folder. Flux looks at no other object, and changes none.

// clustersFolder holds a folder for each cluster with values. No assignment's has
// its name: a full name has a dash.
const clustersFolder = "clusters"

// disabled keeps Flux from replacing anything in an object.
var disabled = map[string]string{"kustomize.toolkit.fluxcd.io/substitute": "disabled"}

// variableName is what can be the name of a variable after a prefix.
var variableName = lazyregexp.New(`^[A-Za-z0-9_]+$`)

// Each value is two variables. Flux replaces text, which is read as YAML
// afterwards, so that one holds the value's JSON, and the other its text as a JSON
// string: without the quotes, "no" would be false where a ConfigMap wants text.
func valueVariable(name string) string { return "value_" + name }
func textVariable(name string) string  { return "text_" + name }

// variablesOf returns the names of the values that the clusters have, sorted; none
// where they have none. Each is a scalar, and each cluster has all.
func variablesOf(clusters []model.Cluster) ([]string, []diag.Diagnostic) {
	names := map[string]bool{}
	for _, c := range clusters {
		for _, f := range fieldsOf(c) {
			names[f.Name] = true
		}
	}
	var ds []diag.Diagnostic
	refuse := func(c model.Cluster, name, message, hint string) {
		ref := model.Ref{Collection: "clusters", Name: c.Name, Path: "values"}
		ds = append(ds, diag.New(diag.ClusterValues, message).On(ref.At(model.Label(name)).String()).At(ref.At(model.Label(name)), "").Hinting(hint))
	}
	all := sortedKeys(names)
	for _, c := range clusters {
		for _, f := range fieldsOf(c) {
			switch {
			case !variableName.MatchString(f.Name):
				refuse(c, f.Name, fmt.Sprintf("Flux cannot give clusters a value named %s", model.Label(f.Name)), "use letters, digits and '_'")
			case f.Value.Kind() == model.Null:
				refuse(c, f.Name, fmt.Sprintf("Flux cannot take %s away on cluster %s alone: it would be empty there", f.Name, c.Name),
					"give the cluster a cluster type of its own, and a config in which it is null")
			case !f.Value.IsScalar():
				refuse(c, f.Name, fmt.Sprintf("Flux cannot give clusters a %s, as %s of cluster %s is", f.Value.Kind(), f.Name, c.Name), "give each of its values a name of its own")
			}
		}
		for _, name := range all {
			if !slices.ContainsFunc(fieldsOf(c), func(f model.Field) bool { return f.Name == name }) {
				refuse(c, name, fmt.Sprintf("cluster %s has no value %s, and other clusters of its type have: Flux would make it empty there", c.Name, name),
					"give it to every cluster of the type, or to none")
			}
		}
	}
	return all, ds
}

func fieldsOf(c model.Cluster) []model.Field {
	if c.Values == nil {
		return nil
	}
	return c.Values.Fields()
}

func sortedKeys(set map[string]bool) []string {
	var out []string
	for name := range set {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// escape returns a value in which Flux finds no variable: it makes one dollar sign
// of two.
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

// withVariables returns escaped values with variables in the place of those that
// the cluster gives.
func withVariables(values model.Value, names []string, variable func(string) string) model.Value {
	fields := slices.DeleteFunc(slices.Clone(escape(values).Fields()), func(f model.Field) bool { return slices.Contains(names, f.Name) })
	for _, name := range names {
		fields = append(fields, model.Field{Name: name, Value: model.StringOf("${" + variable(name) + "}")})
	}
	return model.StructOf(fields...)
}

// onClusters returns the assignment with variables in its platform config, and the
// folder with all else kept from being replaced.
func onClusters(a *backends.Assignment, c delivery.Content, names []string) (*backends.Assignment, delivery.Content, []diag.Diagnostic) {
	var ds []diag.Diagnostic
	if a.ConfigFormat != model.ConfigMap && a.ConfigFormat != "" {
		ref := model.Ref{Collection: "clusterTypes", Name: a.ClusterType, Path: "configFormat"}
		ds = append(ds, diag.New(diag.ClusterValues, fmt.Sprintf("Flux cannot put the values of clusters into a platform config of the format %s, which is one text", a.ConfigFormat)).
			On(ref.String()).At(ref, "").Hinting(`use configFormat: "configmap", or remove the values of the clusters`))
	}
	if a.GitOps == nil {
		ds = append(ds, delivery.NeedsGitOps(a.Environment, "the delivery of values to single clusters").At(a.Ref, ""))
	}
	there := *a
	there.Values = withVariables(a.Values, names, textVariable)
	c.NamespaceAnnotations = disabled
	for i := range c.Manifests {
		c.Manifests[i].Value = delivery.Annotate(c.Manifests[i].Value, "kustomize.toolkit.fluxcd.io/substitute", "disabled")
	}
	for i := range c.Reconciler {
		if !takesVariables(a, c.Reconciler[i]) {
			for key, value := range disabled {
				c.Reconciler[i].Metadata.Annotations[key] = value
			}
		}
	}
	return &there, c, ds
}

// takesVariables says whether an object of reconciler.yaml holds variables: the
// release of a chart that gets the platform's values.
func takesVariables(a *backends.Assignment, o kubernetes.Object) bool {
	return o.Kind == "HelmRelease" && a.Manifests.Helm.PlatformValues != ""
}

// withClusterValues returns the assignment and its chart as values are composed
// for a release that holds variables.
func withClusterValues(a *backends.Assignment, h *model.Helm, names []string) (*backends.Assignment, *model.Helm) {
	if len(names) == 0 || h.PlatformValues == "" {
		return a, h
	}
	there, chart := *a, *h
	there.Values = withVariables(a.Values, names, valueVariable)
	if h.Values != nil {
		escaped := escape(*h.Values)
		chart.Values = &escaped
	}
	return &there, &chart
}

// clusterConfig is the name of the ConfigMap that says what the variables are on a
// cluster, and of the Kustomization that brings it there. Two roots on one cluster
// have one each.
func clusterConfig(environment, clusterType string) string {
	return model.ShortName("kalypso-"+environment+"-"+clusterType+"-cluster", model.MaxLabel)
}

// clusterFolders returns the folders of the clusters.
func clusterFolders(ct *backends.ClusterType, o options) []backends.File {
	var files []backends.File
	for i := range ct.Clusters {
		folder := clustersFolder + "/" + ct.Clusters[i].Name + "/"
		list, values := delivery.Kustomization([]string{valuesFile}), clusterValues(ct, o, &ct.Clusters[i])
		list.Path, values.Path = folder+list.Path, folder+values.Path
		files = append(files, list, values)
	}
	return files
}

const valuesFile = "values.yaml"

// clusterValues returns the ConfigMap that says what the variables are on a cluster.
func clusterValues(ct *backends.ClusterType, o options, c *model.Cluster) backends.File {
	data := map[string]string{}
	for _, f := range fieldsOf(*c) {
		text := f.Value.Text()
		if f.Value.Kind() == model.Null { // as in a platform config
			text = ""
		}
		data[valueVariable(f.Name)] = f.Value.String()
		data[textVariable(f.Name)] = model.StringOf(text).String()
	}
	meta := delivery.ClusterTypeMeta(clusterConfig(ct.Environment, ct.Name), o.Namespace)
	// Flux applies the folders anew as soon as it changes.
	meta.Labels["reconcile.fluxcd.io/watch"] = "Enabled"
	return backends.File{Path: valuesFile, Data: yaml.Must(struct {
		APIVersion string              `yaml:"apiVersion"`
		Kind       string              `yaml:"kind"`
		Metadata   kubernetes.Metadata `yaml:"metadata"`
		Data       map[string]string   `yaml:"data"`
	}{"v1", "ConfigMap", meta, data})}
}

// Entries returns the Kustomization of the folder, and the values of the cluster.
func (flux) Entries(ct *backends.ClusterType) (func(*model.Cluster) []backends.File, []diag.Diagnostic) {
	o, ds := optionsOf(ct.Reconciler)
	if diag.Errors(ds) {
		return nil, ds
	}
	names, ds := variablesOf(ct.Clusters)
	if diag.Errors(ds) || len(names) == 0 { // Index reports it
		alone := []backends.File{delivery.Entry(ct)}
		return func(*model.Cluster) []backends.File { return alone }, nil
	}
	list := delivery.Entry(ct, valuesFile)
	return func(c *model.Cluster) []backends.File { return []backends.File{list, clusterValues(ct, o, c)} }, nil
}

// missing returns an error for each folder that holds variables which no cluster
// gives any more: it was kept, and Flux would make them empty.
func missing(ct *backends.ClusterType, folders []backends.Folder, names []string) []diag.Diagnostic {
	var ds []diag.Diagnostic
	for _, f := range folders {
		for _, name := range sharedOf(f).Variables {
			if slices.Contains(names, name) {
				continue
			}
			ds = append(ds, diag.New(diag.ClusterValues, fmt.Sprintf("the folder of %s is kept, and was built for a value %s of the clusters, which have none now", f.DeploymentTarget, name)).
				At(ct.Ref, "").Hinting("give the clusters the value until the folder can be built again").For(delivery.FolderID(ct, f.DeploymentTarget)))
		}
	}
	return ds
}
