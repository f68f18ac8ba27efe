// Package session reads the state of a platform's promotion: repositories, the platform with its
// policies, and the GitOps branch of each environment with its record, history and orders.
//
// Open reads the state. The package reads further parts on request, and caches them. It does not
// write anything. State has the data of all stages, Platform the base commits, Environment one
// GitOps branch, and Stage one ring of it.
//
// For example, the first commit of a platform has the files of examples/promotion, and its GitOps
// repository is empty. Open gets a Request with the platform's Repository, and "." as the Path. It
// returns a State with the environments dev, stage and prod. The IDs of its Stages are dev, stage,
// prod/canary and prod/stores. Has of each stage returns the zero [tree.Source], because there is
// no record yet.
package session

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/git/remote"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/plain"
	"github.com/kalypso-io/kalypso/promotion/ledger"
)

// State is the state of a platform's promotion as it was read. It is for one goroutine.
// If others change it meanwhile, a write fails with git.ErrLostRace. A new State sees
// the change.
type State struct {
	Request      Request
	Now          time.Time
	Platform     *Platform
	Environments map[string]*Environment // by name
	// Stages are sorted so that a stage comes after the stages that it waits for.
	Stages []*Stage
	opener *opener
	moved  map[*Environment]*Move
	lines  map[string]*line // of branches with own files
	// declared has the environments that commits of the platform declare.
	declared map[git.Hash][]model.Declaration
	// reverts are the base commits that take others back.
	reverts map[git.Hash]*reverting
}

// PlatformError is the error if the platform's head has errors in its base. Nothing can be
// promoted, because policies cannot be read.
type PlatformError struct {
	What        string // platform, or application
	Commit      string
	Diagnostics []diag.Diagnostic
}

// Error names the commit whose base has errors.
func (e *PlatformError) Error() string {
	return "the base of the " + e.What + " has errors at commit " + e.Commit +
		", so that its policies are not known: nothing is promoted"
}

