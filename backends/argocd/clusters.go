package argocd

import (
	"bytes"
	"fmt"
	"slices"

	yamlnode "go.yaml.in/yaml/v3"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// applicationSet is the spec of an ApplicationSet
// (https://argo-cd.readthedocs.io/en/stable/operator-manual/applicationset). A list generates its
// Applications, so the set is equivalent to separate Applications: no label of a cluster can add
// one.
type applicationSet struct {
	GoTemplate        bool        `yaml:"goTemplate"`
	GoTemplateOptions []string    `yaml:"goTemplateOptions"`
	Generators        []generator `yaml:"generators"`
	Template          template    `yaml:"template"`
	TemplatePatch     string      `yaml:"templatePatch,omitempty"`
}

type generator struct {
	List struct {
		Elements []element `yaml:"elements"`
	} `yaml:"list"`
}

// element is the part of a set that differs between its Applications.
type element struct {
	Cluster string  `yaml:"cluster"`
	Name    string  `yaml:"name"`
	Spec    *detail `yaml:"spec,omitempty"`
}

// detail is the part of an Application's spec that a set's template leaves out. It has the fields
// that differ between clusters, and text that Argo CD would read as a template.
type detail struct {
	Source            *source            `yaml:"source,omitempty"`
	SyncPolicy        *syncPolicy        `yaml:"syncPolicy,omitempty"`
	IgnoreDifferences []ignoreDifference `yaml:"ignoreDifferences,omitempty"`
}

type template struct {
	Metadata kubernetes.Metadata `yaml:"metadata"`
	Spec     templateSpec        `yaml:"spec"`
}

type templateSpec struct {
	Project     string      `yaml:"project"`
	Destination destination `yaml:"destination"`
	Detail      detail      `yaml:",inline"`
}

// namesOn returns the names of the Applications that a set of a name makes for clusters, in their
// order. Without clusters it returns the name of the single Application.
func namesOn(clusters []string, name string) []string {
	if len(clusters) == 0 {
		return []string{name}
	}
	out := make([]string, len(clusters))
	for i, c := range clusters {
		out[i] = model.ShortName(name+"-"+c, model.MaxLabel)
	}
	return out
}

// applications returns the names of the Applications that deliver a folder to clusters, with
// the names of the clusters. It returns nil if there is only one Application, whose name is
// backends.AssignmentName.
func applications(environment, clusterType string, f backends.Folder) map[string]string {
	clusters := read(options{}, []backends.Folder{f})[0].Clusters
	if len(clusters) == 0 {
		return nil
	}
	out := make(map[string]string, len(clusters))
	for i, name := range namesOn(clusters,
		backends.AssignmentName(environment, clusterType, f.DeploymentTarget)) {
		out[name] = clusters[i]
	}
	return out
}

// set returns the ApplicationSet that makes an Application for each cluster. sources
// are theirs, in the order of the clusters.
func set(meta kubernetes.Metadata, namespace string, clusters []model.Cluster, spec application,
	sources []source) kubernetes.Object {
	names := make([]string, len(clusters))
	for i, c := range clusters {
		names[i] = c.Name
	}
	names = namesOn(names, meta.Name)
	s := applicationSet{GoTemplate: true, GoTemplateOptions: []string{"missingkey=error"},
		Generators: make([]generator, 1)}
	s.Template = template{
		Metadata: kubernetes.Metadata{Name: "{{ .name }}", Labels: meta.Labels,
			Annotations: map[string]string{}, Finalizers: []string{finalizer}},
		Spec: templateSpec{Project: spec.Project,
			Destination: destination{Name: "{{ .cluster }}", Namespace: namespace}},
	}
	for key, value := range meta.Annotations {
		if key != waveAnnotation { // of the set: its Applications are in no other
			s.Template.Metadata.Annotations[key] = value
		}
	}
	if spec.SyncPolicy.byHand() {
		s.Template.Metadata.Annotations[syncAnnotation] = manualSync
	}
	common, details := apart(spec, sources)
	s.Template.Spec.Detail = common
	for i, c := range clusters {
		s.Generators[0].List.Elements = append(s.Generators[0].List.Elements,
			element{c.Name, names[i], details[i]})
	}
	if details[0] != nil {
		// toJson makes it a value, and templates do not read values again.
		s.TemplatePatch = "spec: {{ toJson .spec }}\n"
	}
	return kubernetes.Object{APIVersion: api, Kind: setKind.Kind, Metadata: meta, Spec: s}
}

// apart splits a spec into the part that a template can contain for all clusters, and the details
// for the element of each cluster. All details are nil if the template can contain everything.
func apart(spec application, sources []source) (common detail, details []*detail) {
	sync := detail{SyncPolicy: spec.SyncPolicy, IgnoreDifferences: spec.IgnoreDifferences}
	first := yaml.Must(sources[0])
	sameSource := isPlain(first) &&
		!slices.ContainsFunc(sources, func(s source) bool { return !bytes.Equal(first, yaml.Must(s)) })
	if sameSource {
		common.Source = &sources[0]
	}
	plainSync := isPlain(yaml.Must(sync))
	if plainSync {
		common.SyncPolicy, common.IgnoreDifferences = sync.SyncPolicy, sync.IgnoreDifferences
	}
	details = make([]*detail, len(sources))
	for i := range sources {
		if sameSource && plainSync {
			break
		}
		details[i] = &detail{}
		if !plainSync {
			*details[i] = sync
		}
		if !sameSource {
			details[i].Source = &sources[i]
		}
	}
	return common, details
}

// isPlain reports whether a template would leave a text as it is.
func isPlain(text []byte) bool { return !bytes.Contains(text, []byte("{{")) }

// onClusters returns the folder with ApplicationSets. One replaces the Application of the
// folder, which is not in assignments.yaml, and one the workload's Application. Values of
// single clusters override the composed ones. In a chart they are part of its values, and in
// the platform config a patch of the folder.
func onClusters(a *backends.Assignment, o options, c delivery.Content,
	share indexInput) (delivery.Content, []diag.Diagnostic) {
	const field = "argocd.clusters"
	if len(a.Clusters) == 0 {
		return c, []diag.Diagnostic{diag.New(diag.BadSpec,
			fmt.Sprintf("cluster type %s has no cluster that the manifests could go to", a.ClusterType)).
			On(field).At(a.Reconciler.Ref.At(field),
			"").At(model.Ref{Collection: "clusterTypes", Name: a.ClusterType}, "").
			Hinting(fmt.Sprintf("list its clusters: clusters: \"...\": clusterType: %q, each by its name "+
				"in Argo CD", a.ClusterType)).
			Following("clusters", "inventories")}
	}
	ct := &backends.ClusterType{Environment: a.Environment, Name: a.ClusterType, Folder: a.Folder,
		GitOps: a.GitOps}
	folders, ds := folderSources(a, ct)
	if len(a.DependsOn) > 0 {
		ds = append(ds, diag.New(diag.NotWaitedFor,
			fmt.Sprintf("%s is synced without waiting for %s: Argo CD does not wait for the Applications "+
				"of an ApplicationSet", a.DeploymentTarget, kubernetes.Few(a.DependsOn))).
			On("dependsOn").At(a.Ref.At("dependsOn"), "").At(a.Reconciler.Ref.At("argocd.clusters"), "").
			Hinting("let the workload wait for what it needs, or give each cluster a cluster type of its "+
				"own"))
	}
	var objects []kubernetes.Object
	add := func(name string, spec application, sources []source) {
		meta := kubernetes.Meta(a, name, o.Namespace)
		inWave(&meta, a.Wave-manyWaves)
		objects = append(objects, set(meta, a.Namespace, a.Clusters, spec, sources))
	}
	add(backends.AssignmentName(a.Environment, a.ClusterType, a.DeploymentTarget), application{
		Project:    clustersProject(a.Environment, a.ClusterType, a.DeploymentTarget),
		SyncPolicy: o.syncOf(share), IgnoreDifferences: share.ignoreDifferences(),
	}, folders)
	for _, w := range c.Reconciler {
		spec := w.Spec.(application)
		add(w.Metadata.Name, spec, workloadSources(a, spec.Source))
	}
	ds = append(ds, delivery.SameOnAll(a)...)
	c.Reconciler, c.Elsewhere = objects, true
	return c, ds
}

// ownOf returns the values that an assignment has only on a cluster, and whether there are any.
func ownOf(a *backends.Assignment, c *model.Cluster) (model.Value, bool) {
	own := c.ValuesOf(a.DeploymentTarget)
	return own, len(own.Fields()) > 0
}

// unreached returns an error for each cluster with values that cannot reach it, because one
// Application has only one destination.
func unreached(a *backends.Assignment, o options) []diag.Diagnostic {
	if o.eachCluster() {
		return nil
	}
	var ds []diag.Diagnostic
	for i := range a.Clusters {
		c := &a.Clusters[i]
		if own, has := ownOf(a, c); has {
			ds = append(ds, diag.New(diag.ClusterValues,
				"the values of cluster "+c.Name+
					" reach nothing: the reconciler sends manifests to one destination").
				On(delivery.ClusterValues(c).String()).At(delivery.ClusterValues(c), "").At(a.Reconciler.Ref,
				"").
				Hinting(wayToCluster(a, c, own)))
		}
	}
	return ds
}

// wayToCluster describes how a cluster can get its own values. The Application of each cluster can
// deliver them. If the environment has entries, an Argo CD on the cluster itself pulls them, and
// the values need a config for that cluster.
func wayToCluster(a *backends.Assignment, c *model.Cluster, own model.Value) string {
	if !a.Entries {
		way := fmt.Sprintf(
			`let Argo CD send them to each cluster: reconcilers: %s: argocd: clusters: "inventory"`,
			model.Label(a.Reconciler.Ref.Name))
		if a.GitOps == nil {
			way += fmt.Sprintf(`, and environments: %s: gitops: {repo: "...", branch: "..."}`,
				model.Label(a.Environment))
		}
		return way
	}
	field := "values"
	if contradicts(a.Values, own) {
		field = "overrides"
	}
	return fmt.Sprintf("move them to a config: configs: %q: {match: clusterType: %q, clusters: "+
		"name: %q, %s: {...}}", c.Name, a.ClusterType, c.Name, field)
}

// contradicts reports whether values have a leaf of others otherwise.
func contradicts(values, others model.Value) bool {
	for _, f := range others.Fields() {
		v, there := values.Lookup(f.Name)
		both := v.Kind() == model.Struct && f.Value.Kind() == model.Struct
		if there && (both && contradicts(v, f.Value) || !both && !v.Equal(f.Value)) {
			return true
		}
	}
	return false
}

// folderSources returns the source of the folder for each cluster's Application. It includes
// the patch with the cluster's values of the platform config.
func folderSources(a *backends.Assignment, ct *backends.ClusterType) ([]source, []diag.Diagnostic) {
	var ds []diag.Diagnostic
	sources := make([]source, len(a.Clusters))
	for i := range a.Clusters {
		c := &a.Clusters[i]
		sources[i] = treeSource(ct, delivery.FolderPath(ct, a.DeploymentTarget))
		own, has := ownOf(a, c)
		if !has {
			continue
		}
		text, problems, err := kubernetes.ConfigPatch(a, model.Merge(a.Values, own))
		for _, d := range problems {
			ds = append(ds, d.At(delivery.ClusterValues(c), ""))
		}
		if err != nil {
			ds = append(ds, diag.New(diag.ClusterValues,
				"the values of cluster "+c.Name+" cannot be written: "+
					err.Error()).At(delivery.ClusterValues(c), ""))
		}
		if text == nil {
			continue
		}
		sources[i].Kustomize = &kustomizeSource{Patches: []patch{{Patch: string(text)}}}
	}
	return sources, ds
}

// workloadSources returns the workload's source on each cluster: a chart gets the
// cluster's values among the platform's.
func workloadSources(a *backends.Assignment, s source) []source {
	sources := make([]source, len(a.Clusters))
	for i := range a.Clusters {
		sources[i] = s
		own, has := ownOf(a, &a.Clusters[i])
		if s.Helm == nil || a.Manifests.Helm.PlatformValues == "" || !has {
			continue
		}
		there := *a
		there.Values = model.Merge(a.Values, own)
		sources[i].Helm = release(&there, a.Manifests.Helm)
	}
	return sources
}

// Divide returns the parts of a file that are for single clusters, by cluster, and the part
// for all clusters under "". It returns nil if the whole file is for all clusters.
func (argocd) Divide(file string, data []byte, own bool) map[string][]byte {
	if own || file != delivery.ReconcilerFile {
		return nil
	}
	return delivery.Divide(data, func(doc *yamlnode.Node, part func(string, *yamlnode.Node)) {
		if kind := delivery.Node(doc, "kind"); kind == nil || kind.Value != setKind.Kind {
			return
		}
		generators := delivery.Node(doc, "spec", "generators")
		for i := 0; generators != nil && i < len(generators.Content); i++ {
			delivery.TakeElements(delivery.Node(generators.Content[i], "list", "elements"), "cluster", part)
		}
	})
}

// Takes reports that each value outside of an assignment's own objects is for all
// assignments.
func (argocd) Takes(backends.Folder, string) (string, bool) { return "", true }
