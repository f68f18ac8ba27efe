package model

import (
	"slices"
	"strings"
)

// Workspace says what the workloads of a team may bring.
type Workspace struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Objects     struct {
		Namespaced    Patterns `json:"namespaced"`
		ClusterScoped Patterns `json:"clusterScoped"`
	} `json:"objects"`
	Namespaces   Patterns `json:"namespaces"` // beside an assignment's own
	Environments Patterns `json:"environments"`
	ClusterTypes Patterns `json:"clusterTypes"`
	Sources      Patterns `json:"sources"`
	Files        Patterns `json:"files"`

	// Digest identifies what it says, wherever and however that is written.
	Digest Digest `json:"-"`
}

// Patterns allow texts: those that one matches, and none that begins with !. nil is for
// what is not said.
type Patterns []string

// Allow says whether the patterns allow a text.
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

// matches says whether a text is a pattern's, in which * stands for any text.
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

// The profiles of workspaces that are not declared, as kalypso.io/stdlib/workspace has them.
var (
	team   = profile("#Team", Patterns{"*"}, Patterns{"*", "!admissionregistration.k8s.io/*", "!apiregistration.k8s.io/*"}, Patterns{"*", "!kube-*"}, teamFiles)
	tenant = profile("#Tenant", tenantObjects, Patterns{}, Patterns{}, Patterns{"/opt/*", "/srv/*"})

	teamFiles     = Patterns{"*", "!/etc/sudoers*", "!/etc/ssh/*", "!/etc/pam.d/*", "!/etc/passwd", "!/etc/shadow", "!/etc/group", "!/etc/gshadow", "!/root/*"}
	tenantObjects = Patterns{
		"ConfigMap", "Secret", "Service", "ServiceAccount", "PersistentVolumeClaim", "Pod",
		"apps/*", "batch/*", "autoscaling/*", "policy/PodDisruptionBudget",
		"networking.k8s.io/Ingress", "gateway.networking.k8s.io/HTTPRoute", "gateway.networking.k8s.io/GRPCRoute",
		"monitoring.coreos.com/ServiceMonitor", "monitoring.coreos.com/PodMonitor", "monitoring.coreos.com/PrometheusRule",
	}
)

func profile(name string, namespaced, clusterScoped, namespaces, files Patterns) (w Workspace) {
	w.Name = name
	w.Objects.Namespaced, w.Objects.ClusterScoped, w.Namespaces, w.Files = namespaced, clusterScoped, namespaces, files
	w.Environments, w.ClusterTypes, w.Sources = Patterns{"*"}, Patterns{"*"}, Patterns{"*"}
	w.identify(nil)
	return w
}

// Complete fills in what the workspace does not say, as for a team of the platform.
func (w *Workspace) Complete() {
	for _, list := range []struct{ of, absent *Patterns }{
		{&w.Objects.Namespaced, &team.Objects.Namespaced}, {&w.Objects.ClusterScoped, &team.Objects.ClusterScoped},
		{&w.Namespaces, &team.Namespaces}, {&w.Files, &team.Files},
		{&w.Environments, &team.Environments}, {&w.ClusterTypes, &team.ClusterTypes}, {&w.Sources, &team.Sources},
	} {
		if *list.of == nil {
			*list.of = *list.absent
		}
	}
}

// WorkspaceOf returns the workspace of a workload, and whether it is declared. One that is not
// is the profile for where the workload comes from, with its name in the standard library, and
// so is one that a registration chooses, for which the platform has named none; nil is for one
// that has errors.
func (m *Environment) WorkspaceOf(w *Workload) (of *Workspace, declared bool) {
	if w.Registration != "" {
		i, found := slices.BinarySearchFunc(m.Registrations, w.Registration, func(r Registration, name string) int { return strings.Compare(r.Name, name) })
		if !found || m.Registrations[i].Workspace == "" {
			return &tenant, false
		}
	}
	if m.Invalid[Ref{Collection: "workspaces", Name: w.Workspace}] {
		return nil, true
	}
	i, found := slices.BinarySearchFunc(m.Workspaces, w.Workspace, func(s Workspace, name string) int { return strings.Compare(s.Name, name) })
	switch {
	case found:
		return &m.Workspaces[i], true
	case w.Registration != "":
		return &tenant, false
	}
	return &team, false
}
