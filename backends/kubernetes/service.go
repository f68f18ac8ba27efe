package kubernetes

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// service is #NamespaceService of schema/namespace.cue, evaluated for an assignment. Its
// manifests are read from the model instead, which preserves their numbers.
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

// networkPolicy describes the isolation of a namespace and the exceptions to it. The zero value
// means that there is no isolation.
type networkPolicy struct {
	Isolated    bool
	IngressFrom []peer
	EgressTo    []peer
}

// peer is the other end of a connection. Empty labels select everything, and absent labels
// select nothing.
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

// quantity is a Kubernetes quantity. It is always written as a string, as API servers return
// it, so that "10" and 10 do not differ.
type quantity string

func (q *quantity) UnmarshalJSON(b []byte) error {
	var v model.Value
	err := v.UnmarshalJSON(b)
	*q = quantity(v.Text())
	return err
}

// The functions below find the actions that an object requests from a controller in other places,
// with the controller's rights.

// reaching are the fields in which objects name the namespaces that a controller reads or
// writes for them. The key is the end of their API group. * stands for each element of a
// list.
var reaching = map[string][]string{
	".fluxcd.io": {
		"spec.sourceRef.namespace", "spec.chartRef.namespace", "spec.chart.spec.sourceRef.namespace",
		"spec.imageRepositoryRef.namespace",
		"spec.sources.*.namespace", "spec.eventSources.*.namespace", "spec.resources.*.namespace",
		"spec.targetNamespace", "spec.storageNamespace",
	},
	"argoproj.io": {"spec.destination.namespace",
		"spec.template.spec.destination.namespace"},
	"monitoring.coreos.com": {"spec.namespaceSelector.matchNames.*"},
}

