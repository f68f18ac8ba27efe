package fleet

import (
	"fmt"
	"maps"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// referenced adds what fetches the workload.
func (f *folder) referenced() {
	source, ds := delivery.SourceOf(f.assignment)
	secret := ""
	if !diag.Errors(ds) {
		var problems []diag.Diagnostic
		secret, problems = f.options.Of(f.assignment, source, "fleet")
		ds = append(ds, problems...)
	}
	f.ds = append(append(f.ds, ds...), backends.NoRestart(f.assignment, "Fleet changes nothing of what it fetches",
		"render it: set render: true on the deployment target")...)
	if account := delivery.AccountOf(f.assignment, f.options.ServiceAccount); account != "" {
		f.options.ServiceAccount = account
	} else if kubernetes.Confined(f.assignment.Bounds) {
		ds = append(ds, f.unconfined(source))
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

// unconfined reports that Fleet would apply what it fetches with all rights that it has.
func (f *folder) unconfined(s delivery.Source) diag.Diagnostic {
	a := f.assignment
	return delivery.Unsupported(a, s.Field,
		"what Fleet fetches for workspace "+a.Workspace+" needs a service account on the clusters, in "+
			"cattle-fleet-system, that may do what the workspace allows").
		Hinting(fmt.Sprintf("make one, and name it: workspaces: %q: reconciler: serviceAccount; or "+
			"render the manifests: set render: true on the deployment target", a.Workspace))
}

// gitRepo adds the GitRepo of a folder in the application's repository. Its labels
// are those of all its bundles.
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

// checkGit reports what a GitRepo cannot do.
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
		refuse("path", "Fleet would read the path "+g.Path+" as a pattern", "name a folder without *, ?, [ and \\, "+render)
	}
	if len(f.assignment.DependsOn) > 0 {
		f.ds = append(f.ds, diag.New(diag.UnsupportedManifests, "what Fleet fetches from the "+
			"application's repository cannot wait for another deployment target: a GitRepo has no dependsOn").
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
		// A registry's URL holds the chart's name, and chart must be empty.
		spec.Helm.Repo, spec.Helm.Chart = delivery.ChartURL(h), ""
	}
	if !delivery.Exact(h.Version) {
		spec.PollingInterval = f.options.PollingInterval
	}
	if spec.hasNull() {
		f.checkLabels(s)
		spec.asTexts()
	}
	f.management(helmOpObject(kubernetes.Meta(a, nameOf(a, partWorkload), f.options.Namespace), spec))
}

// onClusters returns a target for each cluster whose values change the chart's. It
// names the cluster type too: unlike those in a fleet.yaml, the targets of a HelmOp
// also say where it goes.
//
// Fleet resolves a range of versions for the HelmOp, and leaves the range in such
// targets: their clusters would stay at the version that they began with.
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
		values := under(s.Helm.PlatformValues, own.Canonical())
		f.checkValues(values, valuesOf(c))
		t := f.everywhere()
		t.Name, t.ClusterName, t.Helm = c.Name, c.Name, &helm{Values: &values}
		out = append(out, t)
	}
	if len(out) > 0 && !delivery.Exact(s.Helm.Version) {
		f.ds = append(f.ds, delivery.Unsupported(f.assignment, s.Field+".version",
			"clusters with values of their own do not follow a range of versions in Fleet").
			At(valuesOf(&model.Cluster{Name: out[0].Name}), "").
			Hinting("name one version, or render the chart: set render: true on the deployment target"))
	}
	return out
}

// everywhere is the target of all clusters of the cluster type.
func (f *folder) everywhere() target {
	a := f.assignment
	return target{Name: a.ClusterType, ClusterSelector: f.options.selector(a.Environment, a.ClusterType)}
}

// checkChart reports what a HelmOp cannot fetch, or would change.
func (f *folder) checkChart(s delivery.Source, values *model.Value) {
	h := s.Helm
	refuse := func(field, message, hint string) {
		f.ds = append(f.ds, delivery.Unsupported(f.assignment, s.Field+"."+field, message).Hinting(hint))
	}
	if h.OCI != "" && delivery.Exact(h.Version) && delivery.ChartTag(h.Version) != h.Version {
		refuse("version", "Fleet looks for the tag "+h.Version+", and a registry cannot hold one with a plus sign",
			"publish the chart with a version without build metadata, or render it: set render: true on the deployment target")
	}
	if isArchive(h.Chart) {
		refuse("chart", "Fleet would take "+h.Chart+" for the URL of an archive",
			"name the chart as its repository's index does")
	}
	if values != nil {
		f.checkValues(*values, f.assignment.Ref.At(model.JoinPath("manifests", s.Field+".values")))
	}
}
