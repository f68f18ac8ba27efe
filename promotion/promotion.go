// Package promotion moves commits of a platform, or of an application, from environment to
// environment. After a base commit has run in one environment, the next one gets it as soon as
// the gates pass.
//
// All state is in git and on the forge, and every run begins by reading it. The record of a
// GitOps tree has the sources of an environment and its rings. Refs of the GitOps repository
// contain the orders of people, which are rejections and freezes. Statuses of commits contain the
// observed rollouts. The policies come from the head of the platform's branch. A run takes all
// steps that are possible now, and ends. Any number of runs may work at once, and any of them may
// be killed at any moment. The next run continues.
//
// A ring of an environment is a stage, and so is an environment without rings. A promotion passes
// through these packages in one direction:
//
//   - subject: the subject of promotion and compilation, a platform or an application.
//   - ledger: records about commits outside of the trees, statuses and orders.
//   - session: the state as it was read, and conclusions from it.
//   - verify: whether the records of trees are true, and so which holds apply.
//   - observe: the progress of rollouts.
//   - plan: the next source of each stage, and the commit for it.
//   - apply: pushes that commit or proposes it, and writes the decisions of people.
//
// Packages audit and changes read the state as well, to show the history.
package promotion

import (
	"context"
	"errors"
	"time"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/application"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/query/tables"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/git/remote"
	"github.com/kalypso-io/kalypso/promotion/apply"
	"github.com/kalypso-io/kalypso/promotion/audit"
	"github.com/kalypso-io/kalypso/promotion/changes"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/forges"
	"github.com/kalypso-io/kalypso/promotion/gate"
	"github.com/kalypso-io/kalypso/promotion/observe"
	"github.com/kalypso-io/kalypso/promotion/plan"
	"github.com/kalypso-io/kalypso/promotion/session"
	"github.com/kalypso-io/kalypso/promotion/subject"
	"github.com/kalypso-io/kalypso/promotion/verify"
)

// Request is the platform or application to promote, with the options of the run.
type Request = session.Request

// Access is the way for a program to reach a platform in a git repository, and to compile it.
type Access struct {
	// Compiler has the cache, the workers and the supervisor.
	Compiler compiler.Request
	// Applications lets the repository be an application's, too.
	Applications bool
	// Git are the options to reach repositories. Without a Store they have the default one.
	Git remote.Options
	// Forge is the kind of forge that hosts the repositories; "" to detect it by their URLs.
	Forge string
	Now   func() time.Time
}

// NewRequest returns the request with which every program opens a platform, by Open or
// session.Open. The caller adds the place of the platform.
func NewRequest(a Access) Request {
	r := Request{
		Now:        a.Now,
		Supervisor: a.Compiler.Supervisor,
		Remote: func(ctx context.Context, url string) (*remote.Remote, error) {
			return remote.Open(ctx, url, a.Git)
		},
		Forge: func(ctx context.Context, url string) (forge.Forge, error) {
			return forges.Open(ctx, url, a.Forge)
		},
	}
	if a.Git.Store == "" {
		a.Git.Store = remote.DefaultStore()
	}
	if a.Applications {
		r.Subjects = append(r.Subjects, subject.Application(application.Request{Cache: a.Compiler.Cache,
			Workers: a.Compiler.Workers, Supervisor: a.Compiler.Supervisor}))
	}
	r.Subjects = append(r.Subjects, subject.Platform(a.Compiler))
	return r
}

// Intent is the set of actions of a run in addition to the policies.
type Intent = plan.Intent

// Session is a platform's promotion as it was read, with the operations on it. It is for one
// goroutine. If others change the state meanwhile, the next write fails with git.ErrLostRace. A
// new Session sees the change.
type Session struct {
	state   *session.State
	records *verify.Records
	planner *plan.Planner
	applier *apply.Applier
}

// Open reads the state: the platform's head with its policies, and the records of all
// environments that have a GitOps tree. Close ends it.
func Open(ctx context.Context, r Request) (*Session, error) {
	state, err := session.Open(ctx, r)
	if err != nil {
		return nil, err
	}
	records := verify.New(state)
	if err := records.RestoreAll(ctx); err != nil {
		return nil, errors.Join(err, state.Close())
	}
	observer := observe.New(state, records)
	planner := plan.New(state, records, observer)
	return &Session{state, records, planner, apply.New(state, records, observer, planner)}, nil
}

// Close releases the repositories.
func (s *Session) Close() error { return s.state.Close() }

// By returns who runs this.
func (s *Session) By() string { return s.state.Request.By }

// Lacks returns the diagnostics of the base if it declares no environments, so that there is
// nothing to promote. It returns nil if the base declares some.
func (s *Session) Lacks() []diag.Diagnostic { return s.state.Platform.Lacks }