// Reaches returns the namespaces that an object names for the work of controllers, sorted. "*"
// stands for all namespaces.
func Reaches(v model.Value) []string {
	of := group(Text(v, "apiVersion"))
	var out []string
	for end, fields := range reaching {
		if !strings.HasSuffix(of, end) {
			continue
		}
		for _, field := range fields {
			out = append(out, textsAt(v, strings.Split(field, "."))...)
		}
	}
	if of == "monitoring.coreos.com" {
		if every, _ := Lookup(v, "spec", "namespaceSelector", "any"); every.Text() == "true" {
			out = append(out, "*")
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// ActsAsFlux reports whether an object makes Flux apply fetched objects with Flux's own rights, on
// the cluster where Flux runs.
func ActsAsFlux(v model.Value) bool {
	if kind := Text(v, "kind"); !strings.HasSuffix(group(Text(v, "apiVersion")),
		".toolkit.fluxcd.io") || kind != "Kustomization" && kind != "HelmRelease" {
		return false
	}
	_, elsewhere := Lookup(v, "spec", "kubeConfig")
	return Text(v, "spec", "serviceAccountName") == "" && !elsewhere
}

// FilesOf returns the fields in which an object names files of the pods that process it, sorted.
// Through such fields, Prometheus and Alertmanager send files to an address that the object
// chooses: their own token, their certificates or any other file that they can read.
func FilesOf(v model.Value) []string {
	if group(Text(v, "apiVersion")) != "monitoring.coreos.com" {
		return nil
	}
	spec, _ := v.Lookup("spec")
	out := filesIn(spec, nil)
	slices.Sort(out)
	return slices.Compact(out)
}

// free are the fields of Prometheus' objects with keys that authors choose freely.
var free = []string{"labels", "annotations", "matchLabels", "nodeSelector", "externalLabels",
	"params", "headers", "httpHeaders", "expandedParams"}

// filesIn adds the fields that name files, at any depth of a value. Their names end in File,
// such as caFile of a tlsConfig, except LogFile. Lists of targets in files are included.
func filesIn(v model.Value, out []string) []string {
	for _, elem := range v.Elems() {
		out = filesIn(elem, out)
	}
	for _, f := range v.Fields() {
		file := strings.HasSuffix(f.Name, "File") && !strings.HasSuffix(f.Name, "LogFile") &&
			f.Value.Kind() == model.String && f.Value.Text() != ""
		if file || f.Name == "fileSDConfigs" && len(f.Value.Elems()) > 0 {
			out = append(out, f.Name)
		} else if !slices.Contains(free, f.Name) {
			out = filesIn(f.Value, out)
		}
	}
	return out
}

// SecretsOf returns the secrets that the External Secrets Operator reads or writes for an object.
// Each is "STORE/KEY", with "*" for a store or key that the object selects by its properties.
func SecretsOf(v model.Value) []string {
	if group(Text(v, "apiVersion")) != "external-secrets.io" {
		return nil
	}
	spec, _ := v.Lookup("spec")
	// ClusterExternalSecret and ClusterPushSecret create secrets in many namespaces.
	for _, field := range []string{"externalSecretSpec", "pushSecretSpec"} {
		if of, ok := spec.Lookup(field); ok {
			spec = of
		}
	}
	var out []string
	for _, read := range elems(spec, "data", "dataFrom") {
		stores := textsAt(read, []string{"sourceRef", "storeRef", "name"})
		if len(stores) == 0 {
			stores = textsAt(spec, []string{"secretStoreRef", "name"})
		}
		keys := append(textsAt(read, []string{"remoteRef", "key"}),
			textsAt(read, []string{"extract", "key"})...)
		if _, found := read.Lookup("find"); found {
			keys = append(keys, "*")
		}
		for _, store := range stores {
			for _, key := range keys {
				out = append(out, store+"/"+key)
			}
		}
	}
	for _, ref := range elems(spec, "secretStoreRefs") {
		store := Text(ref, "name")
		if store == "" {
			store = "*"
		}
		for _, key := range textsAt(spec, []string{"data", "*", "match", "remoteRef", "remoteKey"}) {
			out = append(out, store+"/"+key)
		}
		if len(elems(spec, "dataTo")) > 0 {
			out = append(out, store+"/*")
		}
	}
	return out
}

// elems returns the elements of lists of a struct.
func elems(v model.Value, fields ...string) []model.Value {
	var out []model.Value
	for _, field := range fields {
		list, _ := v.Lookup(field)
		out = append(out, list.Elems()...)
	}
	return out
}

// textsAt returns the texts at a path of fields. * in the path stands for each element of a
// list.
func textsAt(v model.Value, path []string) []string {
	for i, field := range path {
		if field == "*" {
			var out []string
			for _, elem := range v.Elems() {
				out = append(out, textsAt(elem, path[i+1:])...)
			}
			return out
		}
		v, _ = v.Lookup(field)
	}
	if v.Kind() != model.String || v.Text() == "" {
		return nil
	}
	return []string{v.Text()}
}

// networkPolicySpec is the spec of a NetworkPolicy. A policy of a type without
// rules denies all traffic of that type, and several policies add up
// (https://kubernetes.io/docs/concepts/services-networking/network-policies).
type networkPolicySpec struct {
	PodSelector selector      `yaml:"podSelector"`
	PolicyTypes []string      `yaml:"policyTypes"`
	Ingress     []ingressRule `yaml:"ingress,omitempty"`
	Egress      []egressRule  `yaml:"egress,omitempty"`
}

type ingressRule struct {
	From  []policyPeer `yaml:"from"`
	Ports []port       `yaml:"ports,omitempty"`
}

type egressRule struct {
	To    []policyPeer `yaml:"to"`
	Ports []port       `yaml:"ports,omitempty"`
}

type policyPeer struct {
	NamespaceSelector *selector `yaml:"namespaceSelector,omitempty"`
	PodSelector       *selector `yaml:"podSelector,omitempty"`
	IPBlock           *ipBlock  `yaml:"ipBlock,omitempty"`
}

type ipBlock struct {
	CIDR   string   `yaml:"cidr"`
	Except []string `yaml:"except,omitempty"`
}

// selector selects objects by labels. Without labels it selects everything.
type selector struct {
	MatchLabels map[string]string `yaml:"matchLabels,omitempty"`
}

// networkPolicies adds isolation and the service's own exceptions. Each kind of allowed
// traffic has a policy of its own, so that a reviewer can distinguish them.
func (w *workspace) networkPolicies() {
	policy := w.service.NetworkPolicy
	if !policy.Isolated {
		return
	}
	const in, out = "Ingress", "Egress"
	within := []policyPeer{{PodSelector: &selector{}}}
	system := map[string]string{"kubernetes.io/metadata.name": "kube-system"}
	dns := []policyPeer{{NamespaceSelector: &selector{system}}}
	dnsPorts := []port{{"UDP", model.IntOf(53)}, {"TCP", model.IntOf(53)}}

	w.networkPolicy("default-deny", networkPolicySpec{PolicyTypes: []string{in, out}})
	w.networkPolicy("allow-same-namespace", networkPolicySpec{
		PolicyTypes: []string{in, out},
		Ingress:     []ingressRule{{From: within}},
		Egress:      []egressRule{{To: within}},
	})
	w.networkPolicy("allow-dns", networkPolicySpec{
		PolicyTypes: []string{out},
		Egress:      []egressRule{{To: dns, Ports: dnsPorts}},
	})
	var ingress []ingressRule
	for i, p := range policy.IngressFrom {
		path := fmt.Sprintf("networkPolicy.ingressFrom[%d]", i)
		ingress = append(ingress, ingressRule{[]policyPeer{w.peer(p, path)}, p.Ports})
	}
	if len(ingress) > 0 {
		w.networkPolicy("allow-ingress", networkPolicySpec{PolicyTypes: []string{in}, Ingress: ingress})
	}
	var egress []egressRule
	for i, p := range policy.EgressTo {
		path := fmt.Sprintf("networkPolicy.egressTo[%d]", i)
		egress = append(egress, egressRule{[]policyPeer{w.peer(p, path)}, p.Ports})
	}
	if len(egress) > 0 {
		w.networkPolicy("allow-egress", networkPolicySpec{PolicyTypes: []string{out}, Egress: egress})
	}
}

func (w *workspace) networkPolicy(name string, spec networkPolicySpec) {
	w.add(Object{"networking.k8s.io/v1", "NetworkPolicy", w.meta(name), spec}, "networkPolicy")
}

// peer returns the peer of a rule. It reports a peer without fields: it would allow
// everyone, which a platform must write out.
func (w *workspace) peer(p peer, path string) policyPeer {
	labels := p.NamespaceLabels != nil || p.PodLabels != nil
	switch {
	case labels && p.CIDR != "":
		w.misfit(path,
			"a peer is either pods by their labels or an address range: remove cidr or the labels")
	case !labels && p.CIDR == "":
		w.misfit(path,
			"a peer needs namespaceLabels, podLabels or cidr; cidr: \"0.0.0.0/0\" is everybody")
	case p.CIDR == "" && len(p.Except) > 0:
		w.misfit(path, "except leaves out parts of cidr, which is not given")
	case p.CIDR != "":
		w.checkRange(p, path)
		return policyPeer{IPBlock: &ipBlock{p.CIDR, p.Except}}
	}
	out := policyPeer{}
	if p.NamespaceLabels != nil {
		out.NamespaceSelector = &selector{*p.NamespaceLabels}
	}
	if p.PodLabels != nil {
		out.PodSelector = &selector{*p.PodLabels}
	}
	return out
}

// checkRange reports the address ranges that API servers refuse (Kubernetes'
// ValidateIPBlock): except must be strictly inside cidr.
func (w *workspace) checkRange(p peer, path string) {
	all, err := netip.ParsePrefix(p.CIDR)
	if err != nil {
		w.misfit(path+".cidr", "%s is not an address range", p.CIDR)
		return
	}
	for i, text := range p.Except {
		part, err := netip.ParsePrefix(text)
		switch path := fmt.Sprintf("%s.except[%d]", path, i); {
		case err != nil:
			w.misfit(path, "%s is not an address range", text)
		case !all.Contains(part.Addr()) || part.Bits() <= all.Bits():
			w.misfit(path, "%s is not inside %s", text, p.CIDR)
		}
	}
}
