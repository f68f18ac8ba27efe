package model

import (
	"crypto/sha256"
	"encoding/hex"
	"sort"
	"strings"
)

// Collection is one of the language's collections of entities, as a slice of an Environment.
// Its methods are the operations common to all collections.
type Collection interface {
	// Name returns the field of the language, such as "clusterTypes".
	Name() string
	// Distribute appends each entity of an environment to the environment that to returns for
	// it.
	Distribute(from *Environment, to func(Ref) *Environment)
	// Sort sorts the entities of an environment by their names.
	Sort(*Environment)
	// Identify sets the digest of each entity. For an entity that is a function of the
	// assignment, it uses the digest that function returns.
	Identify(m *Environment, function func(Ref) Digest)
}

// Collections are all collections except the environments, in the order of the schema's
// documentation.
var Collections = []Collection{
	collection[ClusterType, *ClusterType]{"clusterTypes",
		func(m *Environment) *[]ClusterType { return &m.ClusterTypes }},
	collection[Cluster, *Cluster]{"clusters", func(m *Environment) *[]Cluster { return &m.Clusters }},
	collection[Inventory, *Inventory]{"inventories",
		func(m *Environment) *[]Inventory { return &m.Inventories }},
	collection[Workspace, *Workspace]{"workspaces",
		func(m *Environment) *[]Workspace { return &m.Workspaces }},
	collection[Workload, *Workload]{"workloads",
		func(m *Environment) *[]Workload { return &m.Workloads }},
	collection[Registration, *Registration]{"registrations",
		func(m *Environment) *[]Registration { return &m.Registrations }},
	collection[SchedulingPolicy, *SchedulingPolicy]{"schedulingPolicies",
		func(m *Environment) *[]SchedulingPolicy { return &m.SchedulingPolicies }},
	collection[Config, *Config]{"configs", func(m *Environment) *[]Config { return &m.Configs }},
	collection[ConfigSchema, *ConfigSchema]{"configSchemas",
		func(m *Environment) *[]ConfigSchema { return &m.ConfigSchemas }},
	collection[NamespaceService, *NamespaceService]{"namespaceServices",
		func(m *Environment) *[]NamespaceService { return &m.NamespaceServices }},
	collection[Reconciler, *Reconciler]{"reconcilers",
		func(m *Environment) *[]Reconciler { return &m.Reconcilers }},
	collection[Test, *Test]{"tests", func(m *Environment) *[]Test { return &m.Tests }},
}

// CollectionNames are the names of all collections, environments first.
var CollectionNames = func() []string {
	names := []string{"environments"}
	for _, c := range Collections {
		names = append(names, c.Name())
	}
	return names
}()

// entity is a pointer to an entity of type T.
type entity[T any] interface {
	*T
	key() string
	// identify sets the entity's digest, which is empty before.
	identify(function func() Digest)
}

type collection[T any, P entity[T]] struct {
	name string
	of   func(*Environment) *[]T
}

// Name returns the name of the collection, such as "workloads".
func (c collection[T, P]) Name() string { return c.name }

// Distribute appends each entity of an environment, in order, to the environment that to
// returns for it.
func (c collection[T, P]) Distribute(from *Environment, to func(Ref) *Environment) {
	for _, e := range *c.of(from) {
		into := c.of(to(Ref{Collection: c.name, Name: P(&e).key()}))
		*into = append(*into, e)
	}
}

// Sort sorts the entities of an environment by their keys.
func (c collection[T, P]) Sort(m *Environment) {
	all := *c.of(m) // elements are large, so they are compared in place
	sort.Slice(all, func(i, j int) bool { return P(&all[i]).key() < P(&all[j]).key() })
}

// Identify sets the digests of the entities of an environment, which are empty before. For an
// entity that is a function of the assignment, function returns the digest.
func (c collection[T, P]) Identify(m *Environment, function func(Ref) Digest) {
	all := *c.of(m)
	for i := range all {
		e := P(&all[i])
		e.identify(func() Digest { return function(Ref{Collection: c.name, Name: e.key()}) })
	}
}

func (c *ClusterType) key() string      { return c.Name }
func (c *Cluster) key() string          { return c.Name }
func (i *Inventory) key() string        { return i.Name }
func (w *Workspace) key() string        { return w.Name }
func (w *Workload) key() string         { return w.Name }
func (r *Registration) key() string     { return r.Name }
func (p *SchedulingPolicy) key() string { return p.Name }
func (c *Config) key() string           { return c.Name }
func (s *ConfigSchema) key() string     { return s.Name }
func (s *NamespaceService) key() string { return s.Name }
func (r *Reconciler) key() string       { return r.Name }
func (t *Test) key() string             { return t.Name }

func (c *ClusterType) identify(func() Digest)      { c.Digest = digestOf(*c) }
func (c *Cluster) identify(func() Digest)          { c.Digest = digestOf(*c) }
func (i *Inventory) identify(func() Digest)        { i.Digest = digestOf(*i) }
func (r *Registration) identify(func() Digest)     { r.Digest = digestOf(*r) }
func (p *SchedulingPolicy) identify(func() Digest) { p.Digest = digestOf(*p) }
func (t *Test) identify(func() Digest)             {} // tests do not affect a build

func (w *Workload) identify(func() Digest) {
	w.Requires.identify()
	for i := range w.Targets {
		t := &w.Targets[i]
		t.Requires.identify()
		t.Digest = digestOf(*t)
	}
	w.Digest = digestOf(*w)
}

