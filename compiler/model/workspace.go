package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Workspace bounds the workloads of a team.
type Workspace struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Owners      []string `json:"owners"` // the reviewers of its declarations
	Objects     struct {
		Namespaced    Patterns `json:"namespaced"`
		ClusterScoped Patterns `json:"clusterScoped"`
	} `json:"objects"`
	Namespaces   Patterns `json:"namespaces"` // in addition to an assignment's own
	Environments Patterns `json:"environments"`
	ClusterTypes Patterns `json:"clusterTypes"`
	// SelectedTypes select the cluster types instead of patterns; nil if the patterns apply.
	SelectedTypes  *Selector `json:"selectedTypes"`
	Labels         Patterns  `json:"labels"` // of KEY=VALUE
	Policies       Patterns  `json:"policies"`
	Sources        Patterns  `json:"sources"`
	Secrets        Patterns  `json:"secrets"` // of names of secrets, and STORE/KEY
	RequiredLabels []string  `json:"requiredLabels"`
	PodSecurity    string    `json:"podSecurity"` // a level of the pod security standards
	// Quota bounds the total requests of the assignments in an environment, by resource: a
	// quantity of Kubernetes.
	Quota      map[string]Value `json:"quota"`
	Reconciler struct {
		ServiceAccount string `json:"serviceAccount"` // "" for the assignment's own
		Keep           *bool  `json:"keep"`           // whether objects may outlive their assignment
		Hooks          *bool  `json:"hooks"`          // whether manifests may have hooks
	} `json:"reconciler"`
	Machines struct {
		Files        Patterns `json:"files"`
		Packages     Patterns `json:"packages"`
		Units        Patterns `json:"units"`
		Users        Patterns `json:"users"` // and groups, in addition to an assignment's own
		Capabilities Patterns `json:"capabilities"`
	} `json:"machines"`

	// Digest identifies the permissions. It depends neither on positions and formatting nor on
	// the reviewers, which do not affect a build.
	Digest Digest `json:"-"`
}

func (w *Workspace) identify(func() Digest) {
	bounds := *w
	bounds.Description, bounds.Owners = "", nil
	w.Digest = digestOf(bounds)
}

// lists returns the lists that have a profile's patterns if the workspace does not set them.
func (w *Workspace) lists() []*Patterns {
	return []*Patterns{
		&w.Objects.Namespaced, &w.Objects.ClusterScoped, &w.Namespaces, &w.Secrets,
		&w.Environments, &w.ClusterTypes, &w.Labels, &w.Policies, &w.Sources,
		&w.Machines.Files, &w.Machines.Packages, &w.Machines.Units, &w.Machines.Users,
		&w.Machines.Capabilities,
	}
}

// Patterns allow texts. A text is allowed if at least one pattern matches it, and no pattern
// that begins with ! does. nil means that the list is not set.
type Patterns []string

// AllowingSecret returns the lines with which a platform lets a workspace use a secret. The
// receiver is either the workspace itself or the profile that the workspace keeps when it is
// declared. registration is the registration that brings the workload; "" if the platform
// declares it.
func (w *Workspace) AllowingSecret(workspace, registration, secret string) string {
	var list []string
	for _, pattern := range append(slices.Clip(w.Secrets), secret) {
		if not, takesAway := strings.CutPrefix(pattern, "!"); !takesAway || !matches(not, secret) {
			list = append(list, strconv.Quote(pattern))
		}
	}
	secrets := "secrets: [" + strings.Join(list, ", ") + "]"
	if w.Name == workspace {
		return fmt.Sprintf("workspaces: %q: %s", workspace, secrets)
	}
	out := fmt.Sprintf("workspaces: schema.#Workspaces & {%q: workspace.%s & {%s}}", workspace, w.Name,
		secrets)
	if registration != "" {
		out += fmt.Sprintf(" and registrations: %q: workspace: %q", registration, workspace)
	}
	return out + ` (importing "kalypso.io/schema" and "kalypso.io/stdlib/workspace")`
}

// Allow reports whether the patterns allow a text.
func (p Patterns) Allow(text string) bool {
	allowed := false
	for _, pattern := range p {
		not, takesAway := strings.CutPrefix(pattern, "!")
		switch {
		case takesAway && matches(not, text):
			return false
		case !takesAway && matches(pattern, text):
			allowed = true
		}
	}
	return allowed
}

