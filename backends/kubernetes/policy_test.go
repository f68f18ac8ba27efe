package kubernetes

import (
	"bytes"
	"context"
	"slices"
	"testing"

	v1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
	kyaml "sigs.k8s.io/yaml"

	celgo "github.com/google/cel-go/cel"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// The accounts of the tests: folders applies folders, charts applies charts, and fetching applies
// the fetched objects of one assignment.
const (
	folders  = "system:serviceaccount:flux-system:kustomize-controller"
	charts   = "system:serviceaccount:flux-system:helm-controller"
	fetching = "system:serviceaccount:flux-system:shop-live.workload"
)

var fluxAccounts = backends.Accounts{
	Folders:    []backends.Account{{Namespace: "flux-system", Name: "kustomize-controller"}},
	Fetched:    []backends.Account{{Namespace: "flux-system", Name: "helm-controller"}},
	Namespaces: []string{"flux-system"},
}

// admits is a policy as an API server evaluates it.
type admits struct {
	*v1.ValidatingAdmissionPolicy
	conditions, validations, messages admissioncel.ConditionEvaluator
	compiler                          *admissioncel.CompositedCompiler
}

// expression is one of a policy.
type expression struct {
	name, text string
	returns    *celgo.Type
}

func (e expression) GetExpression() string      { return e.text }
func (e expression) GetName() string            { return e.name }
func (e expression) ReturnTypes() []*celgo.Type { return []*celgo.Type{e.returns} }

// policyOf returns the policy of a team, and fails the test without one.
func policyOf(t *testing.T, bounds ...*model.Workspace) admits {
	t.Helper()
	stream := Policies(&backends.ClusterType{Environment: "dev", Name: "large"}, fluxAccounts, []Team{{"app-team", bounds}})
	docs := bytes.Split(stream, []byte("---\n"))
	if len(docs) != 2 {
		t.Fatalf("want a policy and its binding, got:\n%s", stream)
	}
	a := admits{ValidatingAdmissionPolicy: &v1.ValidatingAdmissionPolicy{}}
	binding := &v1.ValidatingAdmissionPolicyBinding{}
	for i, into := range []any{a.ValidatingAdmissionPolicy, binding} {
		if err := kyaml.UnmarshalStrict(docs[i], into); err != nil {
			t.Fatal(err)
		}
	}
	if binding.Spec.PolicyName != a.Name || !slices.Equal(binding.Spec.ValidationActions, []v1.ValidationAction{v1.Deny}) {
		t.Errorf("the binding is of %s: %v", binding.Spec.PolicyName, binding.Spec.ValidationActions)
	}
	compiler, err := admissioncel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	a.compiler = compiler
	for _, v := range a.Spec.Variables {
		if r := compiler.CompileAndStoreVariable(expression{v.Name, v.Expression, celgo.AnyType}, admissioncel.OptionalVariableDeclarations{}, environment.NewExpressions); r.Error != nil {
			t.Fatalf("%s: %v", v.Name, r.Error)
		}
	}
	compile := func(list []admissioncel.ExpressionAccessor) admissioncel.ConditionEvaluator {
		out := compiler.CompileCondition(list, admissioncel.OptionalVariableDeclarations{}, environment.NewExpressions)
		if errs := out.CompilationErrors(); len(errs) > 0 {
			t.Fatal(errs)
		}
		return out
	}
	var conditions, validations, messages []admissioncel.ExpressionAccessor
	for _, c := range a.Spec.MatchConditions {
		conditions = append(conditions, expression{text: c.Expression, returns: celgo.BoolType})
	}
	for _, v := range a.Spec.Validations {
		validations = append(validations, expression{text: v.Expression, returns: celgo.BoolType})
		messages = append(messages, expression{text: v.MessageExpression, returns: celgo.StringType})
	}
	a.conditions, a.validations, a.messages = compile(conditions), compile(validations), compile(messages)
	return a
}

// denies returns the messages of an API server that does not let a user apply an object.
func (a admits) denies(t *testing.T, username string, object map[string]any) (out []string) {
	t.Helper()
	o := &unstructured.Unstructured{Object: object}
	kind := o.GroupVersionKind()
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	attributes := admission.NewAttributesRecord(o, nil, kind, o.GetNamespace(), o.GetName(), resource, "", admission.Create, &metav1.CreateOptions{}, false, &user.DefaultInfo{Name: username})
	request := admissioncel.CreateAdmissionRequest(attributes, metav1.GroupVersionResource(resource), metav1.GroupVersionKind(kind))
	versioned := &admission.VersionedAttributes{Attributes: attributes, VersionedKind: kind, VersionedObject: admission.NewLazyObject(o)}
	evaluate := func(c admissioncel.ConditionEvaluator) []admissioncel.EvaluationResult {
		results, _, err := c.ForInput(a.compiler.CreateContext(context.Background()), versioned, request, admissioncel.OptionalVariableBindings{}, nil, celconfig.RuntimeCELCostBudget)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			if r.Error != nil {
				t.Fatal(r.Error)
			}
		}
		return results
	}
	if !a.matches(kind) || evaluate(a.conditions)[0].EvalResult.Value() != true {
		return nil
	}
	messages := evaluate(a.messages)
	for i, r := range evaluate(a.validations) {
		if r.EvalResult.Value() != true {
			out = append(out, messages[i].EvalResult.Value().(string))
		}
	}
	return out
}

