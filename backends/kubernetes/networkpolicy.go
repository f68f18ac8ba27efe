package kubernetes

import (
	"fmt"
	"net/netip"

	"github.com/kalypso-io/kalypso/compiler/model"
)

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

// selector selects by labels; everything where there are none.
type selector struct {
	MatchLabels map[string]string `yaml:"matchLabels,omitempty"`
}

// networkPolicies adds isolation, one policy for each thing that passes so that
// a reviewer can tell them apart, and the service's own exceptions.
func (w *workspace) networkPolicies() {
	policy := w.service.NetworkPolicy
	if !policy.Isolated {
		return
	}
	const in, out = "Ingress", "Egress"
	within := []policyPeer{{PodSelector: &selector{}}}
	dns := []policyPeer{{NamespaceSelector: &selector{map[string]string{"kubernetes.io/metadata.name": "kube-system"}}}}
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

// peer returns the peer of a rule. One that says nothing would let everybody
// through, which must be written out.
func (w *workspace) peer(p peer, path string) policyPeer {
	labels := p.NamespaceLabels != nil || p.PodLabels != nil
	switch {
	case labels && p.CIDR != "":
		w.misfit(path, "a peer is either pods by their labels or an address range: remove cidr or the labels")
	case !labels && p.CIDR == "":
		w.misfit(path, "a peer needs namespaceLabels, podLabels or cidr; cidr: \"0.0.0.0/0\" is everybody")
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
