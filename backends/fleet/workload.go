package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// referenced adds the object that makes Fleet fetch the workload.
func (f *folder) referenced() {
	source, ds := delivery.SourceOf(f.assignment)
	secret := ""
	if !diag.Errors(ds) {
		var problems []diag.Diagnostic
		secret, problems = f.options.SecretFor(f.assignment, source, backend)
		ds = append(ds, problems...)
	}
	f.ds = append(append(f.ds, ds...),
		backends.NoRestart(f.assignment, "Fleet changes nothing of what it fetches",
			"render it: set render: true on the deployment target")...)
	if account := delivery.AccountOf(f.assignment, f.options.ServiceAccount); account != "" {
		f.options.ServiceAccount = account
	} else if kubernetes.Confined(f.assignment.Bounds) {
		// Fleet would apply fetched objects with all of its own rights.
		a := f.assignment
		ds = append(ds, delivery.Unsupported(a, source.Field,
			"what Fleet fetches for workspace "+a.Workspace+" needs a service account on the clusters, in "+
				"cattle-fleet-system, that may do what the workspace allows").
			Hinting(fmt.Sprintf("make one, and name it: workspaces: %q: reconciler: serviceAccount; or "+
				"render the manifests: set render: true on the deployment target", a.Workspace)))
		f.ds = append(f.ds, ds[len(ds)-1])
	}
	switch {
	case diag.Errors(ds):
	case source.Git != nil:
		f.gitRepo(source, secret)
	case source.Helm != nil:
		f.helmOp(source, secret)
	}
}

// gitRepo adds the GitRepo of a folder in the application's repository. Fleet copies its labels to
// all of its bundles.
func (f *folder) gitRepo(s delivery.Source, secret string) {
	a, g := f.assignment, s.Git
	f.checkGit(s)
	meta := kubernetes.Meta(a, nameOf(a, partWorkload), f.options.Namespace)
	maps.Copy(meta.Labels, labels(a, a.DeploymentTarget, partWorkload))
	spec := gitRepo{
		Repo: g.Repo, Branch: g.Branch, Revision: g.Tag + g.Commit, // one of them
		TargetNamespace:  a.Namespace,
		ClientSecretName: secret,
		PollingInterval:  f.options.PollingInterval,
		ServiceAccount:   f.options.ServiceAccount,
		CorrectDrift:     f.options.drift(),
		Targets:          []target{f.everywhere()},
	}
	if path := delivery.Path(g.Path); path != "." {
		spec.Paths = []string{path}
	}
	f.management(gitRepoObject(meta, spec))
}

// checkGit reports the options of a source that a GitRepo does not support.
func (f *folder) checkGit(s delivery.Source) {
	const render = "or render it: set render: true on the deployment target"
	refuse := func(field, message, hint string) {
		f.ds = append(f.ds, delivery.Unsupported(f.assignment, s.Field+"."+field, message).Hinting(hint))
	}
	g := s.Git
	if g.Semver != "" {
		refuse("semver", "a GitRepo of Fleet follows a branch, or stays at a tag or a commit",
			"name a branch, a tag or a commit, "+render)
	}
	if g.Verify != nil {
		refuse("verify", "Fleet verifies no signatures", "remove verify")
	}
	if local(g.Repo) {
		refuse("repo", "to Fleet "+g.Repo+" is a folder of its own pods", "give the URL by which Fleet "+
			"reaches the repository, "+render)
	}
	if pattern(delivery.Path(g.Path)) {
		refuse("path", "Fleet would read the path "+g.Path+" as a pattern",
			"name a folder without *, ?, [ and \\, "+render)
	}
	if len(f.assignment.DependsOn) > 0 {
		f.ds = append(f.ds, diag.New(diag.UnsupportedManifests, "what Fleet fetches from the "+
			"application's repository cannot wait for another deployment target: a GitRepo has no "+
			"dependsOn").
			On("dependsOn").At(f.assignment.Ref.At("dependsOn"), "").
			Hinting("render it: set render: true on the deployment target; or write dependsOn into the "+
				"repository's own fleet.yaml"))
	}
}

