// Package api has the types that a hub and its clients exchange as JSON over HTTP, and the client.
// The server describes them as OpenAPI, at /openapi.json.
package api

import (
	"time"

	"github.com/kalypso-io/kalypso/hub/state"
)

// Report is the observed state of a cluster.
type Report struct {
	Cluster string `json:"cluster" minLength:"1" maxLength:"253" doc:"The cluster, as the platform lists it."`
	// By names the reporter for people.
	By       string    `json:"by,omitempty" maxLength:"253" doc:"Who reports, for people: a program, or a file."`
	At       time.Time `json:"at,omitzero" doc:"When it was observed, by the reporter's clock; the time of arrival where it is absent."`
	Snapshot bool      `json:"snapshot,omitempty" doc:"The items are all that there is on the cluster. What is not among them is not there."`
	Digest   string    `json:"digest,omitempty" maxLength:"128" doc:"Stands for the items of a snapshot. A snapshot with the digest of the last one may leave the items out; the answer is 409 where the hub needs them."`
	UID      string    `json:"uid,omitempty" maxLength:"128" doc:"Tells the cluster from others of its name, as the uid of the oldest object on it that is reported. Where that of a snapshot comes back after another one, two clusters have the name."`
	Items    []Item    `json:"items,omitempty" maxItems:"100000"`
}

// Item is the observed state of one assignment.
type Item struct {
	Assignment string    `json:"assignment,omitempty" maxLength:"512" doc:"<environment>/<cluster type>/<deployment target>; absent where object names it."`
	Object     string    `json:"object,omitempty" maxLength:"253" doc:"The name of the reconciler's object that applies the folder: a Kustomization, or an Application."`
	Commit     string    `json:"commit,omitempty" maxLength:"64" doc:"The commit of the GitOps branch that the state is about."`
	Before     string    `json:"before,omitempty" maxLength:"64" doc:"The commit that was applied, and ok, until the reconciler began to apply this one, which is progressing: where both have the same folder, it is ok all the time."`
	Applied    string    `json:"applied,omitempty" maxLength:"64" doc:"The commit that was applied last, where that is not commit, which is tried; unknown where the reconciler does not say which one it is."`
	Repository string    `json:"repository,omitempty" maxLength:"2000" doc:"The URL of the repository that the folder is taken from. What is said of repository, branch and path is compared with where it is wanted: another one is drift."`
	Branch     string    `json:"branch,omitempty" maxLength:"1024" doc:"The branch that is followed; or the tag or the commit, where none is."`
	Path       string    `json:"path,omitempty" maxLength:"1024" doc:"The folder of the repository that is applied."`
	Digest     string    `json:"digest,omitempty" maxLength:"64" doc:"The git id of that folder, from reporters that know it; then the commit does not matter."`
	State      string    `json:"state" enum:"ok,progressing,suspended,drifted,failed" doc:"As the reconciler reports it; suspended if somebody suspended it in the reconciler."`
	Message    string    `json:"message,omitempty" maxLength:"4096"`
	Since      time.Time `json:"since,omitzero" doc:"Since when it is in that state, by the reporter's clock."`
}

// Taken lists the parts of a report that the hub could not use.
type Taken struct {
	Unknown []string `json:"unknown,omitempty" doc:"Items that are no assignments of the cluster."`
	Early   bool     `json:"early,omitempty" doc:"No environment has the cluster yet. The report is kept, and counts once a GitOps branch is read that has it."`
}

// Counts are the numbers of assignments on clusters by state. The states add up to Wanted.
type Counts struct {
	Wanted      int `json:"wanted"`
	OK          int `json:"ok"`
	Progressing int `json:"progressing"`
	Behind      int `json:"behind"`
	Drifted     int `json:"drifted"`
	Stale       int `json:"stale"`
	Missing     int `json:"missing"`
	Failed      int `json:"failed"`
	Suspended   int `json:"suspended"`
}

// CountsOf returns the counts of a tally.
func CountsOf(t *state.Tally) Counts {
	return Counts{t.Wanted(), t[state.OK], t[state.Progressing], t[state.Behind], t[state.Drifted],
		t[state.Stale], t[state.Missing], t[state.Failed], t[state.Suspended]}
}

