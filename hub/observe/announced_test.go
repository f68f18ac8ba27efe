package observe_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/compiler/compare"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

// A real Flux makes exactly the changes on its cluster that diff announced.
func TestSlowFluxDoesWhatDiffSays(t *testing.T) {
	isolated.Long(t, "runs Flux")
	c := startConsumers(t, "flux")
	if c == nil {
		return // make test-long says so
	}
	w := &walk{consumers: c}
	w.pull = func() {
		c.run("kubectl", "-n", "flux-system", "annotate", "gitrepositories.source.toolkit.fluxcd.io", "--all", "--overwrite", "reconcile.fluxcd.io/requestedAt="+time.Now().Format(time.RFC3339Nano))
	}
	w.settled = func(commit, root string) string {
		for _, o := range c.objects("kustomizations.kustomize.toolkit.fluxcd.io") {
			ready := slices.ContainsFunc(o.Status.Conditions, func(is conditionOf) bool { return is.Type == "Ready" && is.Status == "True" })
			if root != "" && root != o.Metadata.Name {
				continue
			}
			ofTree := o.Metadata.Name == w.root || strings.HasSuffix(o.Metadata.Name, "-assignment")
			if !ready || ofTree && !strings.HasSuffix(o.Status.LastAppliedRevision, commit) {
				return fmt.Sprintf("Kustomization %s: %+v", o.Metadata.Name, o.Status)
			}
		}
		return ""
	}
	w.removeRoot = func(former string) {
		c.run("kubectl", "-n", "flux-system", "delete", "kustomizations.kustomize.toolkit.fluxcd.io", former)
		c.run("kubectl", "-n", "flux-system", "delete", "gitrepositories.source.toolkit.fluxcd.io", former)
	}
	w.all(`flux: {interval: "1m", timeout: "20s"}`)
}

