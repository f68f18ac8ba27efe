package kubernetes

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/pod-security-admission/api"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// What follows are the expressions of policies, in CEL
// (https://kubernetes.io/docs/reference/using-api/cel). Texts are quoted as in Go, which
// CEL reads alike.

// users says whether a request is by one of the accounts that apply assignments.
func (t Team) users(accounts backends.Accounts) string {
	users := append(usersOf(accounts.Folders), usersOf(accounts.Fetched)...)
	var own []string
	for _, namespace := range accounts.Namespaces {
		for _, w := range t.Bounds {
			if name := w.Reconciler.ServiceAccount; name != "" {
				users = append(users, userOf(backends.Account{Namespace: namespace, Name: name}))
			}
		}
		own = append(own, fmt.Sprintf("request.userInfo.username.startsWith(%q) && request.userInfo.username.endsWith(%q)",
			userOf(backends.Account{Namespace: namespace}), workloadSuffix))
	}
	slices.Sort(users)
	return either(append([]string{"request.userInfo.username in " + listOf(slices.Compact(users))}, own...))
}

// userOf returns what API servers call a service account.
func userOf(a backends.Account) string { return "system:serviceaccount:" + a.Namespace + ":" + a.Name }

func usersOf(accounts []backends.Account) []string {
	var out []string
	for _, a := range accounts {
		out = append(out, userOf(a))
	}
	return out
}

// workspaceKinds are those of what the platform itself puts into the namespace of an
// assignment, but for the platform config, and for what the namespace service says in full.
var workspaceKinds = []string{
	"LimitRange", "ResourceQuota", "ServiceAccount",
	"external-secrets.io/ExternalSecret", "secrets-store.csi.x-k8s.io/SecretProviderClass",
	"networking.k8s.io/NetworkPolicy", rbacGroup + "/Role", rbacGroup + "/RoleBinding",
}

// variables are what the validations of all teams have in common. Exempt is what is none of
// the team's: the namespace, the releases that Helm keeps there, and what is the platform's
// own, where it comes from an account that applies folders.
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
	// holds says that an object is within it; "" where a workspace has no such bound.
	holds func(*model.Workspace) string
	// not ends a sentence that begins with the workspace, with the kind of an object in it.
	not string
	// way is out, with the workspace in it.
	way string
}

// objectBounds are those of objects in the namespaces of assignments, and namespaceBound that
// of these namespaces.
var (
	objectBounds = []bound{
		{kindAllowed, "may not bring %s", "leave it out, or let the platform allow it: workspaces: %q: objects: namespaced"},
		{labelled, "may not bring %s without its labels", "add those that workspaces: %q: requiredLabels has"},
		{noHook, "may not bring %s as a hook", "leave it out, or let the platform allow it: " +
			"workspaces: %q: reconciler: hooks"},
		{notKept, "may not keep %s when its assignment goes", "remove the annotation, or let the " +
			"platform allow it: workspaces: %q: reconciler: keep"},
	}
	namespaceBound = bound{podsSecure, "may not have a %s that enforces less than its pod security " +
		"standard", "give the namespace service the podSecurity that workspaces: %q: podSecurity has"}
)

// of returns the validation of a bound for a team, but for objects of which a condition holds;
// nil where the team has no such bound.
func (b bound) of(t Team, but string) *policyRule {
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

// matching says whether the kind of an object is one of patterns.
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
	return "!" + listOf(hookAnnotations) + `.exists(a, a in variables.annotations && variables.annotations[a] != "")`
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
	levels := []string{string(api.LevelPrivileged), string(api.LevelBaseline), string(api.LevelRestricted)}
	least := slices.Index(levels, w.PodSecurity)
	if least <= 0 {
		return ""
	}
	return fmt.Sprintf("%q in variables.labels && variables.labels[%[1]q] in %s",
		api.EnforceLevelLabel, listOf(levels[least:]))
}

// either joins conditions, of which one is enough.
func either(conditions []string) string { return strings.Join(conditions, " || ") }

func listOf(texts []string) string {
	quoted := make([]string, len(texts))
	for i, t := range texts {
		quoted[i] = strconv.Quote(t)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
