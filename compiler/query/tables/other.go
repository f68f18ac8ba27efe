package tables

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/source"
)

// History is the name of the table whose rows are a source's Changes.
const History = "history"

// otherTables are those of what is wrong, what was before, and what the tables are of.
func otherTables() []*Table {
	return []*Table{
		{
			Name: "diagnostics", Doc: "What is wrong with the platform, as kalypso vet prints it without tests.", Key: 1,
			Columns: []Column{
				integer("id", "its number, from 1, in the order of positions"),
				text("environment", "the environment; empty for the base"),
				text("code", "the code, such as K2003"),
				text("severity", "error or warning"),
				text("message", "what is wrong"),
				text("path", "the CUE path that it is about"),
				text("file", "the file of the first position"),
				optional(integer("line", "the line in the file")),
				optional(integer("column", "the column in the line, in bytes")),
				text("hint", "the way out, where there is one to name"),
				jsonOf("assignments", "the assignments that it concerns, as ENVIRONMENT/CLUSTER-TYPE/DEPLOYMENT-TARGET, a list"),
			},
			rows: diagnostics,
		},
		{
			Name: History, Doc: "What commits of the environments' GitOps branches changed on clusters, " +
				"newest first, by the records in " +
				"these commits: a row for each deployment target and cluster type, and another where its " +
				"clusters differ in the change. " +
				"A cluster that only moves to another class has no row. " +
				"The table is empty without --history, and for environments without a gitops that is in a git repository.", Key: 7,
			Columns: []Column{
				environment,
				integer("number", "how many commits of the branch came after this one"),
				text("clusterType", "the cluster type"),
				text("deploymentTarget", "the full name of the deployment target"),
				text("change", "added, changed or removed"),
				text("versionBefore", "the version before the commit"),
				text("version", "the version after it"),
				text("workload", "the workload"),
				integer("clusters", "how many listed clusters the change is on; 0 where the cluster type lists none"),
				text("commitId", "the commit of the GitOps repository"),
				text("time", "the author's time of the commit, UTC, as RFC 3339 has it"),
				text("author", "the author of the commit"),
				text("subject", "the first line of the commit's message"),
				text("base", "the platform's commit that the assignment was compiled from"),
				text("own", "the commit of the environment's own files"),
				boolean("configured", "whether the composed values differ, also where it is added or removed"),
			},
			rows: func(ctx context.Context, s *Source, yield func(...any) error) error {
				if s.Changes == nil {
					return nil
				}
				return s.Changes(ctx, func(c Change) error {
					return yield(c.Environment, c.Number, c.ClusterType, c.DeploymentTarget, string(c.Kind),
						c.VersionBefore, c.Version, c.Workload, c.Clusters,
						c.Commit, c.Time.UTC().Format(time.RFC3339), c.Author, c.Subject, c.Base, c.Own, c.Configured)
				})
			},
		},
		{
			Name: "about", Doc: "What the tables are of: kalypso, its version; commit, the platform's " +
				"commit, or what is checked out, which the " +
				"folder may have changes to; committed, when that was committed. Without a git repository " +
				"the last two are not there.", Key: 1,
			Columns: []Column{text("name", "kalypso, commit or committed"), text("value", "what it is")},
			rows:    about,
		},
	}
}

func diagnostics(_ context.Context, s *Source, yield func(...any) error) error {
	for i, d := range s.Build.Diagnostics {
		file, line, column := "", any(nil), any(nil)
		if len(d.Sites) > 0 && !d.Sites[0].Position.IsZero() {
			at := d.Sites[0].Position
			file, line, column = at.File, at.Line, at.Column
		}
		err := yield(i+1, d.Environment, string(d.Code), string(d.Severity), d.Message, d.Path, file,
			line, column, d.Hint, append([]string{}, d.Assignments...))
		if err != nil {
			return err
		}
	}
	return nil
}

// Change is what a commit of an environment's GitOps branch changed of a deployment target on
// clusters of a type.
type Change struct {
	Environment, ClusterType, DeploymentTarget, Workload string

	Clusters        int // how many listed clusters it is on; 0 where the cluster type lists none
	Kind            ChangeKind
	Number          int    // of commits that came after it
	Commit          string // of the GitOps repository
	Time            time.Time
	Author, Subject string
	Base, Own       string // the commits that the assignment was compiled from
	VersionBefore   string
	Version         string
	Configured      bool // the composed values differ
}

// ChangeKind says what became of an assignment.
type ChangeKind string

// The kinds of changes.
const (
	Added   ChangeKind = "added"
	Changed ChangeKind = "changed"
	Removed ChangeKind = "removed"
)

func about(_ context.Context, s *Source, yield func(...any) error) error {
	if err := yield("kalypso", compiler.Version().Version); err != nil {
		return err
	}
	commit, committed, err := revisionOf(s)
	if err != nil || commit == "" {
		return err
	}
	if err := yield("commit", commit); err != nil {
		return err
	}
	return yield("committed", committed.UTC().Format(time.RFC3339))
}

// revisionOf returns the commit that a source is compiled from, or what is checked out where
// that is a folder; "" where there is none.
func revisionOf(s *Source) (commit string, committed time.Time, err error) {
	root, err := source.Root(s.Dir)
	if err != nil {
		return "", time.Time{}, err
	}
	repo, _, err := source.Repository(root)
	if err != nil {
		return "", time.Time{}, nil // a platform need not be in a repository
	}
	defer func() { err = errors.Join(err, repo.Close()) }()
	id, err := repo.Resolve(cmp.Or(s.Revision, "HEAD"))
	if err != nil {
		return "", time.Time{}, nil // nothing is committed yet
	}
	c, err := repo.Commit(id)
	if err != nil {
		return "", time.Time{}, err
	}
	return id.String(), c.Committer.When, nil
}
