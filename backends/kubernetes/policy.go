package kubernetes

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/pod-security-admission/api"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Team is a workspace by its name in the labels of namespaces, with its bounds. There are
// several bounds if workloads choose a name that other workloads also have. The team may
// then do what any of the bounds allows.
type Team struct {
	Workspace string
	Bounds    []*model.Workspace
}

// Policies returns the policies that keep teams within their bounds in the namespaces of their
// assignments on a cluster, as a YAML stream. Each team that has bounds there gets a
// ValidatingAdmissionPolicy
// (https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy) and its
// binding, in the order of the teams. A policy checks only requests of the accounts that apply
// assignments. It does not check deletions.
func Policies(ct *backends.ClusterType, accounts backends.Accounts, teams []Team) []byte {
	var docs []any
	for _, t := range teams {
		spec := policySpec{FailurePolicy: "Fail",
			MatchConditions: []namedCEL{{"by-what-applies-assignments", t.users(accounts)}}}
		spec.MatchConstraints.NamespaceSelector.MatchLabels = workspaceLabels(ct.Environment, ct.Name,
			t.Workspace)
		for _, b := range objectBounds {
			if v := b.validation(t, "variables.exempt"); v != nil {
				spec.Validations = append(spec.Validations, *v)
			}
		}
		if len(spec.Validations) > 0 {
			spec.MatchConstraints.ResourceRules = append(spec.MatchConstraints.ResourceRules,
				changes("*", "*", "Namespaced"))
		}
		if v := namespaceBound.validation(t, `variables.kind != "Namespace"`); v != nil {
			spec.MatchConstraints.ResourceRules = append(spec.MatchConstraints.ResourceRules,
				changes("", "namespaces", "Cluster"))
			spec.Validations = append(spec.Validations, *v)
		}
		if len(spec.Validations) == 0 {
			continue
		}
		spec.Variables = variables(accounts)
		meta := Metadata{Name: strings.Join([]string{managedBy, ct.Environment, ct.Name, t.Workspace},
			"."), Labels: workspaceLabels(ct.Environment, ct.Name, t.Workspace)}
		docs = append(docs,
			Object{policyAPI, "ValidatingAdmissionPolicy", meta, spec},
			Object{policyAPI, "ValidatingAdmissionPolicyBinding", meta,
				policyBinding{meta.Name, []string{"Deny"}}})
	}
	if docs == nil {
		return nil
	}
	return yaml.Must(docs...)
}

// workspaceLabels returns the labels of the namespaces of a workspace's assignments, except the
// labels that depend on the assigned workload.
func workspaceLabels(environment, clusterType, workspace string) map[string]string {
	return map[string]string{
		managedByLabel: managedBy,
		"environment":  model.ShortName(environment, model.MaxLabel),
		"clusterType":  model.ShortName(clusterType, model.MaxLabel),
		"workspace":    model.ShortName(workspace, model.MaxLabel),
	}
}

const policyAPI = "admissionregistration.k8s.io/v1"

type policySpec struct {
	FailurePolicy    string           `yaml:"failurePolicy"`
	MatchConstraints matchConstraints `yaml:"matchConstraints"`
	MatchConditions  []namedCEL       `yaml:"matchConditions"`
	Variables        []namedCEL       `yaml:"variables"`
	Validations      []policyRule     `yaml:"validations"`
}

type matchConstraints struct {
	NamespaceSelector struct {
		MatchLabels map[string]string `yaml:"matchLabels"`
	} `yaml:"namespaceSelector"`
	ResourceRules []resourceRule `yaml:"resourceRules"`
}

type resourceRule struct {
	APIGroups   []string `yaml:"apiGroups"`
	APIVersions []string `yaml:"apiVersions"`
	Operations  []string `yaml:"operations"`
	Resources   []string `yaml:"resources"`
	Scope       string   `yaml:"scope"`
}

// changes are requests that make or change objects of a kind of resource.
func changes(group, resources, scope string) resourceRule {
	return resourceRule{[]string{group}, []string{"*"}, []string{"CREATE", "UPDATE"},
		[]string{resources}, scope}
}