func (c *Config) identify(function func() Digest) {
	if c.Facts != nil {
		c.Digest = function()
		return
	}
	without := *c
	without.Match, without.Clusters, without.AllowEmpty = Selector{}, nil, false
	c.Digest = digestOf(without)
}

func (s *ConfigSchema) identify(func() Digest) {
	s.Schema.identify()
	without := *s
	without.Match, without.Clusters, without.AllowEmpty = Selector{}, nil, false
	s.Digest = digestOf(without)
}

func (s *NamespaceService) identify(function func() Digest) {
	if s.Facts != nil {
		s.Digest = function()
		return
	}
	s.Digest = digestOf(*s)
}

func (r *Reconciler) identify(function func() Digest) {
	if r.Facts != nil {
		r.Digest = function()
		return
	}
	r.Digest = digestOf(*r)
}

func (c *Contract) identify() {
	if c != nil {
		without := *c
		without.Ref = Ref{}
		c.Digest = digestOf(without)
	}
}

// digestOf returns the digest of an entity while its own Digest is still empty.
func digestOf(entity any) Digest { return DigestBytes(Encode(entity)) }

// The limits of names that kalypso emits, in characters.
const (
	// a DNS label or a Kubernetes label value (RFC 1123, Kubernetes' apimachinery validation)
	MaxLabel       = 63
	MaxHelmRelease = 53 // a Helm release name (helm.sh/helm/v3/pkg/chartutil.ValidateReleaseName)
	MaxLinuxUser   = 32 // a Linux user name (useradd(8))
)

// UserName returns the name of the Linux user of a deployment target that no namespace service
// names. The name does not begin with a digit.
func UserName(deploymentTarget string) string {
	if c := deploymentTarget[0]; c >= '0' && c <= '9' {
		deploymentTarget = "_" + deploymentTarget
	}
	return ShortName(deploymentTarget, MaxLinuxUser)
}

// ShortName returns name if it has at most limit characters. Otherwise it returns the beginning
// of name and a hash of the whole, together limit characters long. Different names have
// different short names, except for collisions of 40 bits.
func ShortName(name string, limit int) string {
	if len(name) <= limit {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	hash := hex.EncodeToString(sum[:5])
	return strings.TrimRight(name[:limit-len(hash)-1], "-.") + "-" + hash
}

// IsDNSLabel reports whether a name is a DNS label of any length (RFC 1123, section 2.1). A
// label consists of lower case letters, digits and dashes, and neither begins nor ends with a
// dash. ShortName limits the length.
func IsDNSLabel(name string) bool {
	for i := range len(name) {
		c := name[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && (c != '-' || i == 0 || i == len(name)-1) {
			return false
		}
	}
	return name != ""
}

// IsName reports whether a key of a collection is a #Name of the schema: a DNS label. CUE
// reports other keys as fields that are not allowed.
func IsName(key string) bool { return IsDNSLabel(key) && len(key) <= MaxLabel }

// IsDevice reports whether Windows reserves a name for a device, with any extension
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

// IsDNSSubdomain reports whether a name consists of DNS labels with dots between them,
// regardless of its length. Kubernetes allows such names for most objects, but not for
// namespaces.
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

// DeploymentTargets is the name of a pseudo-collection: the deployment targets of all
// workloads, by their full names. TargetNames has them by their short names.
const (
	DeploymentTargets = "deploymentTargets"
	TargetNames       = "deploymentTargets.name"
)

// References maps fields of the schema to the collection that they refer to. A key is
// <definition>.<field>; the value of the field, or each element of its list, is a name in that
// collection. The fields of #Assignment are the facts that a match constrains.
var References = map[string]string{
	"#Environment.after":    "environments",
	"#SoakGate.environment": "environments",

	"#ClusterType.reconciler":       "reconcilers",
	"#ClusterType.namespaceService": "namespaceServices",
	"#Cluster.clusterType":          "clusterTypes",
	"#Inventory.clusterType":        "clusterTypes",

	"#Workspace.environments": "environments",
	"#Workspace.clusterTypes": "clusterTypes",
	"#Workspace.policies":     "schedulingPolicies",

	"#Workload.workspace":           "workspaces",
	"#DeploymentTarget.environment": "environments",
	"#DeploymentTarget.dependsOn":   DeploymentTargets,
	"#Registration.workspace":       "workspaces",

	"#DeploymentTargetSelector.name":        TargetNames,
	"#DeploymentTargetSelector.workload":    "workloads",
	"#DeploymentTargetSelector.workspace":   "workspaces",
	"#DeploymentTargetSelector.environment": "environments",
	"#ClusterTypeSelector.name":             "clusterTypes",
	"#ClusterSelector.name":                 "clusters",

	"#Assignment.environment":      "environments",
	"#Assignment.workspace":        "workspaces",
	"#Assignment.workload":         "workloads",
	"#Assignment.deploymentTarget": DeploymentTargets,
	"#Assignment.clusterType":      "clusterTypes",

	"#TestedAssignment.environment":      "environments",
	"#TestedAssignment.workspace":        "workspaces",
	"#TestedAssignment.workload":         "workloads",
	"#TestedAssignment.deploymentTarget": DeploymentTargets,
	"#TestedAssignment.clusterType":      "clusterTypes",
	"#TestedAssignment.dependsOn":        DeploymentTargets,
	"#TestedAssignment.policies":         "schedulingPolicies",
	"#TestedAssignment.configs":          "configs",
	"#TestedAssignment.configSchemas":    "configSchemas",
	"#TestedAssignment.reconciler":       "reconcilers",
}