// Open reads the state: the platform's head with its policies, and the records of all
// environments that have a GitOps tree. Close ends it.
func Open(ctx context.Context, r Request) (*State, error) {
	s := &State{Request: r, Now: r.Now(), Environments: map[string]*Environment{},
		moved: map[*Environment]*Move{}, lines: map[string]*line{}, reverts: map[git.Hash]*reverting{},
		declared: map[git.Hash][]model.Declaration{}}
	s.opener = &opener{request: &s.Request, now: s.Now, known: map[string]*Repository{},
		unopened: map[string]error{}, names: ledger.Names{}}
	if err := s.read(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close releases the repositories.
func (s *State) Close() error {
	if s.Platform != nil {
		s.Platform.Bases.stop()
	}
	for _, l := range s.lines {
		l.stop()
	}
	return s.opener.close()
}

func (s *State) read(ctx context.Context) error {
	var err error
	if s.Platform, err = s.openPlatform(ctx); err != nil {
		return err
	}
	s.opener.allowedSigners = s.Platform.allowedSigners
	for i := range s.Platform.Policies {
		for _, former := range s.Platform.Policies[i].Formerly {
			s.opener.names[former] = s.Platform.Policies[i].Name
		}
	}
	if repo := s.Platform.Repository; repo.Plain { // now that it is known whose signatures count
		if repo.Forge, err = s.opener.plainForge(repo); err != nil {
			return err
		}
	}
	if err := s.checkRequest(); err != nil {
		return err
	}
	s.opener.openRemotes(ctx, s.Platform.Policies)
	for i := range s.Platform.Policies {
		policy := &s.Platform.Policies[i]
		if s.Environments[policy.Name], err = s.openEnvironment(ctx, policy); err != nil {
			if err := s.Unreadable(ctx, policy, err); err != nil {
				return err
			}
		}
	}
	s.gather(ctx)
	for i := range s.Platform.Policies {
		policy := &s.Platform.Policies[i]
		env := s.Environments[policy.Name]
		if err := s.Bounded(ctx, env, func() error { return env.read(ctx) }); err != nil {
			if err := s.Unreadable(ctx, policy, err); err != nil {
				return err
			}
		}
	}
	s.Stages = s.stagesInOrder()
	return nil
}

// Unreadable records an environment whose state cannot be read. The environment is blocked, and
// others continue. Unreadable returns the error if the environment is the only one requested, or
// if it has moved meanwhile.
func (s *State) Unreadable(ctx context.Context, policy *model.Declaration, err error) error {
	if ctx.Err() != nil || errors.Is(err, git.ErrLostRace) || errors.Is(err, remote.ErrNotLocal) ||
		slices.Equal(s.Request.Environments, []string{policy.Name}) {
		return fmt.Errorf("environment %s: %w", policy.Name, err)
	}
	s.Environments[policy.Name] = &Environment{Policy: policy, Absent: err.Error(), Unreadable: true}
	return nil
}

// stagesInOrder returns all stages, each after the stages that it waits for. The platform was
// checked for cycles.
func (s *State) stagesInOrder() []*Stage {
	var out []*Stage
	done := map[string]bool{}
	var environment func(name string)
	environment = func(name string) {
		policy := s.Platform.Policy(name)
		if policy == nil || done[name] {
			return
		}
		done[name] = true
		for _, before := range policy.After {
			environment(before)
		}
		out = append(out, s.inOrder(policy)...)
	}
	for i := range s.Platform.Policies {
		environment(s.Platform.Policies[i].Name)
	}
	return out
}

// inOrder returns the stages of an environment, each after the stages that it waits
// for.
func (s *State) inOrder(policy *model.Declaration) []*Stage {
	rings := policy.Promotion.Rings
	if len(rings) == 0 {
		return []*Stage{{Policy: policy, Environment: s.Environments[policy.Name]}}
	}
	var out []*Stage
	done := map[string]bool{}
	var ring func(i int)
	ring = func(i int) {
		if done[rings[i].Name] {
			return
		}
		done[rings[i].Name] = true
		for _, before := range rings[i].After {
			if n := slices.IndexFunc(rings, func(r model.Ring) bool { return r.Name == before }); n >= 0 {
				ring(n)
			}
		}
		out = append(out,
			&Stage{Policy: policy, Ring: &rings[i], Environment: s.Environments[policy.Name]})
	}
	for i := range rings {
		ring(i)
	}
	return out
}

// Names returns the names of the environments of the policy.
func (s *State) Names() (names []string) {
	for i := range s.Platform.Policies {
		names = append(names, s.Platform.Policies[i].Name)
	}
	return names
}

// StagesOf returns the stages of an environment.
func (s *State) StagesOf(environment string) []*Stage {
	return slices.DeleteFunc(slices.Clone(s.Stages),
		func(of *Stage) bool { return of.Policy.Name != environment })
}

// Requested returns the stages of the request, in order.
func (s *State) Requested() []*Stage {
	return slices.DeleteFunc(slices.Clone(s.Stages), func(of *Stage) bool {
		return len(s.Request.Environments) > 0 &&
			!slices.Contains(s.Request.Environments, of.Policy.Name) ||
			s.Request.Ring != "" && of.RingName() != s.Request.Ring
	})
}

// RequestedEnvironments returns the environments of the request, in order.
func (s *State) RequestedEnvironments() []*Environment {
	var out []*Environment
	for _, st := range s.Requested() {
		if !slices.Contains(out, st.Environment) {
			out = append(out, st.Environment)
		}
	}
	return out
}

// Upstream returns the stages that a commit must have been in before it reaches a stage.
func (s *State) Upstream(st *Stage) []*Stage {
	var out []*Stage
	p := st.GatePolicy()
	for _, name := range p.After {
		if !p.Rings {
			out = append(out, s.StagesOf(name)...)
			continue
		}
		for _, other := range s.StagesOf(st.Policy.Name) {
			if other.RingName() == name {
				out = append(out, other)
			}
		}
	}
	return out
}

// UpstreamAndSoaking returns the stages of Upstream and the stages that the soak gates of a stage
// name. A stage may occur twice.
func (s *State) UpstreamAndSoaking(st *Stage) []*Stage {
	out := s.Upstream(st)
	for _, g := range st.GatePolicy().Gates {
		if g.Soak != nil && g.Soak.Environment != "" {
			out = append(out, s.StagesOf(g.Soak.Environment)...)
		}
	}
	return out
}

// Soaks reports whether the source of a stage soaks there for another stage, which does not have
// it yet.
func (s *State) Soaks(st *Stage) (bool, error) {
	has := st.Has()
	for _, next := range s.Stages {
		if next.Environment.Repository == nil || !s.soaksIn(next, st) {
			continue
		}
		newer, err := s.HasNewer(next, has.Base)
		if err != nil {
			return false, err
		}
		if is := next.Has(); !newer &&
			(is.Base != has.Base || next.TakesPairs() && next.Policy == st.Policy && is != has) {
			return true, nil
		}
	}
	return false, nil
}

// SoaksForSome reports whether the policy of any stage lets commits soak in a stage.
func (s *State) SoaksForSome(st *Stage) bool {
	return slices.ContainsFunc(s.Stages, func(next *Stage) bool { return s.soaksIn(next, st) })
}

// soaksIn reports whether a soak gate of a stage is about another one.
func (s *State) soaksIn(next, st *Stage) bool {
	return slices.ContainsFunc(next.GatePolicy().Gates, func(g model.Gates) bool {
		switch {
		case g.Soak == nil:
			return false
		case g.Soak.Environment != "":
			return g.Soak.Environment == st.Policy.Name
		}
		return slices.ContainsFunc(s.Upstream(next), func(up *Stage) bool { return up == st })
	})
}

// Gone returns the reason why a branch lacks the commit that was promoted to a stage: the branch
// is gone, or is another one. It returns "" if nothing was promoted, by the statuses of base
// commits. It returns git.ErrLostRace if another run has written the branch since the state was
// read.
func (s *State) Gone(ctx context.Context, st *Stage) (string, error) {
	statuses, most := s.Statuses(st.Environment), MaxJudged
	if s.Platform.Repository.Plain { // whose statuses are all here
		most = MaxNew
	}
	bases, err := s.Platform.Bases.Newest(most)
	if err != nil {
		return "", err
	}
	for some := range slices.Chunk(bases, 20) {
		var commits []git.Hash
		for _, b := range some {
			commits = append(commits, b.Commit)
		}
		if err := statuses.Load(ctx, commits...); err != nil {
			return "", err
		}
		for _, c := range commits {
			course, ok := ledger.CourseOf(statuses.Loaded(c), st.ID(), st.RolloutGate().By)
			if !ok {
				continue
			}
			refs, err := st.Environment.Repository.Remote.Refs(ctx)
			if err != nil {
				return "", err
			}
			if refs[BranchRef(st.Environment.Branch)] != st.Environment.Tip {
				return "", fmt.Errorf("%w: branch %s is new", git.ErrLostRace, st.Environment.Branch)
			}
			what := "branch " + st.Environment.Branch + " is gone from " + st.Environment.Repository.URL
			if !st.Environment.Tip.IsZero() {
				what = "branch " + st.Environment.Branch + " of " + st.Environment.Repository.URL +
					" does not have what was promoted to it"
			}
			return fmt.Sprintf("%s: %s came to %s at %s", what, git.Short(c), st.ID(),
				course.Entered.UTC().Format("2006-01-02 15:04Z")), nil
		}
	}
	return "", nil
}

// ComesAfter returns the base commits that may reach a stage, newest first: the commits after its
// present one. If its tree moved to an empty place, they are its commit before the move and the
// commits after that.
func (s *State) ComesAfter(st *Stage) ([]source.Base, error) {
	had := s.had(st)
	newer, err := s.Newer(had)
	if _, known, found := s.Platform.Bases.Until(had.Base.Hash()); err == nil && found == nil &&
		known && st.Has() != had {
		newer = append(slices.Clip(newer), source.Base{Commit: had.Base.Hash()})
	}
	return newer, err
}

// had returns the source of a stage. If its tree moved to an empty place, it returns the source
// before the move.
func (s *State) had(st *Stage) tree.Source {
	move := s.moved[st.Environment]
	if st.Has() != (tree.Source{}) || move == nil || move.Former == nil || move.Gone != "" {
		return st.Has()
	}
	return move.Former.has(st.RingName())
}

// Newer returns the base commits after a stage's present one, newest first; nil if the
// history does not have that.
func (s *State) Newer(has tree.Source) ([]source.Base, error) {
	if has.Base == "" {
		return s.Platform.Bases.Newest(MaxNew)
	}
	all, found, err := s.Platform.Bases.Until(has.Base.Hash())
	if err != nil || !found {
		return nil, err
	}
	return all[:len(all)-1], nil
}

// HasNewer reports whether a stage has a newer base commit than one.
func (s *State) HasNewer(st *Stage, base tree.Revision) (bool, error) {
	_, known, err := s.Platform.Bases.Until(base.Hash())
	if err != nil || !known || st.Has().Base == "" || st.Has().Base == base {
		return false, err
	}
	newer, found, err := s.Platform.Bases.Until(st.Has().Base.Hash())
	return found &&
		!slices.ContainsFunc(newer,
			func(b source.Base) bool { return tree.RevisionOf(b.Commit) == base }), err
}

// MaxJudged is the largest number of base commits to judge for one stage. Stages do not wait for
// older ones.
const MaxJudged = 100

// MaxNew is the number of base commits to choose from for a stage without one.
const MaxNew = 2000

// Statuses returns the statuses in which rollouts of base commits in an environment are
// reported: on the platform's forge or, without a forge, in the notes of the GitOps
// repository.
func (s *State) Statuses(env *Environment) *ledger.Statuses {
	if !s.Platform.Repository.Plain {
		return s.Platform.Repository.Statuses()
	}
	if env.Repository.Plain {
		return env.Repository.Statuses()
	}
	return env.Repository.elsewhere
}

// IsLast reports whether no environment is after another one, as is true of production.
func (s *State) IsLast(environment string) bool {
	return !slices.ContainsFunc(s.Platform.Policies,
		func(other model.Declaration) bool { return slices.Contains(other.After, environment) })
}

// CommitTime returns the time of a commit of a stage. This is the time of the newest commit that
// it is made from, so that every run makes the same commit. A person's decision has its own time;
// decided is the zero Time for other commits.
func (s *State) CommitTime(st *Stage, of tree.Source, decided time.Time) time.Time {
	when := time.Unix(0, 0)
	if decided.After(when) {
		when = decided
	}
	later := func(r *Repository, id git.Hash) {
		if id.IsZero() {
			return
		}
		if c, err := r.Staging.Commit(id); err == nil && c.Committer.When.After(when) {
			when = c.Committer.When
		}
	}
	later(s.Platform.Repository, of.Base.Hash())
	later(s.Platform.Repository, of.Environment.Hash())
	later(st.Environment.Repository, st.Environment.Tip)
	return when
}

// PlainForge returns a forge that reads and writes the notes of a repository.
func (s *State) PlainForge(r *Repository) (*plain.Forge, error) { return s.opener.plainForge(r) }

// Repositories returns all repositories that are open, sorted by URL.
func (s *State) Repositories() []*Repository {
	var out []*Repository
	for _, url := range slices.Sorted(maps.Keys(s.opener.known)) {
		out = append(out, s.opener.known[url])
	}
	return out
}

// ServerFailed reports whether an error is about the server, and not about the request.
func ServerFailed(err error) bool {
	return errors.As(err, new(*forge.AuthError)) || errors.As(err, new(*forge.UnavailableError)) ||
		errors.Is(err, context.Canceled)
}
