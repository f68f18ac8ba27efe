package observe_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

// A real Argo CD removes workloads that it cannot sync once their retries are over, and then
// applies their successors. It syncs a workload that arrives before its definition by a retry. The
// tree is kalypso's, except its pauses of 3 minutes, which would take an hour.
func TestSlowArgoCDRemovesWhatFails(t *testing.T) {
	isolated.Long(t, "runs Argo CD")
	c := startConsumers(t, "argocd")
	if c == nil {
		return // make test-long says so
	}
	page, err := os.ReadFile("../../docs/reconcilers/argocd.md")
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile(`(?m)^kubectl .* NAME .*$`).Find(page)
	policy := regexp.MustCompile("(?s)```yaml\n(.*?kind: MutatingAdmissionPolicy\n.*?)```").FindSubmatch(page)
	if command == nil || policy == nil {
		t.Fatal("the page has no command, or no policy")
	}
	r := &removals{consumers: c, dir: t.TempDir()}
	r.prepare()

	retries := func(o *objectOf) bool { return o.Status.OperationState.RetryCount > 1 }
	failing := []string{"folder", "rendered", "fetched", "far-fetched"}
	r.build("2s", append(failing, "good")...)
	r.bootstrap("edge", "site")
	r.eventually("they fail", r.all(failing, "retries", retries))
	r.build("2s", "good", "after", "far-after")
	r.eventually("what fails is removed, and followed", r.settled("good", "after", "far-after"))

	r.build("2s", "good", "late", "far-late")
	late := []string{"late", "far-late"}
	r.eventually("their definition is late", r.all(late, "retries", retries))
	r.apply(definition)
	r.eventually("the definition came", r.settled("good", "late", "far-late"))

	r.build("2s", append(failing, "good")...)
	r.eventually("the retries are over", r.all(failing, "has failed for good", func(o *objectOf) bool {
		s := o.Status.OperationState
		return s.RetryCount == 24 && (s.Phase == "Failed" || s.Phase == "Error")
	}))
	r.build("2s", "good", "after", "far-after")
	r.eventually("what has failed is removed, and followed", r.settled("good", "after", "far-after"))

	r.build("3m", "good", "far-after", "fetched")
	r.eventually("it fails", r.all([]string{"fetched"}, "retries", retries))
	r.build("3m", "good", "far-after", "after")
	r.eventually("it waits", r.all([]string{"fetched"}, "is being deleted", func(o *objectOf) bool {
		return o.Metadata.DeletionTimestamp != ""
	}))
	r.run("sh", "-c", strings.ReplaceAll(string(command), "NAME", "prod-edge-fetched-main"))
	r.eventually("the command ended the retries", r.settled("good", "far-after", "after"))

	r.apply(string(policy[1]))
	r.build("3m", append(failing, "good")...)
	r.eventually("they fail again", r.all(failing, "retries", retries))
	r.build("3m", "good", "after", "far-after")
	r.eventually("the policy ended the retries", r.settled("good", "after", "far-after"))
}

// removals is a platform that adds and removes workloads. Workloads with far in their names go to
// site, from an ApplicationSet.
type removals struct {
	*consumers
	dir string
}

const definition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lates.example.com}
spec:
  group: example.com
  names: {kind: Late, plural: lates}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// prepare writes the platform and the manifests of workloads. It makes the API server refuse the
