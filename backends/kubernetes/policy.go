package kubernetes

import (
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Team is a workspace by its name, as namespaces are labelled with it, and its bounds. They
// are several where workloads choose a name that others have too; then it may what any may.
type Team struct {
	Workspace string
	Bounds    []*model.Workspace
}

// Policies returns what holds teams to their bounds in the namespaces of their assignments on
// a cluster, as a YAML stream: for each team that has bounds there, a
// ValidatingAdmissionPolicy (https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy)
// and its binding, in the order of the teams. A policy looks at nothing but requests of the
// accounts with which assignments are applied, and never at deletions.
func Policies(ct *backends.ClusterType, accounts backends.Accounts, teams []Team) []byte {
	var docs []any
	for _, t := range teams {
		spec := policySpec{FailurePolicy: "Fail",
			MatchConditions: []namedCEL{{"by-what-applies-assignments", t.users(accounts)}}}
		spec.MatchConstraints.NamespaceSelector.MatchLabels = placeOf(ct.Environment, ct.Name, t.Workspace)
		for _, b := range objectBounds {
			if v := b.of(t, "variables.exempt"); v != nil {
				spec.Validations = append(spec.Validations, *v)
			}
		}
		if len(spec.Validations) > 0 {
			spec.MatchConstraints.ResourceRules = append(spec.MatchConstraints.ResourceRules, changes("*", "*", "Namespaced"))
		}
		if v := namespaceBound.of(t, `variables.kind != "Namespace"`); v != nil {
			spec.MatchConstraints.ResourceRules = append(spec.MatchConstraints.ResourceRules,
				changes("", "namespaces", "Cluster"))
			spec.Validations = append(spec.Validations, *v)
		}
		if len(spec.Validations) == 0 {
			continue
		}
		spec.Variables = variables(accounts)
		meta := Metadata{Name: strings.Join([]string{managedBy, ct.Environment, ct.Name, t.Workspace},
			"."), Labels: placeOf(ct.Environment, ct.Name, t.Workspace)}
		docs = append(docs,
			Object{policyAPI, "ValidatingAdmissionPolicy", meta, spec},
			Object{policyAPI, "ValidatingAdmissionPolicyBinding", meta, policyBinding{meta.Name, []string{"Deny"}}})
	}
	if docs == nil {
		return nil
	}
	return yaml.Must(docs...)
}

// placeOf returns those labels of the namespaces of a workspace's assignments that do not
// change with what is assigned.
func placeOf(environment, clusterType, workspace string) map[string]string {
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
	return resourceRule{[]string{group}, []string{"*"}, []string{"CREATE", "UPDATE"}, []string{resources}, scope}
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
