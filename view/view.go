// Package view renders what runs where as pages: for a server, or as one file. It renders
// plain data from a Source. The Source may be a compiled platform (package platform), or an
// observer of clusters.
//
// Each page is HTML that can be read without scripts. Pages show the texts of a Source
// unchanged, whatever they contain. The texts are escaped and never markup, and long texts
// are cut.
package view

import (
	"context"
	"time"

	"github.com/kalypso-io/kalypso/view/graph"
)

// A Source provides the data of pages. Several goroutines call its methods. For an unknown
// name, a method returns a *NotFoundError. Lists are in the order in which pages show them.
type Source interface {
	PageData(ctx context.Context) (*PageData, error)
	// Fleet returns the workloads whose name, workspace or application contains a text.
	Fleet(ctx context.Context, contains string, p Page) (*Fleet, error)
	Environment(ctx context.Context, name string) (*Environment, error)
	Workload(ctx context.Context, name string, p Page) (*Workload, error)
	// Assignment returns the assignment of a deployment target, by its full name, to a
	// cluster type or a class of one. If they are not assigned to each other, the result has
	// the reason.
	Assignment(ctx context.Context, environment, clusterType, target string) (*Assignment, error)
	// ClusterType returns a cluster type or a class of one.
	ClusterType(ctx context.Context, environment, name string, p Page) (*ClusterType, error)
	// Clusters returns the clusters whose name, cluster type or class contains a text.
	Clusters(ctx context.Context, environment, contains string, p Page) (*Clusters, error)
	Cluster(ctx context.Context, environment, name string) (*Cluster, error)
	// Policies and Configs return the entities of a ring of the environment. The ring
	// matters if rings have commits of their own; then "" stands for the first one.
	Policies(ctx context.Context, environment, ring string) (*Policies, error)
	Configs(ctx context.Context, environment, ring string) (*Configs, error)
	Diagnostics(ctx context.Context) (*Diagnostics, error)
	// Search returns the entities with a text in their name, or in their parent's name, at most
	// so many; 0 for all. Entities with exactly that name are first.
	Search(ctx context.Context, contains string, most int) (*Search, error)
	Compare(ctx context.Context, before, after string) (*Comparison, error)
	// Changes returns the changes since a revision. "" stands for the revision of PageData.
	Changes(ctx context.Context, since string) (*Changes, error)
}

// NotFoundError says that a Source does not have an entity of a name.
type NotFoundError struct{ Message string }

// Error returns the message.
func (e *NotFoundError) Error() string { return e.Message }

// RingError says that a ring has no page, and lists the rings.
type RingError struct {
	Environment string
	Rings       []RingSource // the requested one is shown
	Err         error
}

// Error returns the reason.
func (e *RingError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *RingError) Unwrap() error { return e.Err }

// Page is a part of a long list. The zero Page is all of it.
type Page struct {
	Number int // from 1
	Size   int // 0 for all
}

// Part is the range of a list that a page shows.
type Part struct {
	Page
	Total int // of the list, in all of its pages
}

// PageData is the common data of all pages.
type PageData struct {
	Title string
	// Environments are their names in the order of promotion.
	Environments []string
	// Commit is the commit of the data, or the commit from which its files have changed. It
	// is "" without a commit. Revision is the start of the counted changes, or "".
	Commit   string
	Revision string
	Built    time.Time // zero if it is not known
	Errors   int
	Warnings int
	// Observed says that the source is an Observer. Compiled says that it has a compiled
	// platform, with values and policies.
	Observed, Compiled bool
	// SignedIn is the user who has signed in, and can sign out, or "".
	SignedIn string
	// Failure is why the data is older than the platform; "" if it is not. A Feed knows
	// it, or the source.
	Failure string
}

// Fleet is the matrix of workloads and environments.
type Fleet struct {
	Environments []EnvironmentSummary
	Workloads    []WorkloadRow
	Part         Part
	Contains     string // the workloads have this
}

// EnvironmentSummary counts the entities of an environment.
type EnvironmentSummary struct {
	Name         string
	Description  string
	After        []string // the environments that it is promoted from
	ClusterTypes int
	Clusters     int
	Workloads    int
	Assignments  int
	Failed       int     // of the assignments
	Unreadable   bool    // errors hide all of it
	Counts       *Counts // nil if nothing is observed, in all rows
}

// WorkloadRow is a workload in all environments.
type WorkloadRow struct {
	Name        string
	Workspace   string
	Application string
	Cells       []Cell // one for each environment, in their order
}

