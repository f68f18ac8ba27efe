package engine

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// reason is why a part of the last output stays as the record describes it, or why a cluster
// waits. A failure never deletes anything. retain.go, entry.go and settle.go decide what stays,
// and each decision names its reason here.
type reason int

const (
	// Reasons for recorded folders. The record repeats them.
	hiddenAssignments reason = iota
	emptySelector
	namedByEntries
	neededByClusters
	neededByFolders
	failedAssignment
	// Reasons for files at the root of a cluster type, which the record repeats too.
	failedIndex
	failedReconciler
	hiddenClusters
	foreignFolders
	// Reasons for entries of clusters, in the order of their reports.
	hiddenClass
	missingAssignment
	keptWithValues
	ownValuesKept
	noEntry
	otherClusterType
	// Reasons for entries of clusters that should have no entry any more.
	notListed
	typeWithoutEntries
	// Reasons for clusters that errors hide, of cluster types without entries.
	recordedClusters
	unrecordedFacts
	newValue
	// Reasons for assignments that fail because other parts stay.
	newValueInEntry
	otherReconciler
	keptNamespace
	unbuiltDependency
)

// reasonTexts has the texts of a reason. Fields of a subject replace the words in braces.
type reasonTexts struct {
	kept      string // the reason for a folder in the record
	code      diag.Code
	one, many string // messages about one cluster, and about several
	hint      string
	hints     string // the hint about several clusters; "" if it is the same
}

const (
	correctTargets  = "correct the errors of {targets} on {folder}; "
	correctCluster  = "correct the errors of {cluster}, or remove it from the platform"
	correctClusters = "correct the errors of these clusters, or remove them from the platform"
)

// reasons are the texts by reason.
var reasons = [...]reasonTexts{
	hiddenAssignments: {kept: "errors hide which assignments there are"},
	emptySelector:     {kept: "errors: " + string(diag.SelectsNoMore)},
	namedByEntries:    {kept: "entries of clusters name it, and stay"},
	neededByClusters:  {kept: "errors keep clusters from another folder that has it"},
	neededByFolders:   {kept: "a folder that is kept depends on it"},
	failedAssignment:  {kept: "errors: {value}"},
	failedIndex:       {kept: "errors: {value}"},
	failedReconciler:  {kept: "the reconciler {value} has errors"},
	hiddenClusters:    {kept: "errors: " + string(diag.LostCluster)},
	foreignFolders:    {kept: "folders of another reconciler are kept"},

	hiddenClass: {
		code: diag.WaitingClusters,
		one:  "cluster {cluster} stays with its folder: errors hide which class that is",
		many: "{n} clusters of {type} stay with their folders: errors hide which class that is " +
			"({clusters})",
		hint:  "correct the errors of configs and config schemas; it goes on with the next build",
		hints: "correct the errors of configs and config schemas; they go on with the next build",
	},
	missingAssignment: {
		code: diag.WaitingClusters,
		one: "cluster {cluster} stays with its folder: errors keep {targets} out of {folder}, which " +
			"comes next",
		many: "{n} clusters of {type} stay with their folders: errors keep {targets} out of {folder}, " +
			"which comes next ({clusters})",
		hint:  correctTargets + "it goes on with the next build",
		hints: correctTargets + "they go on with the next build",
	},
	keptWithValues: {
		code: diag.WaitingClusters,
		one: "cluster {cluster} stays with its folder: errors keep {targets} as it was in {folder}, " +
			"which comes next, with values of single clusters as they were",
		many: "{n} clusters of {type} stay with their folders: errors keep {targets} as it was in " +
			"{folder}, which comes next, with values of single clusters as they were ({clusters})",
		hint:  correctTargets + "it goes on with the next build",
		hints: correctTargets + "they go on with the next build",
	},
	ownValuesKept: {
		code: diag.WaitingClusters,
		one: "cluster {cluster} keeps its entry, and the values in it, as errors keep {targets} as it " +
			"was in {folder}",
		many: "{n} clusters of {type} keep their entries, and the values in them, as errors keep " +
			"{targets} as it was in {folder} ({clusters})",
		hint:  correctTargets + "it goes on with the next build",
		hints: correctTargets + "they go on with the next build",
	},
	noEntry: {
		code: diag.WaitingClusters,
		one: "cluster {cluster} gets no entry yet: errors keep {targets} as it was in {folder}, with " +
			"values of single clusters as they were",
		many: "{n} clusters of {type} get no entries yet: errors keep {targets} as it was in {folder}, " +
			"with values of single clusters as they were ({clusters})",
		hint:  correctTargets + "it goes on with the next build",
		hints: correctTargets + "they go on with the next build",
	},
	otherClusterType: {
		code: diag.OtherClusterType,
		one: "cluster {cluster} goes from cluster type {from} to {to}: what ran there is removed, and " +
			"runs anew",
		many: "{n} clusters go from cluster type {from} to {to}: what ran there is removed, and runs " +
			"anew ({clusters})",
		hint: "apply to it what kalypso bootstrap cluster {environment}/{cluster} prints: its " +
			"reconciler may not read the other folder before",
		hints: "apply to each of them what kalypso bootstrap cluster prints for it, as for " +
			"{environment}/{cluster}: its reconciler may not read the other folder before",
	},

	notListed: {
		code: diag.LeftCluster,
		one:  "cluster {cluster} is no longer listed, and its entry stays",
		many: "{n} clusters are no longer listed, and their entries stay: {first}",
		hint: "list it again, or remove what it pulls, once nothing runs there any more: " +
			"environments: {environmentLabel}: removals: clusters: [{quoted}]",
	},
	typeWithoutEntries: {
		code: diag.LeftCluster,
		one:  "cluster {cluster} is of a cluster type without entries, and its entry stays",
		many: "{n} clusters are of a cluster type without entries, and their entries stay: {first}",
		hint: `give the cluster type entries: "cluster" again, or bootstrap the cluster anew, and then ` +
			"remove what it pulled: environments: {environmentLabel}: removals: clusters: [{quoted}]",
	},

	recordedClusters: {
		code: diag.LostCluster,
		one: "errors hide cluster {cluster} of cluster type {type}: the cluster type goes on with what " +
			"is recorded of that",
		many: "errors hide clusters {cluster} and {more} more of cluster type {type}: the cluster type " +
			"goes on with what is recorded of that",
		hint:  correctCluster,
		hints: correctClusters,
	},
	unrecordedFacts: {
		code: diag.LostCluster,
		one: "errors hide cluster {cluster} of cluster type {type}, which stays as it is, because its " +
			"record does not say what of single clusters is in its files",
		many: "errors hide clusters {cluster} and {more} more of cluster type {type}, which stays as " +
			"it is, because its record does not say what of single clusters is in its files",
		hint:  correctCluster,
		hints: correctClusters,
	},
	newValue: {
		code: diag.LostCluster,
		one: "errors hide cluster {cluster} of cluster type {type}, and {targets} takes a new value " +
			"from each cluster: {value}",
		many: "errors hide clusters {cluster} and {more} more of cluster type {type}, and {targets} " +
			"takes a new value from each cluster: {value}",
		hint:  correctCluster,
		hints: correctClusters,
	},

	newValueInEntry: {
		code: diag.ClusterValues,
		one: "{targets} takes a new value from each cluster, {value}, and the entry of cluster " +
			"{cluster} stays as it is, without one",
		hint: "correct what is wrong with {cluster}, list it again, or remove it: environments: " +
			"{environmentLabel}: removals: clusters: [{quoted}]",
	},
	otherReconciler: {
		code: diag.ReconcilerChange,
		one: "cluster type {type} cannot go from {from} to {to} while {other} keeps its last good " +
			"folder",
		hint: "correct the errors of {other} first",
	},
	keptNamespace: {
		code: diag.NamespaceCollision,
		one:  "the namespace {value} is still that of {other}, which keeps its last good folder",
		hint: "correct the errors of {other} first",
	},
	unbuiltDependency: {
		code: diag.DependsOn,
		one:  "{targets} depends on {other}, which has errors and was never built",
		hint: "correct the errors of {other} first",
	},
}

