package kubernetes

import (
	"encoding/json"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// service is #NamespaceService of schema/namespace.cue, evaluated for an
// assignment. Its manifests are read from the model, which keeps their numbers.
type service struct {
	Deletion       string              `json:"deletion"`
	Labels         map[string]string   `json:"labels"`
	Annotations    map[string]string   `json:"annotations"`
	PodSecurity    string              `json:"podSecurity"`
	Quota          map[string]quantity `json:"quota"`
	Limits         map[string]limits   `json:"limits"`
	NetworkPolicy  networkPolicy       `json:"networkPolicy"`
	ServiceAccount serviceAccount      `json:"serviceAccount"`
	RBAC           map[string]rbac     `json:"rbac"`
	Secrets        *secrets            `json:"secrets"`
}

type limits struct {
	Default              map[string]quantity `json:"default"`
	DefaultRequest       map[string]quantity `json:"defaultRequest"`
	Max                  map[string]quantity `json:"max"`
	Min                  map[string]quantity `json:"min"`
	MaxLimitRequestRatio map[string]quantity `json:"maxLimitRequestRatio"`
}

type serviceAccount struct {
	Name             string            `json:"name"`
	Annotations      map[string]string `json:"annotations"`
	ImagePullSecrets []string          `json:"imagePullSecrets"`
	AutomountToken   bool              `json:"automountToken"`
}

type rbac struct {
	ClusterRole string   `json:"clusterRole"`
	Role        string   `json:"role"`
	Groups      []string `json:"groups"`
}

type secrets struct {
	ExternalSecret      *externalSecret      `json:"externalSecret"`
	SecretProviderClass *secretProviderClass `json:"secretProviderClass"`
}

type externalSecret struct {
	StoreKind       string `json:"storeKind"`
	RefreshInterval string `json:"refreshInterval"`
}

type secretProviderClass struct {
	Provider   string            `json:"provider"`
	Parameters map[string]string `json:"parameters"`
}

// networkPolicy is none, or isolation with exceptions.
type networkPolicy struct {
	Isolated    bool
	IngressFrom []peer
	EgressTo    []peer
}

// peer is the other end of a connection. Labels that are given and empty select
// everything; absent ones nothing.
type peer struct {
	NamespaceLabels *map[string]string `json:"namespaceLabels"`
	PodLabels       *map[string]string `json:"podLabels"`
	CIDR            string             `json:"cidr"`
	Except          []string           `json:"except"`
	Ports           []port             `json:"ports"`
}

type port struct {
	Protocol string      `json:"protocol" yaml:"protocol"`
	Port     model.Value `json:"port" yaml:"port"` // a number or a name
}

func (p *networkPolicy) UnmarshalJSON(b []byte) error {
	var preset string
	if json.Unmarshal(b, &preset) == nil {
		*p = networkPolicy{Isolated: preset == "isolated"}
		return nil
	}
	var peers struct {
		IngressFrom []peer `json:"ingressFrom"`
		EgressTo    []peer `json:"egressTo"`
	}
	err := json.Unmarshal(b, &peers)
	*p = networkPolicy{Isolated: true, IngressFrom: peers.IngressFrom, EgressTo: peers.EgressTo}
	return err
}

// quantity is a Kubernetes quantity. It is always written as a string, as API
// servers return it, so that nobody sees a difference between "10" and 10.
type quantity string

func (q *quantity) UnmarshalJSON(b []byte) error {
	var v model.Value
	err := v.UnmarshalJSON(b)
	*q = quantity(v.Text())
	return err
}