// namespace of folder, and registers the cluster of site at Argo CD.
func (r *removals) prepare() {
	r.Helper()
	files := map[string]string{
		"rendered/object.yaml": "apiVersion: example.com/v1\nkind: Never\nmetadata: {name: rendered}\n",
	}
	for _, name := range []string{"good", "after", "far-after", "folder"} {
		files[name+"/object.yaml"] = configMap(name)
	}
	for _, name := range []string{"fetched", "far-fetched"} {
		files[name+"/object.yaml"] = strings.Replace(configMap(name), "{a: b}", "7", 1)
	}
	for _, name := range []string{"late", "far-late"} {
		files[name+"/object.yaml"] = "apiVersion: example.com/v1\nkind: Late\nmetadata: {name: " + name + "}\n"
	}
	r.commit("apps", "main", files)
	r.run("git", "init", "-q", "--bare", filepath.Join(r.tmp, "tree.git"))
	r.write("cue.mod/module.cue", `module: "consumers.example/platform@v0"
language: version: "v0.17.0"
deps: "kalypso.io@v0": v: "v0.1.0"
`)
	r.write("platform.cue", `package platform

import "kalypso.io/schema"

environments:       schema.#Environments
clusterTypes:       schema.#ClusterTypes
clusters:           schema.#Clusters
workloads:          schema.#Workloads
schedulingPolicies: schema.#SchedulingPolicies
configs:            schema.#Configs
reconcilers:        schema.#Reconcilers

environments: prod: gitops: {repo: "`+gitops+`", branch: "prod"}
clusterTypes: {edge: reconciler: "main", site: reconciler: "central"}
clusters: {e1: clusterType: "edge", s1: clusterType: "site"}
reconcilers: {main: argocd: {}, central: argocd: clusters: "inventory"}
configs: all: {match: {}, values: GREETING: "hello"}
workloads: [Name=string]: {
	workspace: "team"
	deploymentTargets: main: {
		environment: "prod"
		manifests: git: {repo: "`+apps+`", branch: "main", path: "./\(Name)"}
	}
}
schedulingPolicies: {
	edge: {deploymentTargets: workload: !~"^far-", clusterTypes: name: "edge"}
	site: {deploymentTargets: workload: =~"^far-", clusterTypes: name: "site"}
}
`)
	r.apply(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: folder}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [namespaces]}]
  validations: [{expression: "object.metadata.name != 'prod-edge-folder-main'"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: folder}
spec: {policyName: folder, validationActions: [Deny]}
---
apiVersion: v1
kind: Secret
metadata: {name: s1, namespace: argocd, labels: {argocd.argoproj.io/secret-type: cluster}}
stringData:
  name: s1
  server: https://127.0.0.1:6443
  config: '{"bearerToken": "admin", "tlsClientConfig": {"insecure": true}}'
`)
}

func (r *removals) write(name, text string) {
	r.Helper()
	name = filepath.Join(r.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		r.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		r.Fatal(err)
	}
}

// apply applies objects as YAML.
func (r *removals) apply(objects string) {
	r.Helper()
	if out, err := r.try(objects, "kubectl", "apply", "--server-side", "-f", "-"); err != nil {
		r.Fatalf("%v\n%s\n%s", err, out, objects)
	}
}

// bootstrap applies the roots of cluster types.
func (r *removals) bootstrap(clusterTypes ...string) {
	r.Helper()
	for _, name := range clusterTypes {
		r.apply(r.run("kalypso", "bootstrap", "prod/"+name, "-C", r.dir))
	}
}

// build commits the tree of workloads to the GitOps branch, with a longest pause between retries.
func (r *removals) build(pause string, workloads ...string) {
	r.Helper()
	text := "package platform\n\n"
	for _, name := range workloads {
		text += fmt.Sprintf("workloads: %q: deploymentTargets: main: render: %v\n", name, name == "rendered")
	}
	r.write("workloads.cue", text)
	tree, work := filepath.Join(r.tmp, "tree.git"), r.TempDir()
	r.run("kalypso", "lock", "-C", r.dir)
	r.run("kalypso", "build", "prod", "-C", r.dir, "--git", tree, "--allow-removals")
	r.run("git", "clone", "-q", "-b", "prod", tree, work)
	err := fs.WalkDir(os.DirFS(work), ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(filepath.Join(work, name))
		if err != nil {
			return err
		}
		shorter := strings.ReplaceAll(string(text), "maxDuration: 3m", "maxDuration: "+pause)
		return os.WriteFile(filepath.Join(work, name), []byte(shorter), 0o644)
	})
	if err != nil {
		r.Fatal(err)
	}
	r.run("git", "-C", work, "commit", "-q", "-a", "--allow-empty", "-m", "Pauses")
	r.run("git", "-C", work, "push", "-q", "-f", r.repository("gitops"), "HEAD:prod")
}

// named makes Argo CD refresh all Applications, and returns them by name.
func (r *removals) named() map[string]*objectOf {
	r.Helper()
	// It fails if an Application is removed meanwhile.
	const refresh = "argocd.argoproj.io/refresh=hard"
	_, _ = r.try("", "kubectl", "-n", "argocd", "annotate", "applications.argoproj.io", "--all", "--overwrite", refresh)
	out := map[string]*objectOf{}
	for _, o := range r.objects("applications.argoproj.io") {
		out[o.Metadata.Name] = &o
	}
	return out
}

// nameOf returns the name of the Application that fails if a workload fails.
func nameOf(workload string) string {
	switch {
	case strings.HasPrefix(workload, "far-"):
		return "prod-site-" + workload + "-main-s1"
	case workload == "rendered" || workload == "folder":
		return "prod-edge-" + workload + "-main-assignment"
	}
	return "prod-edge-" + workload + "-main"
}

// all returns "" once a condition holds for the Applications of some workloads.
func (r *removals) all(workloads []string, what string, holds func(o *objectOf) bool) func() string {
	return func() string {
		all := r.named()
		for _, name := range workloads {
			if o := all[nameOf(name)]; o == nil || !holds(o) {
				return fmt.Sprintf("%s: not so yet: %s: %+v", nameOf(name), what, o)
			}
		}
		return ""
	}
}

// settled returns "" once there are only the Applications of the roots and of workloads, and all
// are synced.
func (r *removals) settled(workloads ...string) func() string {
	return func() string {
		all := r.named()
		for _, name := range workloads {
			if all[nameOf(name)] == nil {
				return fmt.Sprintf("%s is not there; there are %v", nameOf(name), slices.Sorted(maps.Keys(all)))
			}
		}
		for name, o := range all {
			name = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "-s1"), "-assignment"), "-main")
			_, workload, _ := strings.Cut(strings.TrimPrefix(name, "prod-"), "-")
			wanted := strings.HasPrefix(name, "kalypso-") || slices.Contains(workloads, workload)
			if s := o.Status; s.Sync.Status != "Synced" || s.Health.Status != "Healthy" || !wanted {
				return fmt.Sprintf("%s: %+v", o.Metadata.Name, s)
			}
		}
		return ""
	}
}