// Of returns the count of a state.
func (c *Counts) Of(s state.State) int {
	return [...]int{c.OK, c.Progressing, c.Behind, c.Drifted, c.Stale, c.Missing, c.Failed,
		c.Suspended}[s]
}

// Group is the number of assignments that share the same values of the dimensions.
type Group struct {
	Values map[string]string `json:"values" doc:"By dimension."`
	Counts
}

// Caveats are the problem and the warning that accompany an answer.
type Caveats struct {
	Problem string `json:"problem,omitempty" doc:"Why what is wanted may be older than the branches, or was never read."`
	Warning string `json:"warning,omitempty" doc:"What the hub does not know of the names that were asked for, and may know later; of a moment, that it is to come, or that the hub does not know all of it."`
}

// Groups are counts at a moment.
type Groups struct {
	At     time.Time `json:"at"`
	Oldest time.Time `json:"oldest,omitzero" doc:"Of an earlier moment: the counts are of some time from this one until at. Those of a cluster are exact."`
	Groups []Group   `json:"groups"`
	Caveats
}

// Environment is an environment with the commit of its GitOps branch and its counts.
type Environment struct {
	Name       string `json:"name"`
	Repository string `json:"repository"`
	Branch     string `json:"branch"`
	Path       string `json:"path,omitempty"`
	Commit     string `json:"commit,omitempty" doc:"The newest of the GitOps branch that the hub has read."`
	Rings      []Ring `json:"rings"`
	Clusters   int    `json:"clusters" doc:"That the platform lists."`
	Counts
	// Problem explains why the hub's view of the environment may be older than the branch.
	Problem string `json:"problem,omitempty"`
}

// Ring is a ring of an environment, or all of one without rings.
type Ring struct {
	Name string `json:"name,omitempty"`
	Base string `json:"base" doc:"The platform's commit that it was compiled from."`
	Own  string `json:"own" doc:"The commit of the environment's own files."`
	Counts
}

// Environments has all environments, in the order of promotion.
type Environments struct {
	Environments []Environment `json:"environments"`
	Caveats
}

// Assignments are assignments on clusters.
type Assignments struct {
	At          time.Time   `json:"at"`
	Assignments []state.Row `json:"assignments"`
	Next        string      `json:"next,omitempty" doc:"The cursor of the next page; absent at the end."`
	Caveats
}

// Cluster is a cluster with all its assignments.
type Cluster struct {
	Name         string      `json:"name"`
	Environments []string    `json:"environments"`
	Seen         time.Time   `json:"seen,omitzero"`
	By           string      `json:"by,omitempty"`
	Problem      string      `json:"problem,omitempty" doc:"Why what is known of it may be of another cluster."`
	Counts       Counts      `json:"counts"`
	Assignments  []state.Row `json:"assignments"`
}

// Transition is a change of an assignment on a cluster.
type Transition struct {
	Number      int64     `json:"number"`
	At          time.Time `json:"at"`
	Environment string    `json:"environment"`
	Cluster     string    `json:"cluster"`
	ClusterType string    `json:"clusterType"`
	Folder      string    `json:"folder,omitempty" doc:"Of the cluster type, or of a class of it; it, the ring and the base are absent where the hub did not keep them."`
	Ring        string    `json:"ring,omitempty"`
	Base        string    `json:"base,omitempty" doc:"The platform's commit that it was compiled from."`
	Workload    string    `json:"workload"`
	Target      string    `json:"deploymentTarget"`
	Was         string    `json:"was,omitempty"`
	State       string    `json:"state" doc:"A state, or gone: it is wanted no more."`
	Version     string    `json:"version,omitempty"`
	Wanted      string    `json:"wanted,omitempty"`
	Running     string    `json:"running,omitempty"`
	Commit      string    `json:"commit,omitempty"`
	Message     string    `json:"message,omitempty"`
}

// Gone is the State of a Transition after which no environment wants the assignment any more.
const Gone = "gone"

// History is a page of changes, the newest first.
type History struct {
	Transitions []Transition `json:"transitions"`
	Next        string       `json:"next,omitempty"`
	Caveats
}