// Cell is a workload in one environment.
type Cell struct {
	Environment string
	Assignments int
	Clusters    int // that have one of the assignments, if clusters are listed
	Failed      int
	Versions    []Version // sorted by name
	Counts      *Counts
}

// Version is a version of a workload, and how many assignments have it.
type Version struct {
	Name        string // "" for no version
	Assignments int
}

// Environment is an environment with all its details.
type Environment struct {
	EnvironmentSummary
	ClusterTypes []ClusterTypeRow
	Workloads    []WorkloadRow // with one cell each
}

// ClusterTypeRow is a cluster type, or one of several classes of it.
type ClusterTypeRow struct {
	Environment string
	Name        string // of the folder: the cluster type, or the class
	ClusterType string
	Selectors   []string // of the class; its clusters match them
	Reconciler  string
	Ring        string // may be ""
	Clusters    int
	Assignments int
	Counts      *Counts
}

// AssignmentRow is an assignment in a list.
type AssignmentRow struct {
	Environment string
	ClusterType string // or the class
	Target      string // the full name
	Workload    string
	Namespace   string
	Version     string
	Clusters    int
	Failed      bool
	// Equal is the same for assignments of one workload with equal values and versions.
	Equal  string
	Counts *Counts
}

// Workload is a workload with all its details.
type Workload struct {
	WorkloadRow
	Description string
	Labels      []Pair
	Assignments []AssignmentRow
	Part        Part
	// Absent are pairs of its deployment targets and cluster types that no policy assigns to
	// each other, at most as many as a page may list.
	Absent []AssignmentRow
}

// Pair is a name with its value.
type Pair struct{ Name, Value string }

// Place is a position in a file. Link is the address at which the forge shows it, or "".
type Place struct {
	Text string // file:line:column
	Link string
}

// NamedEntity is an entity with a name, and its places in files.
type NamedEntity struct {
	Kind   string
	Name   string
	Places []Place
}

// Assignment is a deployment target on a cluster type: why it is there, or why it is not.
type Assignment struct {
	AssignmentRow
	Assigned    bool
	Workspace   string
	Application string
	Reconciler  string
	Rendered    bool
	DependsOn   []string
	Policies    []NamedEntity
	Values      []Value
	ChartValues []Value
	Objects     []Object
	Clusters    []string // that pull it, at most as many as a page may list
	Diagnostics []Diagnostic
	// Uncompiled is why there are no values, objects and reasons; "" if there are.
	Uncompiled string
	Running    []RunningRow // on clusters, as many as a page may list, the worst first
	Runs       int          // how many there are
	// Path is the graph of the configs that give it values, or nil.
	Path *graph.Graph
	// Why are the reasons of a pair that is not assigned, with the entities that they
	// name.
	Why    string
	Places []NamedEntity
}

// Value is a composed value with its origins.
type Value struct {
	Path     string
	Value    string // as JSON
	Secret   bool   // it is a reference to a secret
	From     []Origin
	Replaced []Origin
}

// Origin is a place that a value comes from.
type Origin struct {
	Text   string // such as: value of config base, layer 0
	Was    string // the text at the positions
	Places []Place
}

// Object is a file of an assignment's folder, or one object of it.
type Object struct {
	File string
	Name string // kind and name; "" if it is no object
	Text string
}

// ClusterType is a cluster type, or a class of one, with all its details.
type ClusterType struct {
	ClusterTypeRow
	Description string
	Labels      []Pair
	Classes     []ClusterTypeRow // of the cluster type, if it has several
	Assigned    []AssignmentRow
	Part        Part
}

// Clusters are the clusters of an environment.
type Clusters struct {
	Environment string
	Rows        []ClusterRow
	Part        Part
	Contains    string
	Observed    bool // rows show observations, and not the cluster's declaration
}

// ClusterRow is a cluster in a list.
type ClusterRow struct {
	Name        string
	ClusterType string
	Class       string // its folder
	Ring        string
	Labels      []Pair
	Inventory   string
	Workloads   int
	Counts      *Counts
	Seen        time.Time // the last report of it, or zero
}

// Cluster is a cluster with all its details.
type Cluster struct {
	ClusterRow
	Environment string
	Description string
	Address     string
	Pulls       string        // the folder that its reconciler pulls, in the environment's tree
	Selectors   []NamedEntity // of its class
	Values      []Pair        // its own, as JSON
	Places      []Place
	Assignments []AssignmentRow
	Running     []RunningRow
	History     []Transition // the newest changes of it
	Problem     string       // why the observations may be of another cluster, or ""
}