// helmOp adds the HelmOp of a chart.
func (f *folder) helmOp(s delivery.Source, secret string) {
	a, h := f.assignment, s.Helm
	values := delivery.ChartValues(a, h)
	f.checkChart(s, values)
	spec := helmOp{
		Labels:           labels(a, a.DeploymentTarget, partWorkload),
		HelmSecretName:   secret,
		DefaultNamespace: a.Namespace,
		Helm: helm{
			Repo: h.Repo, Chart: h.Chart, Version: h.Version,
			ReleaseName: delivery.ReleaseName(a, h),
			Values:      values, DisablePreProcess: true,
		},
		ServiceAccount: f.options.ServiceAccount,
		CorrectDrift:   f.options.drift(),
		DependsOn:      workloadDependencies(a, partWorkspace),
		Targets:        append(f.onClusters(s), f.everywhere()),
	}
	if h.OCI != "" {
		// A registry's URL contains the chart's name, and chart must be empty.
		spec.Helm.Repo, spec.Helm.Chart = delivery.ChartURL(h), ""
	}
	if !delivery.Exact(h.Version) {
		spec.PollingInterval = f.options.PollingInterval
	}
	if spec.Helm.hasNull() ||
		slices.ContainsFunc(spec.Targets, func(t target) bool { return t.Helm.hasNull() }) {
		f.checkLabels(s)
		spec.asTexts()
	}
	f.management(kubernetes.Object{APIVersion: apiVersion, Kind: "HelmOp",
		Metadata: kubernetes.Meta(a, nameOf(a, partWorkload), f.options.Namespace), Spec: spec})
}

// onClusters returns a target for each cluster whose values change the chart's values. The target
// names the cluster type too. Unlike the targets in a fleet.yaml, the targets of a HelmOp also
// select its destinations.
//
// Fleet resolves a range of versions for the HelmOp, but leaves the range in such targets. Their
// clusters would stay at the version that they began with.
func (f *folder) onClusters(s delivery.Source) []target {
	if s.Helm.PlatformValues == "" {
		return nil
	}
	var out []target
	for i := range f.assignment.Clusters {
		c := &f.assignment.Clusters[i]
		_, own, differs := f.onCluster(c)
		if !differs {
			continue
		}
		values := own.Canonical()
		for _, name := range slices.Backward(strings.Split(s.Helm.PlatformValues, ".")) {
			values = model.StructOf(model.Field{Name: name, Value: values})
		}
		f.checkValues(values, delivery.ClusterValues(c))
		t := f.everywhere()
		t.Name, t.ClusterName, t.Helm = c.Name, c.Name, &helm{Values: &values}
		out = append(out, t)
	}
	if len(out) > 0 && !delivery.Exact(s.Helm.Version) {
		f.ds = append(f.ds, delivery.Unsupported(f.assignment, s.Field+".version",
			"clusters with values of their own do not follow a range of versions in Fleet").
			At(delivery.ClusterValues(&model.Cluster{Name: out[0].Name}), "").
			Hinting("name one version, or render the chart: set render: true on the deployment target"))
	}
	return out
}

// everywhere is the target of all clusters of the cluster type.
func (f *folder) everywhere() target {
	a := f.assignment
	return target{Name: a.ClusterType,
		ClusterSelector: f.options.selector(a.Environment, a.ClusterType)}
}

// checkChart reports charts that a HelmOp cannot fetch, and values that it would change.
func (f *folder) checkChart(s delivery.Source, values *model.Value) {
	h := s.Helm
	refuse := func(field, message, hint string) {
		f.ds = append(f.ds, delivery.Unsupported(f.assignment, s.Field+"."+field, message).Hinting(hint))
	}
	if h.OCI != "" && delivery.Exact(h.Version) && delivery.ChartTag(h.Version) != h.Version {
		refuse("version",
			"Fleet looks for the tag "+h.Version+", and a registry cannot hold one with a plus sign",
			"publish the chart with a version without build metadata, or render it: set render: true on "+
				"the deployment target")
	}
	if strings.HasSuffix(strings.ToLower(h.Chart), ".tgz") {
		refuse("chart", "Fleet would take "+h.Chart+" for the URL of an archive",
			"name the chart as its repository's index does")
	}
	if values != nil {
		f.checkValues(*values, f.assignment.Ref.At(model.JoinPath("manifests", s.Field+".values")))
	}
}