// matches reports whether a rule covers objects of a kind.
func (a admits) matches(kind schema.GroupVersionKind) bool {
	scope := v1.NamespacedScope
	if clusterScoped(kind.Group, kind.Kind) {
		scope = v1.ClusterScope
	}
	return slices.ContainsFunc(a.Spec.MatchConstraints.ResourceRules, func(r v1.NamedRuleWithOperations) bool {
		return *r.Scope == scope && (r.Resources[0] == "*" || kind.Kind == "Namespace")
	})
}

// bounded returns a workspace that allows some kinds of namespaced objects.
func bounded(kinds ...string) *model.Workspace {
	w := &model.Workspace{Name: "app-team"}
	w.Objects.Namespaced = kinds
	w.Complete()
	return w
}

// applied returns an object in a namespace.
func applied(apiVersion, kind, name string, labels, annotations map[string]any) map[string]any {
	return map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name, "namespace": "n", "labels": labels, "annotations": annotations}}
}

// A policy allows the kinds that the patterns of the workspace do.
func TestPolicyKinds(t *testing.T) {
	kinds := [][2]string{{"v1", "ConfigMap"}, {"v1", "ConfigMapX"}, {"v1", "Secret"}, {"apps/v1", "Deployment"}, {"apps/v1", "DaemonSet"}, {"apps.example.com/v1", "Deployment"}, {"example.com/v1", "Widget"}}
	for _, patterns := range [][]string{
		{}, {"ConfigMap"}, {"*Map"}, {"apps/*"}, {"apps*"}, {"apps/D*t"}, {"*", "!Secret"}, {"*", "!apps/*", "!*idget"},
		{"ConfigMap", "apps/*", "!apps/Dae*"}, {"!Secret"}, {"app./Deployment", "example.com/Widget"},
	} {
		policy := policyOf(t, bounded(patterns...))
		for _, k := range kinds {
			name := k[1]
			if g := group(k[0]); g != "" {
				name = g + "/" + k[1]
			}
			denied := policy.denies(t, fetching, applied(k[0], k[1], "x", nil, nil))
			if allowed := model.Patterns(patterns).Allow(name); allowed != (len(denied) == 0) {
				t.Errorf("%q allow %s: %v, and the policy says %q", patterns, name, allowed, denied)
			}
		}
	}
	denied := policyOf(t, bounded("ConfigMap")).denies(t, fetching, applied("apps/v1", "Deployment", "x", nil, nil))
	if want := `workspace app-team may not bring apps/Deployment: leave it out, or let the platform allow it: workspaces: "app-team": objects: namespaced`; !slices.Equal(denied, []string{want}) {
		t.Errorf("got %q", denied)
	}
}