type namedCEL struct {
	Name       string `yaml:"name"`
	Expression string `yaml:"expression"`
}

type policyRule struct {
	Expression        string `yaml:"expression"`
	Message           string `yaml:"message,omitempty"`
	MessageExpression string `yaml:"messageExpression,omitempty"`
	Reason            string `yaml:"reason"`
}

type policyBinding struct {
	PolicyName        string   `yaml:"policyName"`
	ValidationActions []string `yaml:"validationActions"`
}

// The functions below write the expressions of policies in CEL
// (https://kubernetes.io/docs/reference/using-api/cel). Texts are quoted as in Go, because CEL
// reads them the same way.

// users reports whether a request is by one of the accounts that apply assignments.
func (t Team) users(accounts backends.Accounts) string {
	users := append(usersOf(accounts.Folders), usersOf(accounts.Fetched)...)
	var own []string
	for _, namespace := range accounts.Namespaces {
		for _, w := range t.Bounds {
			if name := w.Reconciler.ServiceAccount; name != "" {
				users = append(users, userOf(backends.Account{Namespace: namespace, Name: name}))
			}
		}
		own = append(own,
			fmt.Sprintf("request.userInfo.username.startsWith(%q) && request.userInfo.username.endsWith(%q)",
				userOf(backends.Account{Namespace: namespace}), workloadSuffix))
	}
	slices.Sort(users)
	return either(append([]string{"request.userInfo.username in " + listOf(slices.Compact(users))},
		own...))
}

// userOf returns the user name that API servers give a service account.
func userOf(a backends.Account) string {
	return "system:serviceaccount:" + a.Namespace + ":" +
		a.Name
}

func usersOf(accounts []backends.Account) []string {
	var out []string
	for _, a := range accounts {
		out = append(out, userOf(a))
	}
	return out
}

// workspaceKinds are the kinds of objects that the platform itself adds to the namespace of an
// assignment, except the platform config. The list assumes a namespace service that uses all its
// options.
var workspaceKinds = []string{
	"LimitRange", "ResourceQuota", "ServiceAccount",
	"external-secrets.io/ExternalSecret", "secrets-store.csi.x-k8s.io/SecretProviderClass",
	"networking.k8s.io/NetworkPolicy", rbacGroup + "/Role", rbacGroup + "/RoleBinding",
}

// variables are the variables that the validations of all teams share. exempt is true for requests
// that do not belong to the team: the namespace, and the releases that Helm keeps there. It is also
// true for the platform's own objects, if the request comes from an account that applies folders.
func variables(accounts backends.Accounts) []namedCEL {
	return []namedCEL{
		{"kind", `(request.kind.group == "" ? "" : request.kind.group + "/") + request.kind.kind`},
		{"labels", "has(object.metadata.labels) ? object.metadata.labels : {}"},
		{"annotations", "has(object.metadata.annotations) ? object.metadata.annotations : {}"},
		{"exempt", either([]string{
			`variables.kind == "Namespace"`,
			`variables.kind == "Secret" && has(object.type) && object.type == "helm.sh/release.v1"`,
			fmt.Sprintf(`request.userInfo.username in %s && (variables.kind in %s || variables.kind == "ConfigMap" && object.metadata.name == %q)`,
				listOf(usersOf(accounts.Folders)), listOf(workspaceKinds), configName),
		})},
	}
}

// bound is one of a workspace, as a policy checks it.
type bound struct {
	// holds returns the condition that an object is within the bound; "" if a workspace has
	// no such bound.
	holds func(*model.Workspace) string
	// not ends a sentence that begins with the workspace, with the kind of an object in it.
	not string
	// way is out, with the workspace in it.
	way string
}