// Fleet's controller changes the values of a chart in two ways, whatever disablePreProcess says
// (processLabelValues in internal/cmd/controller/target of Fleet 0.15). A text that begins with
// clusterLabels becomes the value of a label of the cluster. Values that are nested deeper than
// maxDepth are an error.
const (
	clusterLabels = "global.fleet.clusterLabels."
	maxDepth      = 50
)

// checkValues reports values that Fleet would change or refuse.
func (f *folder) checkValues(values model.Value, at model.Ref) {
	path, why := misread(values, 0)
	if why == "" {
		return
	}
	if path != "" {
		path = " at " + path
	}
	f.ds = append(f.ds, diag.New(diag.UnsupportedManifests,
		fmt.Sprintf("Fleet cannot pass on the chart's values%s: %s", path, why)).
		On("manifests.helm.values").At(at, "").At(f.assignment.Ref.At("manifests.helm"), "").
		Hinting("render the chart: set render: true on the deployment target"))
}

// misread returns the path of the first value that Fleet changes or refuses, and the reason. The
// reason is "" if Fleet keeps all values.
func misread(v model.Value, depth int) (path, why string) {
	if depth > maxDepth {
		return "", fmt.Sprintf("they are nested more than %d deep", maxDepth)
	}
	for _, field := range v.Fields() {
		var inner string
		switch field.Value.Kind() {
		case model.String:
			if strings.HasPrefix(field.Value.Text(), clusterLabels) {
				why = "it would replace a text that begins with " + clusterLabels
			}
		case model.Struct:
			inner, why = misread(field.Value, depth+1)
		case model.List:
			inner, why = misreadElement(field.Value, depth+1)
		}
		if why != "" {
			return model.JoinPath(model.Label(field.Name), inner), why
		}
	}
	return "", ""
}

// misreadElement is misread for a list. Fleet reads only the structs in a list.
func misreadElement(list model.Value, depth int) (path, why string) {
	for _, e := range list.Elems() {
		if e.Kind() == model.Struct {
			if path, why = misread(e, depth); why != "" {
				return path, why
			}
		}
	}
	return "", ""
}

func (h *helm) hasNull() bool { return h != nil && h.Values != nil && delivery.HasNull(*h.Values) }

// asTexts replaces the values of a HelmOp by texts, one for each key. Fleet's agent uses a merge
// patch for the HelmOps of releases before Fleet 0.15, and for every rollback. To a merge patch,
// null means "no such key" (createPatch in pkg/kube/client.go of Helm). Fleet itself keeps the
// nulls that it reads from a text. The text of a key for one cluster replaces the text for all
// clusters.
func (op *helmOp) asTexts() {
	all := *op.Helm.Values
	op.Helm.TemplateValues, op.Helm.Values, op.Helm.DisablePreProcess = texts(all), nil, false
	for _, t := range op.Targets {
		if t.Helm == nil {
			continue
		}
		there := model.Merge(all, *t.Helm.Values)
		fields := slices.Clone(t.Helm.Values.Fields())
		for i, f := range fields {
			fields[i].Value, _ = there.Lookup(f.Name)
		}
		t.Helm.TemplateValues, t.Helm.Values = texts(model.StructOf(fields...)), nil
	}
}

// texts returns the fields of a struct as texts of YAML without templates for Fleet.
func texts(values model.Value) map[string]string {
	out := map[string]string{}
	for _, f := range values.Fields() {
		out[f.Name] = strings.ReplaceAll(string(yaml.Must(f.Value)), "${", "${ `${` }")
	}
	return out
}

// checkLabels reports clusters on which Fleet ignores values that are texts. It ignores them
// if a cluster has only Rancher's labels (preprocessHelmValues in
// internal/cmd/controller/target).
func (f *folder) checkLabels(s delivery.Source) {
	for label := range f.everywhere().ClusterSelector.MatchLabels {
		if !strings.Contains(label, "cattle.io/") {
			return
		}
	}
	const field = "fleet.clusterSelector"
	const text = "Fleet passes over a null in the chart's values on clusters that have no labels " +
		"but Rancher's"
	f.ds = append(f.ds, delivery.Unsupported(f.assignment, s.Field+".values", text).
		At(f.assignment.Reconciler.Ref.At(field), "").
		Hinting("add a label of your own to clusterSelector, or render the chart: set render: true on "+
			"the deployment target"))
}