// A policy and the build agree about labels, hooks and kept objects.
func TestPolicyMetadata(t *testing.T) {
	no := false
	w := bounded("*")
	w.RequiredLabels, w.Reconciler.Hooks, w.Reconciler.Keep = []string{"owner", "team"}, &no, &no
	policy := policyOf(t, w)
	for _, c := range []struct {
		labels, annotations map[string]any
		denied              int
	}{
		{nil, nil, 1},
		{map[string]any{"owner": "me", "team": ""}, nil, 1},
		{map[string]any{"owner": "me", "team": "us"}, nil, 0},
		{map[string]any{"owner": "me", "team": "us"}, map[string]any{"helm.sh/hook": "test"}, 1},
		{map[string]any{"owner": "me", "team": "us"}, map[string]any{"argocd.argoproj.io/hook": "Sync"}, 1},
		{map[string]any{"owner": "me", "team": "us"}, map[string]any{"argocd.argoproj.io/sync-options": "Replace=true, Delete=false"}, 1},
		{map[string]any{"owner": "me", "team": "us"}, map[string]any{"argocd.argoproj.io/sync-options": "Replace=true,Prune=true"}, 0},
		{map[string]any{"owner": "me", "team": "us"}, map[string]any{"helm.sh/resource-policy": " Keep"}, 1},
		{map[string]any{"owner": "me", "team": "us"}, map[string]any{"kustomize.toolkit.fluxcd.io/prune": "Disabled"}, 1},
		{map[string]any{"owner": "me", "team": "us"}, map[string]any{"kustomize.toolkit.fluxcd.io/prune": "enabled"}, 0},
		{nil, map[string]any{"helm.sh/hook": "test", "helm.sh/resource-policy": "keep"}, 3},
	} {
		o := applied("v1", "ConfigMap", "x", c.labels, c.annotations)
		denied := policy.denies(t, fetching, o)
		text, err := kyaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		if text, err = kyaml.YAMLToJSON(text); err != nil {
			t.Fatal(err)
		}
		v := value(t, string(text))
		build := 0
		for _, beyond := range []bool{len(Lacks(v, w.RequiredLabels)) > 0, IsHook(model.Projected{Value: v}), AsksToStay(v)} {
			if beyond {
				build++
			}
		}
		if len(denied) != c.denied || build != c.denied {
			t.Errorf("%v %v: the policy denies it for %q, the build for %d reasons", c.labels, c.annotations, denied, build)
		}
	}
}