// matches reports whether a text matches a pattern, where each * matches any text.
func matches(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	rest, ok := strings.CutPrefix(text, parts[0])
	if len(parts) == 1 {
		return ok && rest == ""
	}
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(rest, part)
		if !ok || i < 0 {
			return false
		}
		rest = rest[i+len(part):]
	}
	return ok && strings.HasSuffix(rest, parts[len(parts)-1])
}

// The profiles for undeclared workspaces, as kalypso.io/stdlib/workspace declares them.
var team, tenant = profile("#Team"), profile("#Tenant")

func profile(name string) *Workspace {
	w := &Workspace{Name: name}
	all, none := Patterns{"*"}, Patterns{}
	for _, list := range w.lists() {
		*list = all
	}
	yes := true
	w.Reconciler.Keep, w.Reconciler.Hooks = &yes, &yes
	if name == "#Tenant" {
		w.PodSecurity = "baseline"
		w.Objects.Namespaced = tenantObjects
		w.Objects.ClusterScoped, w.Namespaces, w.Secrets = none, none, none
		w.Machines.Files = Patterns{"/opt/*", "/srv/*"}
		w.Machines.Packages, w.Machines.Units, w.Machines.Users, w.Machines.Capabilities = none, none,
			none, none
	} else {
		w.PodSecurity = "privileged"
		w.Objects.ClusterScoped = Patterns{"*", "!admissionregistration.k8s.io/*",
			"!apiregistration.k8s.io/*"}
		w.Namespaces = Patterns{"*", "!kube-*"}
		w.Machines.Files = Patterns{"*", "!/etc/sudoers*", "!/etc/ssh/*", "!/etc/pam.d/*", "!/etc/passwd",
			"!/etc/shadow", "!/etc/group", "!/etc/gshadow", "!/root/*"}
	}
	w.identify(nil)
	return w
}

var tenantObjects = Patterns{
	"ConfigMap", "Secret", "Service", "ServiceAccount", "PersistentVolumeClaim", "Pod",
	"apps/*", "batch/*", "autoscaling/*", "policy/PodDisruptionBudget",
	"networking.k8s.io/Ingress", "gateway.networking.k8s.io/HTTPRoute",
	"gateway.networking.k8s.io/GRPCRoute",
	"monitoring.coreos.com/ServiceMonitor", "monitoring.coreos.com/PodMonitor",
	"monitoring.coreos.com/PrometheusRule",
}

// IsTeam reports whether the workspace is the profile that applies to a workload of the
// platform with an undeclared workspace.
func (w *Workspace) IsTeam() bool { return w.Name == team.Name }

// Complete sets the missing fields of the workspace, as for a team of the platform.
func (w *Workspace) Complete() {
	absent := team.lists()
	for i, list := range w.lists() {
		if *list == nil {
			*list = *absent[i]
		}
	}
	if w.PodSecurity == "" {
		w.PodSecurity = team.PodSecurity
	}
	if w.Reconciler.Keep == nil {
		w.Reconciler.Keep = team.Reconciler.Keep
	}
	if w.Reconciler.Hooks == nil {
		w.Reconciler.Hooks = team.Reconciler.Hooks
	}
}

// WorkspaceOf returns the workspace of a workload, and reports whether it is declared. For an
// undeclared workspace it returns the profile of the workload's origin, which has its name in
// the standard library. The same holds if a registration chooses a workspace that the platform
// did not assign to it. It returns nil if the workspace has errors.
func (m *Environment) WorkspaceOf(w *Workload) (of *Workspace, declared bool) {
	if w.Registration != "" {
		i, found := slices.BinarySearchFunc(m.Registrations, w.Registration,
			func(r Registration, name string) int { return strings.Compare(r.Name, name) })
		if !found || m.Registrations[i].Workspace == "" {
			return tenant, false
		}
	}
	if m.Invalid[Ref{Collection: "workspaces", Name: w.Workspace}] {
		return nil, true
	}
	i, found := slices.BinarySearchFunc(m.Workspaces, w.Workspace,
		func(s Workspace, name string) int { return strings.Compare(s.Name, name) })
	switch {
	case found:
		return &m.Workspaces[i], true
	case w.Registration != "":
		return tenant, false
	}
	return team, false
}
