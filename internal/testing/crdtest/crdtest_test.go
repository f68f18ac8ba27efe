package crdtest_test

import (
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/internal/testing/crdtest"
)

// release is a valid object that each case breaks in one way.
const release = `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata:
  name: demo
  namespace: flux-system
spec:
  interval: 10m
  chartRef:
    kind: OCIRepository
    name: demo
  driftDetection:
    mode: enabled
  install:
    strategy:
      name: RetryOnFailure
      retryInterval: 5m
  values:
    anything: [goes, here]
`

const project = `apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata:
  name: demo
  namespace: argocd
  finalizers:
    - resources-finalizer.argocd.argoproj.io
spec:
  sourceRepos:
    - https://git.example.test/demo
`

const binding = `apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: team:view
  namespace: demo
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: view
subjects:
- apiGroup: rbac.authorization.k8s.io
  kind: Group
  name: team
`

const quota = `apiVersion: v1
kind: ResourceQuota
metadata:
  name: demo
  namespace: demo
spec:
  hard:
    pods: 10
`

const network = `apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: demo
  namespace: demo
spec:
  podSelector: {}
`

const external = `apiVersion: external-secrets.io/v1
kind: ExternalSecret
metadata:
  name: demo
  namespace: demo
spec:
  refreshInterval: 1h
  secretStoreRef:
    kind: ClusterSecretStore
    name: vault
  data:
  - secretKey: DB
    remoteRef:
      key: db
`

const class = `apiVersion: secrets-store.csi.x-k8s.io/v1
kind: SecretProviderClass
metadata:
  name: demo
  namespace: demo
spec:
  provider: azure
  parameters:
    keyvaultName: demo
`

const kustomization = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: []
`

func TestCheckAcceptsWhatAServerAccepts(t *testing.T) {
	all := []string{release, project, binding, quota, network, external, class, kustomization}
	n, err := crdtest.Check([]byte(strings.Join(all, "---\n")))
	if n != len(all) || err != nil {
		t.Errorf("%d objects, %v; want %d without an error", n, err, len(all))
	}
}

// A check is only useful if it finds these mistakes.
func TestCheckRefuses(t *testing.T) {
	for name, c := range map[string]struct{ object, from, to, want string }{
		"an unknown field":                 {release, "interval: 10m", "interval: 10m\n  intervall: 10m", "spec.intervall"},
		"an unknown metadata field":        {release, "name: demo\n  namespace", "name: demo\n  lables: {}\n  namespace", "metadata.lables"},
		"a value outside an enum":          {release, "mode: enabled", "mode: on-demand", "spec.driftDetection.mode"},
		"a value of a wrong type":          {release, "mode: enabled", "mode: true", "spec.driftDetection.mode"},
		"a broken pattern":                 {release, "interval: 10m", "interval: 1d", "spec.interval"},
		"a missing field":                  {release, "  interval: 10m\n", "", "spec.interval"},
		"a broken CEL rule":                {release, "chartRef:", "chart: {spec: {chart: x, sourceRef: {kind: HelmRepository, name: x}}}\n  chartRef:", "either chart or chartRef must be set"},
		"a broken nested CEL rule":         {release, "name: RetryOnFailure", "name: RemediateOnFailure", "retryInterval cannot be set"},
		"a version that is gone":           {release, "helm.toolkit.fluxcd.io/v2", "helm.toolkit.fluxcd.io/v2beta2", "no CRD here serves"},
		"a kind that is not there":         {release, "kind: HelmRelease", "kind: HelmReleases", "no CRD here serves"},
		"a field given twice":              {release, "interval: 10m", "interval: 10m\n  interval: 1m", "already set"},
		"a bad name":                       {release, "name: demo\n  namespace", "name: De_mo\n  namespace", "metadata.name"},
		"no namespace":                     {release, "  namespace: flux-system\n", "", "metadata.namespace"},
		"a bad finalizer":                  {project, "resources-finalizer.argocd.argoproj.io", "not a finalizer", "metadata.finalizers"},
		"no metadata":                      {project, "metadata:\n  name: demo\n  namespace: argocd\n  finalizers:\n    - resources-finalizer.argocd.argoproj.io\n", "", "metadata: Required"},
		"a list of a wrong type":           {project, "- https://git.example.test/demo", "- [https://git.example.test/demo]", "spec.sourceRepos"},
		"a built-in's unknown field":       {binding, "roleRef:", "rolRef: {}\nroleRef:", "rolRef"},
		"a built-in's field in other case": {network, "podSelector", "podselector", "podselector"},
		"a built-in's value of a type":     {quota, "pods: 10", "pods: [10]", "quantities"},
		"a built-in's quantity":            {quota, "pods: 10", "pods: ten", "quantities"},
		"a built-in's name":                {quota, "name: demo\n  namespace", "name: De_mo\n  namespace", "metadata.name"},
		"a built-in's annotations":         {quota, "name: demo\n", "name: demo\n  annotations: {a b: c}\n", "metadata.annotations"},
		"a built-in that is not there":     {quota, "kind: ResourceQuota", "kind: Quota", "no CRD here serves"},
		"an ExternalSecret's field":        {external, "  data:", "  datas:", "spec.datas"},
		"an ExternalSecret's enum":         {external, "kind: ClusterSecretStore", "kind: Store", "spec.secretStoreRef.kind"},
		"a class's value":                  {class, "keyvaultName: demo", "keyvaultName: 3", "spec.parameters.keyvaultName"},
		"a kustomization's unknown field":  {kustomization, "resources", "ressources: []\nresources", "ressources"},
		"an empty kustomization":           {kustomization, "resources: []", "", "resources"},
		"no object at all":                 {project, "kind: AppProject", "kin: AppProject", "no object"},
	} {
		t.Run(name, func(t *testing.T) {
			broken := strings.Replace(c.object, c.from, c.to, 1)
			if broken == c.object {
				t.Fatalf("the object holds no %q", c.from)
			}
			_, err := crdtest.Check([]byte(broken))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}
