package model

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Limits of names that kalypso emits, in characters.
const (
	MaxLabel       = 63 // a DNS label or a Kubernetes label value (RFC 1123, Kubernetes' apimachinery validation)
	MaxHelmRelease = 53 // a Helm release name (helm.sh/helm/v3/pkg/chartutil.ValidateReleaseName)
	MaxLinuxUser   = 32 // a Linux user name (useradd(8))
)

// UserName returns the name of the Linux user of a deployment target, which no namespace
// service names. No user's name begins with a digit.
func UserName(deploymentTarget string) string {
	if c := deploymentTarget[0]; c >= '0' && c <= '9' {
		deploymentTarget = "_" + deploymentTarget
	}
	return ShortName(deploymentTarget, MaxLinuxUser)
}

// ShortName returns name if it has at most limit characters, else its beginning
// and a hash of the whole, limit characters together. Different names get
// different short names but for collisions of 40 bits.
func ShortName(name string, limit int) string {
	if len(name) <= limit {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	hash := hex.EncodeToString(sum[:5])
	return strings.TrimRight(name[:limit-len(hash)-1], "-.") + "-" + hash
}

// IsDNSLabel says whether a name is a DNS label but for its length, which
// ShortName takes care of (RFC 1123, section 2.1): lower case letters, digits
// and, not at either end, dashes.
func IsDNSLabel(name string) bool {
	for i := range len(name) {
		c := name[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && (c != '-' || i == 0 || i == len(name)-1) {
			return false
		}
	}
	return name != ""
}

// IsName says whether a key of a collection is a #Name of the schema: a DNS label. CUE
// reports one that is not as a field that is not allowed.
func IsName(key string) bool { return IsDNSLabel(key) && len(key) <= MaxLabel }

// IsDevice says whether Windows keeps a name for a device, whatever ending it has
// (https://learn.microsoft.com/windows/win32/fileio/naming-a-file).
func IsDevice(name string) bool {
	base, _, _ := strings.Cut(strings.ToLower(name), ".")
	switch base {
	case "con", "prn", "aux", "nul":
		return true
	}
	port, found := strings.CutPrefix(base, "com")
	if !found {
		port, found = strings.CutPrefix(base, "lpt")
	}
	return found && len(port) == 1 && port[0] >= '0' && port[0] <= '9'
}

// IsDNSSubdomain says whether a name is DNS labels with dots between them, but for
// its length: what Kubernetes allows for most objects, though not for namespaces.
func IsDNSSubdomain(name string) bool {
	for label := range strings.SplitSeq(name, ".") {
		if !IsDNSLabel(label) {
			return false
		}
	}
	return true
}

// FullName returns the full name of a deployment target.
func FullName(workload, target string) string { return workload + "-" + target }