// subject describes the clusters and assignments that a reason is about.
type subject struct {
	environment, clusterType string
	clusters, targets        []string // sorted; deployment targets
	folder                   string   // the folder that clusters should follow
	from, to                 string   // cluster types, or backends
	other                    string   // the deployment target that keeps its folder, or has none
	value                    string
}

// kept returns the text that the record has of a folder; value is a name or codes of errors that
// the text repeats, or "".
func (r reason) kept(value string) string {
	return strings.ReplaceAll(reasons[r].kept, "{value}", value)
}

// diagnostic returns the diagnostic of a reason, without the sites and the path.
func (r reason) diagnostic(s subject) diag.Diagnostic {
	first := ""
	if len(s.clusters) > 0 {
		first = s.clusters[0]
	}
	names := strings.Join(s.clusters[:min(len(s.clusters), 5)], ", ")
	if more := len(s.clusters) - 5; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	fill := strings.NewReplacer("{environment}", s.environment, "{environmentLabel}",
		model.Label(s.environment),
		"{type}", s.clusterType, "{folder}", s.folder, "{from}", s.from, "{to}", s.to, "{value}", s.value,
		"{other}", s.other, "{targets}", kubernetes.Few(s.targets), "{clusters}",
		kubernetes.Few(s.clusters),
		"{cluster}", first, "{quoted}", strconv.Quote(first), "{first}", names,
		"{n}", strconv.Itoa(len(s.clusters)), "{more}", strconv.Itoa(len(s.clusters)-1)).Replace
	texts := &reasons[r]
	message, hint := texts.one, texts.hint
	if len(s.clusters) > 1 {
		message = texts.many
		if texts.hints != "" {
			hint = texts.hints
		}
	}
	return diag.New(texts.code, fill(message)).Hinting(fill(hint))
}