// RingSource is a ring with its commits. If the rings of an environment have commits of
// their own, a page shows the state of one ring.
type RingSource struct {
	Name, Base, Own string
	Shown           bool
}

// Policies are the scheduling policies of an environment.
type Policies struct {
	Environment string
	Rings       []RingSource
	Rows        []Policy
	Graph       *graph.Graph
}

// Policy is a scheduling policy with its selection.
type Policy struct {
	Name              string
	DeploymentTargets string   // the selector, as CUE
	ClusterTypes      string   // the selector, as CUE
	Clusters          string   // the selector of single clusters, as CUE, or ""
	Except            []string // excluded pairs: selectors, as CUE
	Deny              bool
	Pin               string
	Assignments       int
	Selected          []AssignmentRow // the first of them
	Places            []Place
}

// Configs are the configs of an environment.
type Configs struct {
	Environment string
	Rings       []RingSource
	Rows        []Config
	Graph       *graph.Graph
}

// Config is a container of values.
type Config struct {
	Name        string
	Layer       int
	Match       string // the selector, as CUE
	Clusters    string // the selector of single clusters, as CUE, or ""
	Keys        []string
	Assignments int
	Places      []Place
}

// Diagnostics are the problems of the platform.
type Diagnostics struct{ Rows []Diagnostic }

// Diagnostic is one error or warning.
type Diagnostic struct {
	Code     string
	Severity string
	Message  string
	Path     string
	Hint     string
	Follows  bool // from the one before
	// the line that it is about: the text before the place, at it and after it, or empty
	Excerpt     [3]string
	Places      []Place
	Assignments []string
}

// Search is a list of found entities.
type Search struct {
	Contains string
	Hits     []Hit
	More     bool // there are more
}

// Hit is one thing that was found. Page are the segments of the path of the page that shows it.
type Hit struct {
	Kind string
	Name string
	Of   string // its environment, and its cluster type, or ""
	Page []string
}

// Comparison is the difference between two environments.
type Comparison struct {
	Before, After string
	Workloads     []Difference
	Same          int // workloads without a difference
}

// Difference is one difference of a workload between two environments.
type Difference struct {
	Workload string
	In       string // the path of a value, or a word such as version
	Before   []string
	After    []string
}

// Changes are the effects of a change since a revision on clusters. Counts are of pairs
// of a deployment target and a cluster; a cluster type that lists no clusters counts as
// one.
type Changes struct {
	Since                              string
	Removed, Added, Changed, Unchanged int
	Clusters                           int // that are listed and that the change concerns
	// Emptied, Unlisted and Listed are the ids of clusters that are left without assignments,
	// no longer listed, and new.
	Emptied, Unlisted, Listed []string
	// Gone are the removed pairs, and New the added ones. Replaced are changed pairs that
	// lose something, such as a namespace, and Others the changed pairs that do not.
	Gone, New, Replaced, Others []ChangedAssignment
	// TypesGone and TypesNew are the ids of cluster types.
	TypesGone, TypesNew []string
	// Groups are the differences of files. Details are the differences that have no effect
	// of their own on clusters.
	Groups, Details []Change
	LeftOut         []string // ids of assignments that errors hide
}

// ChangedAssignment is the change of a deployment target on clusters of a type, on all of
// them alike.
type ChangedAssignment struct {
	ID string
	// Clusters are the first names of Count clusters; none if the cluster type lists none.
	Clusters []string
	Count    int
	// Lost are the objects that leave each of them, such as "namespace shop".
	Lost []string
	// RenamedTo and RenamedFrom are the new and the old name of a renamed deployment target.
	RenamedTo, RenamedFrom string
	Values                 []ChangedValue
	Objects                []string // as "Kind name", and files that are not objects
}

// Unnamed returns how many clusters the lists do not name.
func (a ChangedAssignment) Unnamed() int {
	if len(a.Clusters) == 0 {
		return 0
	}
	return a.Count - len(a.Clusters)
}

// ChangedValue is a value of the platform config; From or To is "" if the value does
// not exist on that side.
type ChangedValue struct{ Path, From, To string }

// Change is one difference of files, with its place.
type Change struct {
	File        string
	Object      string
	Path        string
	From, To    string
	Lines       []string // of a text that changed: a unified diff
	Assignments []string // ids
	Count       int      // of pairs that have it
	Others      []string // ids of cluster types, or of clusters, that have it
}