// objectBounds are the bounds of objects in the namespaces of assignments. namespaceBound is the
// bound of these namespaces.
var (
	objectBounds = []bound{
		{kindAllowed, "may not bring %s",
			"leave it out, or let the platform allow it: workspaces: %q: objects: namespaced"},
		{labelled, "may not bring %s without its labels",
			"add those that workspaces: %q: requiredLabels has"},
		{noHook, "may not bring %s as a hook", "leave it out, or let the platform allow it: " +
			"workspaces: %q: reconciler: hooks"},
		{notKept, "may not keep %s when its assignment goes", "remove the annotation, or let the " +
			"platform allow it: workspaces: %q: reconciler: keep"},
	}
	namespaceBound = bound{podsSecure, "may not have a %s that enforces less than its pod security " +
		"standard", "give the namespace service the podSecurity that workspaces: %q: podSecurity has"}
)

// validation returns the validation of a bound for a team. The validation passes for objects that
// meet the condition but. It returns nil if a workspace of the team does not have the bound.
func (b bound) validation(t Team, but string) *policyRule {
	out := []string{but}
	for _, w := range t.Bounds {
		holds := b.holds(w)
		if holds == "" {
			return nil
		}
		out = append(out, holds)
	}
	before, after, _ := strings.Cut(fmt.Sprintf("workspace %s "+b.not+": "+b.way, t.Workspace, "\x00",
		t.Workspace), "\x00")
	return &policyRule{
		Expression:        either(out),
		MessageExpression: fmt.Sprintf("%q + variables.kind + %q", before, after),
		Reason:            "Forbidden",
	}
}

func kindAllowed(w *model.Workspace) string {
	patterns := w.Objects.Namespaced
	if slices.Equal(patterns, model.Patterns{"*"}) {
		return ""
	}
	var allowed, denied []string
	for _, p := range patterns {
		if not, takesAway := strings.CutPrefix(p, "!"); takesAway {
			denied = append(denied, not)
		} else {
			allowed = append(allowed, p)
		}
	}
	if len(denied) == 0 {
		return matching(allowed)
	}
	return "(" + matching(allowed) + ") && !(" + matching(denied) + ")"
}

// matching reports whether the kind of an object is one of patterns.
func matching(patterns []string) string {
	var exact, open []string
	for _, p := range patterns {
		if parts := strings.Split(p, "*"); len(parts) == 1 {
			exact = append(exact, p)
		} else {
			for i := range parts {
				parts[i] = regexp.QuoteMeta(parts[i])
			}
			open = append(open, strings.Join(parts, ".*"))
		}
	}
	out := []string{"variables.kind in " + listOf(exact)}
	if len(open) > 0 {
		out = append(out, fmt.Sprintf("variables.kind.matches(%q)", "^("+strings.Join(open, "|")+")$"))
	}
	return either(out)
}

func labelled(w *model.Workspace) string {
	if len(w.RequiredLabels) == 0 {
		return ""
	}
	return listOf(w.RequiredLabels) + `.all(l, l in variables.labels && variables.labels[l] != "")`
}

func noHook(w *model.Workspace) string {
	if *w.Reconciler.Hooks {
		return ""
	}
	return "!" + listOf(hookAnnotations) +
		`.exists(a, a in variables.annotations && variables.annotations[a] != "")`
}

func notKept(w *model.Workspace) string {
	if *w.Reconciler.Keep {
		return ""
	}
	var asks []string
	for _, a := range sortedKeys(staying) {
		asks = append(asks, fmt.Sprintf("%q in variables.annotations && "+
			"variables.annotations[%q].lowerAscii().split(\",\").exists(o, o.trim() in %s)", a, a,
			listOf(options(staying[a]))))
	}
	return "!(" + either(asks) + ")"
}

func podsSecure(w *model.Workspace) string {
	levels := []string{string(api.LevelPrivileged), string(api.LevelBaseline),
		string(api.LevelRestricted)}
	least := slices.Index(levels, w.PodSecurity)
	if least <= 0 {
		return ""
	}
	return fmt.Sprintf("%q in variables.labels && variables.labels[%[1]q] in %s",
		api.EnforceLevelLabel, listOf(levels[least:]))
}

// either joins conditions into one that is true if any of them is true.
func either(conditions []string) string { return strings.Join(conditions, " || ") }

func listOf(texts []string) string {
	quoted := make([]string, len(texts))
	for i, t := range texts {
		quoted[i] = strconv.Quote(t)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