// From returns the branch that commits are promoted from, and the repository of it.
func (s *Session) From() (branch, repository string) {
	return s.state.Platform.Branch, s.state.Platform.Repository.URL
}

// Has reports whether the history of that branch has a commit.
func (s *Session) Has(ctx context.Context, commit git.Hash) (bool, error) {
	return s.state.Platform.Has(ctx, s.state.Platform.Branch, commit)
}

// CheckSkip returns an error if gates may not be passed over, because the policy of a requested
// stage does not allow it.
func (s *Session) CheckSkip(skip gate.Skip) error { return s.planner.CheckSkip(skip) }

// Plan returns the possible steps for the requested stages, and does not change anything.
func (s *Session) Plan(ctx context.Context, intent Intent) (*plan.Plan, error) {
	return s.planner.Plan(ctx, intent)
}

// Status returns the positions of commits. It evaluates all gates and writes nothing. most is the
// number of newest base commits to include, in addition to the commits of stages.
func (s *Session) Status(ctx context.Context, most int) (*plan.Status, error) {
	return s.planner.Status(ctx, most)
}

// Apply takes the possible steps for the requested stages, and returns the new status of each. A
// stage that fails does not block the others. The error joins the errors of all stages. With a
// saved plan, Apply only takes the steps of the plan. If anything has changed since the plan was
// made, it does nothing and returns plan.ErrMoved.
func (s *Session) Apply(ctx context.Context, intent Intent, saved *plan.Plan) ([]*plan.StageStatus,
	error) {
	return s.applier.Apply(ctx, intent, saved)
}

// Hydrate compiles the platform's head for the requested environments, and pushes it to the
// branches that GitOps Promoter takes proposals from. It evaluates no gates.
func (s *Session) Hydrate(ctx context.Context) ([]*plan.StageStatus, error) {
	return s.applier.Hydrate(ctx)
}

// Audit returns the events of the requested environments from a time on, oldest first.
func (s *Session) Audit(ctx context.Context, since time.Time) ([]audit.Event, error) {
	return audit.New(s.state, s.records).Audit(ctx, since)
}

// Changes calls f with the changes of each of the newest commits of the requested environments'
// GitOps branches, newest first. It does not compile anything.
func (s *Session) Changes(ctx context.Context, most int, f func(tables.Change) error) error {
	return changes.Each(ctx, s.state, most, f)
}

// Verify compiles the sources in the records of the requested environments, and compares the
// output. head is a branch or a commit of the GitOps repository; "" for the environments' own
// branches.
func (s *Session) Verify(ctx context.Context, head string) ([]*verify.Verification, error) {
	return s.records.Verify(ctx, head)
}

// Vet compiles the environments' own files of the platform's head with the deployed base commits.
// It returns the diagnostics, sorted, and the names of the stages that it left out.
func (s *Session) Vet(ctx context.Context) (ds []diag.Diagnostic, leftOut []string, err error) {
	return verify.Vet(ctx, s.state)
}

// Rollback brings the requested stages back to an earlier base commit, and holds them there.
func (s *Session) Rollback(ctx context.Context, to plan.RollbackTo,
	d plan.Decision) ([]*plan.StageStatus, error) {
	return s.applier.Rollback(ctx, to, d)
}

// Hold keeps the requested stages at their present sources.
func (s *Session) Hold(ctx context.Context, d plan.Decision) ([]*plan.StageStatus, error) {
	return s.applier.Hold(ctx, d)
}

// Release ends the holds of the requested stages, also after a rollback.
func (s *Session) Release(ctx context.Context, d plan.Decision) ([]*plan.StageStatus, error) {
	return s.applier.Release(ctx, d)
}

// Abort cancels the proposals for the requested stages.
func (s *Session) Abort(ctx context.Context, d plan.Decision) ([]*plan.StageStatus, error) {
	return s.applier.Abort(ctx, d)
}

// Freeze stops promotion to the requested environments, and returns which these are.
func (s *Session) Freeze(ctx context.Context, d plan.Decision) ([]string, error) {
	return s.applier.Freeze(ctx, d)
}

// Thaw ends the freezes of the requested environments, and returns which these are.
func (s *Session) Thaw(ctx context.Context) ([]string, error) { return s.applier.Thaw(ctx) }

// Reject makes sure that a base commit comes nowhere, and returns it.
func (s *Session) Reject(ctx context.Context, commit string, d plan.Decision) (string, error) {
	return s.applier.Reject(ctx, commit, d)
}

// Unreject takes a rejection back, and returns the commit.
func (s *Session) Unreject(ctx context.Context, commit string) (string, error) {
	return s.applier.Unreject(ctx, commit)
}
