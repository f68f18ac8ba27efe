package kubernetes

import "strings"

// clusterScopedKinds are the kinds whose objects have no namespace, by group:
// those of Kubernetes (`kubectl api-resources --namespaced=false`) and of what
// platforms often install. Others say so with an empty metadata.namespace.
var clusterScopedKinds = map[string]string{
	"": "Namespace Node PersistentVolume ComponentStatus",
	"admissionregistration.k8s.io": "MutatingWebhookConfiguration ValidatingWebhookConfiguration " +
		"ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding MutatingAdmissionPolicy " +
		"MutatingAdmissionPolicyBinding",
	"apiextensions.k8s.io":         "CustomResourceDefinition",
	"apiregistration.k8s.io":       "APIService",
	"certificates.k8s.io":          "CertificateSigningRequest ClusterTrustBundle",
	"flowcontrol.apiserver.k8s.io": "FlowSchema PriorityLevelConfiguration",
	"networking.k8s.io":            "IngressClass IPAddress ServiceCIDR",
	"node.k8s.io":                  "RuntimeClass",
	"policy.networking.k8s.io":     "AdminNetworkPolicy BaselineAdminNetworkPolicy ClusterNetworkPolicy",
	"rbac.authorization.k8s.io":    "ClusterRole ClusterRoleBinding",
	"resource.k8s.io":              "DeviceClass DeviceTaintRule ResourceSlice",
	"scheduling.k8s.io":            "PriorityClass",
	"storage.k8s.io":               "StorageClass CSIDriver CSINode VolumeAttachment VolumeAttributesClass",
	"snapshot.storage.k8s.io":      "VolumeSnapshotClass VolumeSnapshotContent",
	"groupsnapshot.storage.k8s.io": "VolumeGroupSnapshotClass VolumeGroupSnapshotContent",
	"storagemigration.k8s.io":      "StorageVersionMigration",
	"internal.apiserver.k8s.io":    "StorageVersion",
	"gateway.networking.k8s.io":    "GatewayClass",

	"cert-manager.io": "ClusterIssuer",
	"cilium.io": "CiliumClusterwideNetworkPolicy CiliumClusterwideEnvoyConfig " +
		"CiliumLoadBalancerIPPool CiliumCIDRGroup",
	"crd.projectcalico.org":     "GlobalNetworkPolicy GlobalNetworkSet IPPool Tier",
	"projectcalico.org":         "GlobalNetworkPolicy GlobalNetworkSet IPPool Tier",
	"external-secrets.io":       "ClusterSecretStore ClusterExternalSecret ClusterPushSecret",
	"karpenter.sh":              "NodePool NodeClaim",
	"kueue.x-k8s.io":            "ClusterQueue ResourceFlavor AdmissionCheck",
	"kyverno.io":                "ClusterPolicy ClusterCleanupPolicy GlobalContextEntry",
	"policy.sigstore.dev":       "ClusterImagePolicy TrustRoot",
	"project.openshift.io":      "Project",
	"security.openshift.io":     "SecurityContextConstraints",
	"templates.gatekeeper.sh":   "ConstraintTemplate",
	"constraints.gatekeeper.sh": "*",
	"trust.cert-manager.io":     "Bundle",
}

// clusterScoped says whether the objects of a kind are known to have no namespace.
func clusterScoped(group, kind string) bool {
	for known := range strings.FieldsSeq(clusterScopedKinds[group]) {
		if known == kind || known == "*" {
			return true
		}
	}
	return false
}