// A real Argo CD makes exactly the changes on its cluster that diff announced.
func TestSlowArgoCDDoesWhatDiffSays(t *testing.T) {
	isolated.Long(t, "runs Argo CD")
	c := startConsumers(t, "argocd")
	if c == nil {
		return // make test-long says so
	}
	w := &walk{consumers: c}
	w.pull = func() { // several times, because it fails if an Application is removed meanwhile
		_, _ = c.try("", "kubectl", "-n", "argocd", "annotate", "applications.argoproj.io", "--all", "--overwrite", "argocd.argoproj.io/refresh=hard")
	}
	w.settled = func(commit, root string) string {
		w.pull()
		for _, o := range c.objects("applications.argoproj.io") {
			if root != "" && root != o.Metadata.Name {
				continue
			}
			ofTree := o.Metadata.Name == w.root || strings.HasSuffix(o.Metadata.Name, "-assignment")
			if s := o.Status; s.Sync.Status != "Synced" || s.Health.Status != "Healthy" || ofTree && s.Sync.Revision != commit {
				return fmt.Sprintf("Application %s: %+v", o.Metadata.Name, s)
			}
		}
		return ""
	}
	w.removeRoot = func(former string) { // as argocd app delete --cascade=false does
		c.run("kubectl", "-n", "argocd", "patch", "applications.argoproj.io", former, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
		c.run("kubectl", "-n", "argocd", "delete", "applications.argoproj.io", former)
		c.run("kubectl", "-n", "argocd", "delete", "appprojects.argoproj.io", former)
	}
	w.all("argocd: {}")
}

// walk is a platform that changes step by step, and its real cluster e1.
type walk struct {
	*consumers
	dir  string // of the platform, whose HEAD is built
	root string // the name of the root that bootstrap printed last
	// pull makes the reconciler look for a new commit.
	pull func()
	// settled returns "" once the reconciler has applied a commit, and otherwise the object that
	// still lacks it. If root is not "", it checks only the root of that name.
	settled func(commit, root string) string
	// removeRoot removes a root that has a replacement.
	removeRoot func(name string)
}

// step is a change of the platform's files. announced has the entries of the report that name e1.
type step struct {
	name      string
	files     map[string]string
	announced string // such as "+other-main ~hello-main -old-main"
	// allow means that diff and build refuse the change without --allow-removals.
	allow bool
	// moves means that e1 gets a different cluster type.
	moves bool
}

// pair is the content of a deployment target on the real cluster.
type pair struct {
	Namespace live
	Config    live
	Values    map[string]string
	Workload  live // the object from the application's repository
}

// live is an object of the API server, without the notes of reconcilers.
type live struct {
	Name, UID   string
	Labels      map[string]string
	Annotations map[string]string
}

const header = "package platform\n\n"

// clusters returns the file of the clusters. The text has the type and the labels of e1.
func clusters(e1 string) map[string]string {
	return map[string]string{"clusters.cue": header + "clusters: {\n\te1: {" + e1 + `}
	e2: clusterType: "edge"
	e3: {clusterType: "edge", labels: tier: "gold"}
	e4: clusterType: "edge"
	c1: clusterType: "core"
}
`}
}

// steps are the changes. Each starts from the result of the one before.
func steps() []step {
	config := func(values string) map[string]string {
		return map[string]string{"environments/prod/config.cue": header + "configs: all: {match: {}, values: {" + values + "}}\n"}
	}
	deny := func(names string) map[string]string {
		if names == "" {
			return map[string]string{"deny.cue": ""}
		}
		return map[string]string{"deny.cue": header + "schedulingPolicies: no: {deny: true, deploymentTargets: workload: \"other\", clusterTypes: {}, clusters: name: " + names + "}\n"}
	}
	workloads := func(list string) map[string]string {
		return map[string]string{"workloads.cue": header + "workloads: {" + list + "}\n"}
	}
	const (
		hello   = `hello: deploymentTargets: main: {}, `
		other   = `other: deploymentTargets: main: {}, `
		extra   = `extra: deploymentTargets: main: {}, `
		renamed = `extra: deploymentTargets: live: {}, `
		scanner = `scanner: deploymentTargets: gold: {}, `
	)
	namespaces := func(text string) map[string]string {
		return map[string]string{"namespaces.cue": header + "import \"kalypso.io/schema\"\n\nnamespaceServices: default: {" + text + "}\n"}
	}
	const pattern = `#assignment: schema.#Assignment, pattern: "team-\(#assignment.deploymentTarget)"`
	return []step{
		{name: "a workload is created", files: workloads(hello + other + extra + scanner), announced: "+extra-main"},
		{name: "a value is updated", files: config(`GREETING: "good morning", LEVEL: "info"`), announced: "~extra-main ~hello-main ~other-main"},
		{name: "values go and come", files: config(`GREETING: "good morning", DEPTH: 3`), announced: "~extra-main ~hello-main ~other-main"},
		{name: "a policy takes a workload from another cluster", files: deny(`"e2"`)},
		{name: "it takes it from the cluster too", files: deny(`"e1" | "e2"`), announced: "-other-main"},
		{name: "the class is removed again", files: deny(""), announced: "+other-main"},
		{name: "a deployment target is renamed", files: workloads(hello + other + renamed + scanner), announced: "+extra-live -extra-main"},
		{name: "a label changes the class", files: clusters(`clusterType: "edge", labels: tier: "gold"`), announced: "+scanner-gold ~extra-live ~hello-main ~other-main"},
		{name: "the label goes", files: clusters(`clusterType: "edge"`), announced: "-scanner-gold ~extra-live ~hello-main ~other-main"},
		{name: "another cluster type", files: clusters(`clusterType: "core"`), announced: "~extra-live ~hello-main ~other-main", moves: true},
		{name: "another pattern of namespaces", files: namespaces(pattern), announced: "~extra-live ~hello-main ~other-main", allow: true},
		{name: "namespaces are left", files: namespaces(pattern + `, deletion: "orphan"`), announced: "~extra-live ~hello-main ~other-main"},
		{name: "a workload goes, and its namespace stays", files: workloads(hello + other + scanner), announced: "-extra-live"},
	}
}

// all applies all steps to the platform and the cluster.
func (w *walk) all(reconciler string) {
	w.Helper()
	apps := map[string]string{}
	for _, name := range []string{"hello", "other", "extra", "scanner"} {
		apps[name+"/object.yaml"] = configMap(name)
	}
	w.commit("apps", "main", apps)
	w.dir = w.TempDir()
	w.run("git", "-C", w.dir, "init", "-q")
	first := map[string]string{
		"cue.mod/module.cue":           "module: \"consumers.example/platform@v0\"\nlanguage: version: \"v0.17.0\"\ndeps: \"kalypso.io@v0\": v: \"v0.1.0\"\n",
		"platform.cue":                 platformText(reconciler),
		"environments/prod/config.cue": header + "configs: all: {match: {}, values: GREETING: \"hello\"}\n",
		"workloads.cue":                header + "workloads: {hello: deploymentTargets: main: {}, other: deploymentTargets: main: {}, scanner: deploymentTargets: gold: {}}\n",
	}
	maps.Copy(first, clusters(`clusterType: "edge"`))
	w.write(first)
	commit := w.build(false)
	w.bootstrap("kalypso-prod-edge")
	is := w.arrives("what there is at first", commit, func(is map[string]pair) string {
		if got := slices.Sorted(maps.Keys(is)); !slices.Equal(got, []string{"hello-main", "other-main"}) {
			return fmt.Sprintf("there is %v", got)
		}
		return ""
	})
	for _, s := range steps() {
		is = w.step(s, is)
	}
}

func platformText(reconciler string) string {
	return `package platform

import "kalypso.io/schema"

environments:       schema.#Environments
clusterTypes:       schema.#ClusterTypes
clusters:           schema.#Clusters
workloads:          schema.#Workloads
schedulingPolicies: schema.#SchedulingPolicies
configs:            schema.#Configs
reconcilers:        schema.#Reconcilers
namespaceServices:  schema.#NamespaceServices

environments: prod: gitops: {repo: "` + gitops + `", branch: "prod"}
environments: prod: removals: max: "34%"
clusterTypes: {
	edge: {reconciler: "main", entries: "cluster"}
	core: {reconciler: "main", entries: "cluster"}
}
reconcilers: main: ` + reconciler + `
workloads: [Name=string]: {
	workspace: "team"
	deploymentTargets: [string]: {
		environment: "prod"
		manifests: git: {repo: "` + apps + `", branch: "main", path: "./\(Name)"}
	}
}
schedulingPolicies: {
	all: {deploymentTargets: workload: !="scanner", clusterTypes: {}}
	gold: {deploymentTargets: workload: "scanner", clusterTypes: {}, clusters: labels: tier: "gold"}
}
configs: gold: {match: {}, clusters: labels: tier: "gold", values: TIER: "gold"}
`
}

// step announces a change, applies it to the cluster, and waits until the cluster matches the
// announcement. It returns the content of the cluster then.
func (w *walk) step(s step, before map[string]pair) map[string]pair {
	w.Helper()
	w.write(s.files)
	r := w.diff(s.allow)
	if got := announced(r); got != s.announced {
		w.Fatalf("%s: diff announces %q, want %q", s.name, got, s.announced)
	}
	commit := w.build(s.allow)
	if s.moves {
		former := w.root
		w.bootstrap("kalypso-prod-core")
		w.pull()
		w.eventually(s.name+": the new root", func() string { return w.settled(commit, w.root) })
		w.removeRoot(former)
	}
	return w.arrives(s.name, commit, func(is map[string]pair) string { return differs(r, before, is) })
}

// write writes files of the platform, and removes those without a text.
func (w *walk) write(files map[string]string) {
	w.Helper()
	for name, text := range files {
		name = filepath.Join(w.dir, filepath.FromSlash(name))
		if text == "" {
			if err := os.Remove(name); err != nil {
				w.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			w.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			w.Fatal(err)
		}
	}
}

// diff returns the report of kalypso diff about the change. It runs diff against the commit before
// and against the reconciler's tree, which must announce the same.
func (w *walk) diff(allow bool) *compare.Report {
	w.Helper()
	tree := w.TempDir()
	w.run("git", "clone", "-q", "-b", "prod", w.repository("gitops"), tree)
	args := []string{"diff", "-C", w.dir, "-o", "json"}
	var reports []*compare.Report
	for _, more := range [][]string{{"HEAD", "--against", tree}, {tree}} {
		all := slices.Concat(args, more)
		if allow {
			if _, err := w.try("", "kalypso", all...); err == nil || !strings.Contains(err.Error(), "K4005") {
				w.Fatalf("kalypso %v does not need --allow-removals: %v", all, err)
			}
			all = append(all, "--allow-removals")
		}
		r := &compare.Report{}
		if err := json.Unmarshal([]byte(w.run("kalypso", all...)), r); err != nil {
			w.Fatal(err)
		}
		reports = append(reports, r)
	}
	for _, of := range []func(r *compare.Report) []compare.Entry{
		func(r *compare.Report) []compare.Entry { return r.Removed },
		func(r *compare.Report) []compare.Entry { return r.Added },
		func(r *compare.Report) []compare.Entry { return r.Changed },
	} {
		if a, b := indented(of(reports[0])), indented(of(reports[1])); a != b {
			w.Errorf("since HEAD diff announces\n%s\nand since the tree\n%s", a, b)
		}
	}
	return reports[0]
}

func indented(of any) string {
	out, err := json.MarshalIndent(of, "", "  ")
	if err != nil {
		panic(err)
	}
	return string(out)
}

// build builds the platform into the GitOps branch, commits the platform, and returns the
// branch's commit.
func (w *walk) build(allow bool) string {
	w.Helper()
	args := []string{"build", "prod", "-C", w.dir, "--git", w.repository("gitops")}
	if allow {
		if _, err := w.try("", "kalypso", args...); err == nil || !strings.Contains(err.Error(), "K4005") {
			w.Fatalf("kalypso %v does not need --allow-removals: %v", args, err)
		}
		args = append(args, "--allow-removals")
	}
	w.run("kalypso", args...)
	w.run("git", "-C", w.dir, "add", "-A")
	w.run("git", "-C", w.dir, "commit", "-q", "-m", "Change")
	return strings.TrimSpace(w.run("git", "-C", w.repository("gitops"), "rev-parse", "prod"))
}

// bootstrap applies the manifests that let the cluster pull its tree. root is the name of their
// root.
func (w *walk) bootstrap(root string) {
	w.Helper()
	w.root = root
	objects := w.run("kalypso", "bootstrap", "cluster", "prod/e1", "-C", w.dir)
	if out, err := w.try(objects, "kubectl", "apply", "--server-side", "-f", "-"); err != nil {
		w.Fatalf("%v\n%s\n%s", err, out, objects)
	}
}

// arrives waits until the cluster has applied a commit and is as wanted. wants returns the
// difference, or "" if there is no difference.
func (w *walk) arrives(name, commit string, wants func(is map[string]pair) string) (is map[string]pair) {
	w.Helper()
	w.pull()
	w.eventually(name, func() string {
		if missing := w.settled(commit, ""); missing != "" {
			return missing
		}
		var unclear string
		if is, unclear = w.pairs(); unclear != "" {
			return unclear
		}
		return wants(is)
	})
	return is
}

// pairs returns the deployment targets on the cluster, by their full names. If they are not known
// yet, the second result is the reason. A namespace whose assignment was removed has "orphan "
// before its name.
func (w *walk) pairs() (map[string]pair, string) {
	w.Helper()
	type item struct {
		Metadata struct {
			Name, Namespace, UID string
			Labels, Annotations  map[string]string
			DeletionTimestamp    string
		}
		Data map[string]string
	}
	list := func(kind string) []item {
		var found struct{ Items []item }
		if err := json.Unmarshal([]byte(w.run("kubectl", "get", kind, "-A", "-o", "json")), &found); err != nil {
			w.Fatal(err)
		}
		return found.Items
	}
	objectOf := func(i item) live {
		o := live{i.Metadata.Name, i.Metadata.UID, i.Metadata.Labels, i.Metadata.Annotations}
		for _, of := range []map[string]string{o.Labels, o.Annotations} {
			maps.DeleteFunc(of, func(key, _ string) bool {
				return strings.Contains(key, "toolkit.fluxcd.io/n") || key == "argocd.argoproj.io/tracking-id" || key == "kalypso.io/values" || strings.HasPrefix(key, "kubectl.")
			})
		}
		return o
	}
	out := map[string]pair{}
	target := map[string]string{} // by namespace
	for _, n := range list("namespaces") {
		assignment, ours := n.Metadata.Annotations["kalypso.io/assignment"]
		if !ours {
			continue
		}
		if n.Metadata.DeletionTimestamp != "" {
			return nil, "namespace " + n.Metadata.Name + " is being deleted"
		}
		name := assignment[strings.LastIndex(assignment, "/")+1:]
		if _, twice := out[name]; twice {
			return nil, "there are two namespaces of " + name
		}
		target[n.Metadata.Name], out[name] = name, pair{Namespace: objectOf(n)}
	}
	for _, m := range list("configmaps") {
		name, ours := target[m.Metadata.Namespace]
		p := out[name]
		switch {
		case !ours || m.Metadata.Name == "kube-root-ca.crt":
			continue
		case m.Metadata.Name == "platform-config":
			p.Config, p.Values = objectOf(m), m.Data
		default:
			p.Workload = objectOf(m)
		}
		out[name] = p
	}
	return out, ""
}

// announced returns the deployment targets of e1 that a report adds, removes and changes.
func announced(r *compare.Report) string {
	var out []string
	for _, of := range []struct {
		sign    string
		entries []compare.Entry
	}{{"+", r.Added}, {"-", r.Removed}, {"~", r.Changed}} {
		for _, e := range of.entries {
			if slices.Contains(e.Clusters, "e1") {
				out = append(out, of.sign+e.DeploymentTarget)
			}
		}
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), " ")
}

// differs returns the differences between the cluster and its former state with the announced
// changes.
func differs(r *compare.Report, before, is map[string]pair) string {
	var out []string
	complain := func(target, format string, args ...any) {
		out = append(out, target+": "+fmt.Sprintf(format, args...))
	}
	want := maps.Clone(before) // the former objects that must remain
	gone := map[string]bool{}  // namespaces
	added := map[string]bool{}
	anew := map[string]bool{} // targets that get a different namespace
	// free are the objects whose labels and annotations may change, by deployment target.
	free := map[string][]string{}
	on := func(entries []compare.Entry, do func(e *compare.Entry)) {
		for i := range entries {
			if slices.Contains(entries[i].Clusters, "e1") {
				do(&entries[i])
			}
		}
	}
	on(r.Removed, func(e *compare.Entry) {
		for _, n := range e.Namespaces {
			gone[n] = true
		}
		p := want[e.DeploymentTarget]
		if gone[p.Namespace.Name] {
			delete(want, e.DeploymentTarget)
			return
		}
		// The namespace remains, and the objects of the assignment in it are removed.
		p.Config, p.Values, p.Workload = live{}, nil, live{}
		want[e.DeploymentTarget] = p
	})
	on(r.Added, func(e *compare.Entry) { added[e.DeploymentTarget] = true })
	on(r.Changed, func(e *compare.Entry) {
		p := want[e.DeploymentTarget]
		p.Values = maps.Clone(p.Values)
		for _, v := range e.Values {
			if v.To == nil {
				delete(p.Values, v.Path)
				continue
			}
			var text string
			if json.Unmarshal(v.To, &text) != nil {
				text = string(v.To)
			}
			p.Values[v.Path] = text
		}
		want[e.DeploymentTarget] = p
		for _, n := range e.Namespaces {
			gone[n] = true
		}
		anew[e.DeploymentTarget] = anew[e.DeploymentTarget] || gone[p.Namespace.Name]
		free[e.DeploymentTarget] = append(free[e.DeploymentTarget], e.Objects...)
	})
	for name, p := range is {
		switch was, known := want[name]; {
		case gone[p.Namespace.Name]:
			complain(name, "namespace %s is there, which was announced to go", p.Namespace.Name)
		case added[name]:
			if p.Config.Name == "" || p.Workload.Name == "" {
				complain(name, "was announced, and is %+v", p)
			}
			delete(added, name)
		case !known:
			complain(name, "is there, and was not announced: %+v", p)
		case !maps.Equal(p.Values, was.Values):
			complain(name, "has the values %v, and those announced are %v", p.Values, was.Values)
		case anew[name]:
			if p.Namespace.UID == was.Namespace.UID || p.Config.UID == was.Config.UID || p.Workload.UID == was.Workload.UID {
				complain(name, "is not anew in the namespace %s", p.Namespace.Name)
			}
		default:
			for _, o := range []struct {
				kind    string
				was, is live
			}{{"Namespace", was.Namespace, p.Namespace}, {"ConfigMap", was.Config, p.Config}, {"ConfigMap", was.Workload, p.Workload}} {
				if o.was.UID != o.is.UID {
					complain(name, "%s %s was replaced, and that was not announced", o.kind, cmp.Or(o.is.Name, o.was.Name))
				} else if same := maps.Equal(o.was.Labels, o.is.Labels) && maps.Equal(o.was.Annotations, o.is.Annotations); !same && !slices.Contains(free[name], o.kind+" "+o.is.Name) {
					complain(name, "%s has other labels or annotations, and that was not announced (%q): %v, before %v", o.kind, free[name], o.is, o.was)
				}
			}
		}
		delete(want, name)
	}
	for name := range added {
		complain(name, "was announced, and is not there")
	}
	for name := range want {
		complain(name, "is gone, and that was not announced")
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// Both an unannounced change on a cluster and a missing announced one are found.
func TestDiffers(t *testing.T) {
	of := func(name, uid, level string) pair {
		o := live{Name: name, UID: uid}
		return pair{Namespace: o, Config: o, Workload: o, Values: map[string]string{"LEVEL": level}}
	}
	before := map[string]pair{"a": of("ns-a", "1", "info"), "b": of("ns-b", "2", "info")}
	entry := func(target string, change func(e *compare.Entry)) []compare.Entry {
		e := compare.Entry{DeploymentTarget: target, Clusters: []string{"e1"}}
		if change != nil {
			change(&e)
		}
		return []compare.Entry{e}
	}
	goes := func(namespace string) func(e *compare.Entry) {
		return func(e *compare.Entry) { e.Namespaces = []string{namespace} }
	}
	warns := func(e *compare.Entry) {
		e.Values = []compare.Value{{Path: "LEVEL", From: json.RawMessage(`"info"`), To: json.RawMessage(`"warn"`)}}
	}
	left := of("ns-b", "2", "")
	left.Config, left.Workload, left.Values = live{}, live{}, nil
	annotated := of("ns-b", "2", "info")
	annotated.Namespace.Annotations = map[string]string{"a": "b"}
	for name, c := range map[string]struct {
		report *compare.Report
		is     map[string]pair
		want   string // part of the difference, or ""
	}{
		"nothing":                  {&compare.Report{}, before, ""},
		"a removal":                {&compare.Report{Removed: entry("b", goes("ns-b"))}, map[string]pair{"a": before["a"]}, ""},
		"a silent removal":         {&compare.Report{}, map[string]pair{"a": before["a"]}, "b: is gone"},
		"a removal that fails":     {&compare.Report{Removed: entry("b", goes("ns-b"))}, before, "which was announced to go"},
		"a namespace that stays":   {&compare.Report{Removed: entry("b", nil)}, map[string]pair{"a": before["a"], "b": left}, ""},
		"one that does not":        {&compare.Report{Removed: entry("b", nil)}, map[string]pair{"a": before["a"]}, "b: is gone"},
		"an addition":              {&compare.Report{Added: entry("c", nil)}, map[string]pair{"a": before["a"], "b": before["b"], "c": of("ns-c", "3", "info")}, ""},
		"a silent addition":        {&compare.Report{}, map[string]pair{"a": before["a"], "b": before["b"], "c": of("ns-c", "3", "info")}, "was not announced"},
		"an addition that fails":   {&compare.Report{Added: entry("c", nil)}, before, "c: was announced, and is not there"},
		"a value":                  {&compare.Report{Changed: entry("b", warns)}, map[string]pair{"a": before["a"], "b": of("ns-b", "2", "warn")}, ""},
		"another value":            {&compare.Report{Changed: entry("b", warns)}, map[string]pair{"a": before["a"], "b": of("ns-b", "2", "error")}, "b: has the values"},
		"a silent value":           {&compare.Report{}, map[string]pair{"a": before["a"], "b": of("ns-b", "2", "warn")}, "b: has the values"},
		"a silent replacement":     {&compare.Report{}, map[string]pair{"a": before["a"], "b": of("ns-b", "3", "info")}, "b: Namespace ns-b was replaced"},
		"another namespace":        {&compare.Report{Changed: entry("b", goes("ns-b"))}, map[string]pair{"a": before["a"], "b": of("ns-new", "3", "info")}, ""},
		"a silent other one":       {&compare.Report{Changed: entry("b", nil)}, map[string]pair{"a": before["a"], "b": of("ns-new", "3", "info")}, "b: Namespace ns-new was replaced"},
		"a silent annotation":      {&compare.Report{}, map[string]pair{"a": before["a"], "b": annotated}, "b: Namespace has other labels or annotations"},
		"an annotation":            {&compare.Report{Changed: entry("b", func(e *compare.Entry) { e.Objects = []string{"Namespace ns-b"} })}, map[string]pair{"a": before["a"], "b": annotated}, ""},
		"a removal on another one": {&compare.Report{Removed: []compare.Entry{{DeploymentTarget: "b", Clusters: []string{"e2"}}}}, before, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := differs(c.report, before, c.is); got != c.want && (c.want == "" || !strings.Contains(got, c.want)) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