// Release is a commit that changed the content of a ring of an environment.
type Release struct {
	Environment string    `json:"environment"`
	Ring        string    `json:"ring,omitempty"`
	Commit      string    `json:"commit"`
	Base        string    `json:"base"`
	Own         string    `json:"own"`
	Author      string    `json:"author,omitempty"`
	Subject     string    `json:"subject,omitempty"`
	Committed   time.Time `json:"committed" doc:"The time of the newest commit of the platform that the ring did not have before, S or E. Of a rollback, and of what is not known, that of the commit."`
	At          time.Time `json:"at" doc:"When the hub first read it; of what was there before the hub, the time of the commit."`
	Completed   time.Time `json:"completed,omitzero" doc:"When all of it was ok for the first time."`
	Failed      time.Time `json:"failed,omitzero" doc:"When more of it had failed than the platform lets fail, for the first time."`
	Restored    time.Time `json:"restored,omitzero" doc:"When all of the ring was ok for the first time after that, by the same release or a later one."`
}

// Releases is a page of releases, the newest first.
type Releases struct {
	Releases []Release `json:"releases"`
	Next     string    `json:"next,omitempty"`
	Caveats
}

// Performance has the measures of an environment's releases. A release is a commit that changed the
// content of a ring.
type Performance struct {
	Environment string  `json:"environment"`
	Releases    int     `json:"releases" doc:"That were committed in the time."`
	PerWeek     float64 `json:"perWeek"`
	Completed   int     `json:"completed" doc:"Of those: how many were ok everywhere."`
	LeadMedian  int     `json:"leadMedianSeconds,omitempty" doc:"How long half of the complete ones took at most, from the time that they were committed, of the platform, until all was ok."`
	LeadP90     int     `json:"leadP90Seconds,omitempty" doc:"How long nine of ten took at most."`
	Failed      int     `json:"failed" doc:"Of how many more failed than the platform lets fail."`
	FailureRate float64 `json:"failureRate" doc:"The failed part of those that were complete or failed, from 0 to 1."`
	Restored    int     `json:"restored" doc:"Of how many of the failed ones the ring was ok later, by the same release or a later one."`
	Restore     int     `json:"restoreMedianSeconds,omitempty" doc:"How long half of those took at most, from the failure on."`
}

// Performances has the performance of environments in a period.
type Performances struct {
	Since        time.Time     `json:"since"`
	Until        time.Time     `json:"until"`
	Environments []Performance `json:"environments"`
	Caveats
}

// Token is the credential of a reporter or a person. Secret is set only in the answer that creates
// the token.
type Token struct {
	ID          string    `json:"id"`
	Role        string    `json:"role" enum:"cluster,enroll,viewer,operator,admin"`
	Cluster     string    `json:"cluster,omitempty" doc:"Of role cluster: the one that it may report about."`
	Environment string    `json:"environment,omitempty" doc:"The one that it is for; absent for all."`
	Note        string    `json:"note,omitempty"`
	Made        time.Time `json:"made"`
	MadeBy      string    `json:"madeBy,omitempty"`
	Expires     time.Time `json:"expires,omitzero"`
	Used        time.Time `json:"used,omitzero"`
	Revoked     time.Time `json:"revoked,omitzero"`
	Secret      string    `json:"secret,omitempty"`
	Warning     string    `json:"warning,omitempty" doc:"Of a new one: why it may not do what was meant."`
}

// Tokens are all tokens.
type Tokens struct {
	Tokens []Token `json:"tokens"`
	Next   string  `json:"next,omitempty"`
}

// NewToken is a request for a new token.
type NewToken struct {
	Role        string `json:"role" enum:"cluster,enroll,viewer,operator,admin"`
	Cluster     string `json:"cluster,omitempty" maxLength:"253"`
	Environment string `json:"environment,omitempty" maxLength:"253"`
	Note        string `json:"note,omitempty" maxLength:"1000"`
	Days        int    `json:"days,omitempty" minimum:"0" maximum:"3650" doc:"After how many days it expires; 0 for never."`
}

// Enrollment is a request for the token of a cluster, with a token of role enroll.
type Enrollment struct {
	Cluster string `json:"cluster" minLength:"1" maxLength:"253"`
}

// Event is an entry of the audit.
type Event struct {
	Number  int64     `json:"number"`
	At      time.Time `json:"at"`
	Who     string    `json:"who"`
	Action  string    `json:"action"`
	Subject string    `json:"subject,omitempty"`
	Detail  string    `json:"detail,omitempty"`
}

// Events is a page of the audit, the newest first.
type Events struct {
	Events []Event `json:"events"`
	Next   string  `json:"next,omitempty"`
}