// Objects that the platform itself adds to the namespace of an assignment pass if the account that
// applies folders adds them. From other accounts, the bounds of the team apply.
func TestPolicyOfOwnObjects(t *testing.T) {
	no := false
	w := bounded("Nothing")
	w.RequiredLabels, w.Reconciler.Keep, w.PodSecurity, w.Namespaces, w.Objects.ClusterScoped = []string{"owner"}, &no, "baseline", nil, nil
	policy := policyOf(t, w)
	a := assignment(t, `{"deletion": "orphan", "podSecurity": "restricted", "quota": {"pods": 10}, "limits": {"Container": {"default": {"cpu": "1"}}}, "networkPolicy": "isolated",
		"rbac": {"viewers": {"clusterRole": "view", "groups": ["g"]}}, "secrets": {"externalSecret": {"storeKind": "SecretStore", "refreshInterval": "1h"}}}`)
	a.Secrets = []backends.Secret{{Name: "DB", Store: "vault", Key: "db", Property: "p"}}
	a.Bounds = w
	files, _, ds := Workspace(a)
	b := assignment(t, `{"secrets": {"secretProviderClass": {"provider": "vault", "parameters": {}}}}`)
	b.Secrets = a.Secrets
	others, _, problems := Workspace(b)
	access, more := AccessOf(a, "shop-live", "flux-system")
	if ds = append(append(ds, problems...), more...); len(ds) > 0 {
		t.Fatal(ds)
	}
	file, _ := access.File(a)
	files = append(append(files, file), others[0])
	seen := map[string]bool{}
	for _, f := range files {
		for _, doc := range bytes.Split(f.Data, []byte("---\n")) {
			var o map[string]any
			if err := kyaml.Unmarshal(doc, &o); err != nil {
				t.Fatal(err)
			}
			u := unstructured.Unstructured{Object: o}
			if u.GetNamespace() == "flux-system" || u.GetKind() == "Namespace" && seen["Namespace"] {
				continue
			}
			seen[u.GetKind()] = true
			if u.GetKind() == "Namespace" {
				for key, want := range policy.Spec.MatchConstraints.NamespaceSelector.MatchLabels {
					if u.GetLabels()[key] != want {
						t.Errorf("the policy is for namespaces with %s: %s, and one has %q", key, want, u.GetLabels()[key])
					}
				}
			}
			if denied := policy.denies(t, folders, o); len(denied) > 0 {
				t.Errorf("%s %s: %q", u.GetKind(), u.GetName(), denied)
			}
			for _, other := range []string{charts, fetching} {
				if denied := policy.denies(t, other, o); u.GetKind() != "Namespace" && len(denied) == 0 {
					t.Errorf("%s may bring %s %s", other, u.GetKind(), u.GetName())
				}
			}
			if denied := policy.denies(t, "system:serviceaccount:kube-system:replicaset-controller", o); len(denied) > 0 {
				t.Errorf("a controller may not bring %s: %q", u.GetKind(), denied)
			}
		}
	}
	if len(seen) != 10 {
		t.Errorf("only %v are looked at", seen)
	}
	release := applied("v1", "Secret", "sh.helm.release.v1.x.v1", nil, nil)
	release["type"] = "helm.sh/release.v1"
	if denied := policy.denies(t, fetching, release); len(denied) > 0 {
		t.Errorf("Helm may not keep its release: %q", denied)
	}
	if len(policy.denies(t, folders, applied("v1", "ConfigMap", "other", nil, nil))) != 2 {
		t.Error("any ConfigMap passes")
	}
}

func TestPolicyOfNamespaces(t *testing.T) {
	for _, c := range []struct {
		least, enforced string
		denied          bool
	}{
		{"baseline", "", true}, {"baseline", "privileged", true}, {"baseline", "baseline", false}, {"baseline", "restricted", false},
		{"restricted", "baseline", true}, {"restricted", "restricted", false},
	} {
		w := bounded("*")
		w.PodSecurity = c.least
		o := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "n", "labels": map[string]any{"pod-security.kubernetes.io/enforce": c.enforced}}}
		if denied := policyOf(t, w).denies(t, folders, o); len(denied) > 0 != c.denied {
			t.Errorf("%+v: %q", c, denied)
		}
	}
}

// If workloads have the same name and different bounds, each may do what any of them may do.
func TestPolicyOfSeveral(t *testing.T) {
	policy := policyOf(t, bounded("ConfigMap"), bounded("Secret"))
	for kind, denied := range map[string]bool{"ConfigMap": false, "Secret": false, "Service": true} {
		if got := policy.denies(t, fetching, applied("v1", kind, "x", nil, nil)); len(got) > 0 != denied {
			t.Errorf("%s: %q", kind, got)
		}
	}
	if got := Policies(&backends.ClusterType{}, fluxAccounts, []Team{{"w", []*model.Workspace{bounded("ConfigMap"), bounded("*")}}}); got != nil {
		t.Errorf("one of them bounds nothing:\n%s", got)
	}
}
