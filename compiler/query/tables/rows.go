package tables

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/query"
	"github.com/kalypso-io/kalypso/compiler/source"
)

// classes has a row for each class of a cluster type.
func classes() *Table {
	return &Table{
		Name: "classes", Doc: "The classes of cluster types: the clusters that no selector tells " +
			"apart, which follow one folder. " +
			"A cluster type without selectors of clusters is one class.", Key: 2,
		Columns: []Column{
			environment,
			text("folder", "the class's folder, which assignments call their cluster type"),
			text("clusterType", "the cluster type"),
			jsonOf("selectors", "the selectors of clusters that hold for it, a list"),
			integer("clusters", "how many listed clusters follow it"),
			integer("assignments", "how many assignments are on it"),
		},
		References: []Reference{refer("cluster_types", "environment", "clusterType")},
		rows: func(_ context.Context, s *Source, yield func(...any) error) error {
			for _, ct := range query.ClusterTypes(s.Build) {
				for _, c := range ct.Classes {
					if err := yield(ct.Environment, c.Folder, ct.Name, c.Selectors, c.Clusters,
						c.Assignments); err != nil {
						return err
					}
				}
			}
			return nil
		},
	}
}

// assignmentValues has a row for each composed value. A value without a known origin has the zero
// Origin.
func assignmentValues() *Table {
	return &Table{
		Name: "assignment_values", Doc: "The composed values of assignments without errors, with " +
			"where they come from. What looks like a " +
			"plaintext secret is masked. What single clusters have is in cluster_values.", Key: 4,
		Columns: slices.Concat(assignmentKey(), []Column{
			text("path", "the value's path"),
			jsonOf("value", "the value"),
			text("type", "what the value is: string, int, float, bool, list, struct, null, or secret for "+
				"a reference to one"),
			text("kind", "how it was set: value, default, override, contract default or constraint"),
			text("setBy", "the config that set it, else the contract"),
			optional(integer("layer", "the config's layer")),
			text("file", "the file that it is written in"),
			optional(integer("line", "the line in the file")),
			jsonOf("alsoSetBy", "others that set the same value, a list"),
			jsonOf("replaced", "those whose value it replaced, a list"),
		}),
		References: []Reference{refer("assignments", "environment", "clusterType", "deploymentTarget")},
		rows: func(ctx context.Context, s *Source, yield func(...any) error) error {
			return query.EachValues(ctx, s.Build, func(a *query.Assignment, values []query.Value) error {
				for _, v := range values {
					var from query.Origin // the zero Origin if none is known
					if len(v.From) > 0 {
						from = v.From[0]
					}
					var layer any
					if from.Layer != nil {
						layer = *from.Layer
					}
					file, line := first(from.Positions)
					err := yield(a.Environment, a.ClusterType, a.DeploymentTarget, v.Path, v.Value,
						v.Value.Kind().String(), string(from.Kind), from.Name, layer, file, line,
						others(v.From[min(1, len(v.From)):], from.Name), others(v.Replaced, ""))
					if err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

// clusterValues has a row for each value of a single cluster.
func clusterValues() *Table {
	return &Table{
		Name: "cluster_values", Doc: "The values that single clusters have for themselves: their own, " +
			"and those that configs compose of facts of " +
			"single clusters. For the cluster they replace those of assignment_values, a composed one " +
			"its own path, an own one all at or below its first field.", Key: 4,
		Columns: []Column{
			environment,
			text("cluster", "the cluster"),
			text("deploymentTarget", "the full name of the one that it is composed for; empty for a "+
				"value of the cluster's own"),
			text("path", "the value's path"),
			jsonOf("value", "the value; null where one of the assignment is taken away"),
			text("type", "what the value is, as in assignment_values"),
			text("file", "the file that the cluster's own value is written in"),
			optional(integer("line", "the line in the file")),
		},
		References: []Reference{refer("clusters", "environment", "cluster")},
		rows: func(_ context.Context, s *Source, yield func(...any) error) error {
			return query.EachClusterValue(s.Build, func(v *query.ClusterValue) error {
				file, line := first(v.Positions)
				return yield(v.Environment, v.Cluster, v.DeploymentTarget, v.Path, v.Value,
					v.Value.Kind().String(), file, line)
			})
		},
	}
}

// first returns the file and line of the first position. It returns "" and nil without positions.
func first(of []model.Position) (file string, line any) {
	if len(of) == 0 {
		return "", nil
	}
	return of[0].File, of[0].Line
}

// others returns the names of origins except than, without duplicates.
func others(of []query.Origin, than string) []string {
	names := []string{}
	for _, o := range of {
		if o.Name != than && !slices.Contains(names, o.Name) {
			names = append(names, o.Name)
		}
	}
	return names
}

// versions counts the assignments of each workload that have the same version.
func versions() *Table {
	return &Table{
		Name: "versions", Doc: "How many assignments of a workload have which version.", Key: 3,
		Columns: []Column{
			environment,
			text("workload", "the workload"),
			text("version", "the version; empty for assignments without one"),
			integer("assignments", "how many assignments have it"),
			integer("failed", "how many of them have errors"),
		},
		References: []Reference{refer("workloads", "environment", "workload")},
		rows: func(ctx context.Context, s *Source, yield func(...any) error) error {
			type count struct{ assignments, failed int }
			counted := map[[3]string]count{}
			assignments, err := query.Assignments(ctx, s.Build)
			if err != nil {
				return err
			}
			for _, a := range assignments {
				key := [3]string{a.Environment, a.Workload, a.Version}
				v := counted[key]
				v.assignments++
				if a.Failed {
					v.failed++
				}
				counted[key] = v
			}
			for _, key := range slices.SortedFunc(maps.Keys(counted),
				func(x, y [3]string) int { return slices.Compare(x[:], y[:]) }) {
				if err := yield(key[0], key[1], key[2], counted[key].assignments,
					counted[key].failed); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// diagnostics has a row for each diagnostic of the build.
func diagnostics() *Table {
	return &Table{
		Name: "diagnostics",
		Doc:  "What is wrong with the platform, as kalypso vet prints it without tests.", Key: 1,
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
			jsonOf("assignments",
				"the assignments that it concerns, as ENVIRONMENT/CLUSTER-TYPE/DEPLOYMENT-TARGET, a list"),
		},
		rows: func(_ context.Context, s *Source, yield func(...any) error) error {
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
		},
	}
}

// History is the name of the table whose rows are a source's Changes.
const History = "history"

// history has a row for each of the source's Changes.
func history() *Table {
	return &Table{
		Name: History, Doc: "What commits of the environments' GitOps branches changed on clusters, " +
			"newest first, by the records in " +
			"these commits: a row for each deployment target and cluster type, and another where its " +
			"clusters differ in the change. " +
			"A cluster that only moves to another class has no row. " +
			"The table is empty without --history, and for environments without a gitops that is in a git " +
			"repository.", Key: 7,
		Columns: []Column{
			environment,
			integer("number", "how many commits of the branch came after this one"),
			text("clusterType", "the cluster type"),
			text("deploymentTarget", "the full name of the deployment target"),
			text("change", "added, changed or removed"),
			text("versionBefore", "the version before the commit"),
			text("version", "the version after it"),
			text("workload", "the workload"),
			integer("clusters",
				"how many listed clusters the change is on; 0 where the cluster type lists none"),
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
	}
}

// Change is the change of a deployment target on clusters of a type, by a commit of an
// environment's GitOps branch.
type Change struct {
	Environment, ClusterType, DeploymentTarget, Workload string

	Clusters        int // the number of its listed clusters; 0 if the cluster type lists none
	Kind            ChangeKind
	Number          int    // the number of later commits
	Commit          string // of the GitOps repository
	Time            time.Time
	Author, Subject string
	Base, Own       string // the commits that the assignment was compiled from
	VersionBefore   string
	Version         string
	Configured      bool // whether the composed values differ
}

// ChangeKind is the kind of a change of an assignment.
type ChangeKind string

// The kinds of changes.
const (
	Added   ChangeKind = "added"
	Changed ChangeKind = "changed"
	Removed ChangeKind = "removed"
)

// aboutTable has a row for each thing that the tables depend on.
func aboutTable() *Table {
	return &Table{
		Name: "about", Doc: "What the tables are of: kalypso, its version; commit, the platform's " +
			"commit, or what is checked out, which the " +
			"folder may have changes to; committed, when that was committed. Without a git repository " +
			"the last two are not there.", Key: 1,
		Columns: []Column{text("name", "kalypso, commit or committed"), text("value", "what it is")},
		rows: func(_ context.Context, s *Source, yield func(...any) error) error {
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
		},
	}
}

// revisionOf returns the commit that a source is compiled from. For a folder, this is the commit
// that is checked out. It returns "" if there is no commit.
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
