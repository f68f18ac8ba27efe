package promotion

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/git/remote"
)

// Session is the state of a platform's promotion as it was read. It is for one
// goroutine. What others change meanwhile is found when something is written, which
// then fails with git.ErrLostRace: a new Session sees it.
type sessionState struct {
	request  Request
	now      time.Time
	opener   *opener
	platform *platform
	outputs  map[string]*output // by environment

	stops []*stop // in an order in which what others wait for comes first
	// Diagnostics are what the base of the platform's head has to say.
	Diagnostics []diag.Diagnostic
}

// PlatformError says that nothing can be promoted, because the platform's head has
// errors in its base: policies cannot be read. Diagnostics say which.
type PlatformError struct {
	What        string // platform, or application
	Commit      string
	Diagnostics []diag.Diagnostic
}

func (e *PlatformError) Error() string {
	return "the base of the " + e.What + " has errors at commit " + e.Commit + ", so that its policies are not known: nothing is promoted"
}

// Open reads the state: the platform's head with its policies, and the records of all
// environments that have a GitOps tree. Close ends it.
func openState(ctx context.Context, r Request) (*sessionState, error) {
	s := &sessionState{request: r, now: r.Now(), outputs: map[string]*output{}}
	s.opener = &opener{request: &s.request, now: s.now, known: map[string]*repository{}, unopened: map[string]error{}}
	if err := s.read(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close releases the repositories.
func (s *sessionState) Close() error {
	if s.platform != nil {
		s.platform.bases.stop()
	}
	return s.opener.close()
}

func (s *sessionState) read(ctx context.Context) error {
	var err error
	if s.platform, err = s.openPlatform(ctx); err != nil {
		return err
	}
	s.opener.allowedSigners = s.platform.allowedSigners
	if repo := s.platform.repository; repo.plain { // now that it is known whose signatures count
		if repo.forge, err = s.opener.plainForge(repo); err != nil {
			return err
		}
	}
	if err := s.checkRequest(); err != nil {
		return err
	}
	s.opener.openRemotes(ctx, s.platform.stages)
	for i := range s.platform.stages {
		stage := &s.platform.stages[i]
		if s.outputs[stage.Name], err = s.openOutput(ctx, stage); err != nil {
			if err := s.unreadable(ctx, stage, err); err != nil {
				return err
			}
		}
	}
	s.gather(ctx)
	for i := range s.platform.stages {
		stage := &s.platform.stages[i]
		if err := s.outputs[stage.Name].read(ctx); err != nil {
			if err := s.unreadable(ctx, stage, err); err != nil {
				return err
			}
		}
	}
	s.stops = s.order()
	return nil
}

// unreadable takes note of an environment whose state cannot be read: it is blocked, and
// others go on. Where it is the one that was asked for, that is an error, and so it is
// where it has moved meanwhile.
func (s *sessionState) unreadable(ctx context.Context, stage *evaluate.Stage, err error) error {
	if ctx.Err() != nil || errors.Is(err, git.ErrLostRace) || errors.Is(err, remote.ErrNotLocal) || slices.Equal(s.request.Environments, []string{stage.Name}) {
		return fmt.Errorf("environment %s: %w", stage.Name, err)
	}
	s.outputs[stage.Name] = &output{stage: stage, absent: err.Error(), unreadable: true}
	return nil
}

// UnknownError says that there is no environment or ring of a name.
type UnknownError struct {
	What, Name string
	Known      []string
}

func (e *UnknownError) Error() string {
	text := fmt.Sprintf("there is no %s %s", e.What, e.Name)
	if hint := diag.DidYouMean(e.Name, e.Known); hint != "" {
		return text + "; " + hint
	}
	if len(e.Known) == 0 {
		return text + "; there are none"
	}
	return text + "; there are " + strings.Join(e.Known, ", ")
}

// known are the names of the environments.
func (s *sessionState) known() (names []string) {
	for i := range s.platform.stages {
		names = append(names, s.platform.stages[i].Name)
	}
	return names
}

func (s *sessionState) checkRequest() error {
	known := s.known()
	for _, name := range s.request.Environments {
		if !slices.Contains(known, name) && !s.request.Former {
			return &UnknownError{"environment", name, known}
		}
	}
	if s.request.Ring == "" {
		return nil
	}
	if len(s.request.Environments) != 1 {
		return errors.New("a ring is one of an environment: name the environment")
	}
	stage := s.platform.stage(s.request.Environments[0])
	if stage == nil {
		return nil // a former one, of which everything is looked for
	}
	if stage.NoRings {
		return fmt.Errorf("environment %s: %w", stage.Name, noRings(stage))
	}
	var rings []string
	for _, ring := range stage.Promotion.Rings {
		rings = append(rings, ring.Name)
	}
	if !slices.Contains(rings, s.request.Ring) {
		return &UnknownError{"ring of environment " + stage.Name, s.request.Ring, rings}
	}
	return nil
}

// order returns all stops, each after what it waits for. The platform was checked for
// cycles.
func (s *sessionState) order() []*stop {
	var out []*stop
	done := map[string]bool{}
	var environment func(name string)
	environment = func(name string) {
		stage := s.platform.stage(name)
		if stage == nil || done[name] {
			return
		}
		done[name] = true
		for _, before := range stage.After {
			environment(before)
		}
		out = append(out, s.ringsOf(stage)...)
	}
	for i := range s.platform.stages {
		environment(s.platform.stages[i].Name)
	}
	return out
}

// ringsOf returns the stops of an environment, each after what it waits for.
func (s *sessionState) ringsOf(stage *evaluate.Stage) []*stop {
	rings := stage.Promotion.Rings
	if len(rings) == 0 {
		return []*stop{{stage: stage, out: s.outputs[stage.Name]}}
	}
	var out []*stop
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
		out = append(out, &stop{stage: stage, ring: &rings[i], out: s.outputs[stage.Name]})
	}
	for i := range rings {
		ring(i)
	}
	return out
}

// stopsOf returns the stops of an environment.
func (s *sessionState) stopsOf(environment string) []*stop {
	return slices.DeleteFunc(slices.Clone(s.stops), func(of *stop) bool { return of.stage.Name != environment })
}

// asked returns the stops that the request is about, in order.
func (s *sessionState) asked() []*stop {
	return slices.DeleteFunc(slices.Clone(s.stops), func(of *stop) bool {
		return len(s.request.Environments) > 0 && !slices.Contains(s.request.Environments, of.stage.Name) ||
			s.request.Ring != "" && of.ringName() != s.request.Ring
	})
}

// askedOutputs returns the trees of the environments that the request is about, in order.
func (s *sessionState) askedOutputs() []*output {
	var out []*output
	for _, st := range s.asked() {
		if !slices.Contains(out, st.out) {
			out = append(out, st.out)
		}
	}
	return out
}

// upstream returns the stops that a commit must have been in before it comes to this
// one.
func (s *sessionState) upstream(st *stop) []*stop {
	var out []*stop
	p := st.policy()
	for _, name := range p.After {
		if !p.Rings {
			out = append(out, s.stopsOf(name)...)
			continue
		}
		for _, other := range s.stopsOf(st.stage.Name) {
			if other.ringName() == name {
				out = append(out, other)
			}
		}
	}
	return out
}

// soaking returns the stops that soak gates of a stop name beside upstream.
func (s *sessionState) soaking(st *stop) []*stop {
	var out []*stop
	for _, g := range st.policy().Gates {
		if g.Soak != nil && g.Soak.Environment != "" {
			out = append(out, s.stopsOf(g.Soak.Environment)...)
		}
	}
	return out
}

// gone says why a branch that was there is not any more, or is another one; "" where it
// never was, as far as statuses tell. The error is git.ErrLostRace where another run has
// made the branch, or written to it, since the session was opened.
func (s *sessionState) gone(ctx context.Context, st *stop) (string, error) {
	ledger, most := s.ledger(st.out), mostJudged
	if s.platform.repository.plain { // whose statuses are all here
		most = mostNew
	}
	bases, err := s.platform.bases.newest(most)
	if err != nil {
		return "", err
	}
	for some := range slices.Chunk(bases, 20) {
		var commits []git.Hash
		for _, b := range some {
			commits = append(commits, b.Commit)
		}
		if err := ledger.load(ctx, commits...); err != nil {
			return "", err
		}
		for _, c := range commits {
			told, ok := courseOf(ledger.loaded(c), st.id(), st.rolloutGate().By)
			if !ok {
				continue
			}
			refs, err := st.out.repository.remote.Refs(ctx)
			if err != nil {
				return "", err
			}
			if refs[branchRef(st.out.branch)] != st.out.tip {
				return "", fmt.Errorf("%w: branch %s is new", git.ErrLostRace, st.out.branch)
			}
			what := "branch " + st.out.branch + " is gone from " + st.out.repository.url
			if !st.out.tip.IsZero() {
				what = "branch " + st.out.branch + " of " + st.out.repository.url + " does not have what was promoted to it"
			}
			return fmt.Sprintf("%s: %s came to %s at %s", what, git.Short(c), st.id(), told.entered.UTC().Format("2006-01-02 15:04Z")), nil
		}
	}
	return "", nil
}

// newer returns the base commits after what a stop has, newest first. Where the history
// does not have what it has, there are none: nobody knows what is newer.
func (s *sessionState) newer(has tree.Source) ([]source.Base, error) {
	if has.Base == "" {
		return s.platform.bases.newest(mostNew)
	}
	all, found, err := s.platform.bases.until(has.Base.Hash())
	if err != nil || !found {
		return nil, err
	}
	return all[:len(all)-1], nil
}

// mostJudged is how many base commits are judged for one stage. Beyond that nobody waits
// for one of them.
const mostJudged = 100

// mostNew is how many base commits there are to choose from for a stage that has none.
const mostNew = 2000

// ledger returns where it is kept what became of base commits in an environment: on the
// platform's forge or, where that is nothing but git, in the notes of the GitOps
// repository.
func (s *sessionState) ledger(o *output) *ledger {
	if !s.platform.repository.plain {
		return s.platform.repository.ledger()
	}
	if o.repository.plain {
		return o.repository.ledger()
	}
	return o.repository.elsewhere
}

// isLast says whether no environment comes after one: what people call production.
func (s *sessionState) isLast(environment string) bool {
	return !slices.ContainsFunc(s.platform.stages, func(other evaluate.Stage) bool { return slices.Contains(other.After, environment) })
}

// commitTime is the time of a commit of a stage: that of the newest commit that goes into it,
// so that it is the same whoever makes it. Only what a person decides has a time of its
// own, which nothing else tells.
func (s *sessionState) commitTime(st *stop, of tree.Source, decided time.Time) time.Time {
	when := time.Unix(0, 0)
	if decided.After(when) {
		when = decided
	}
	later := func(r *repository, id git.Hash) {
		if id.IsZero() {
			return
		}
		if c, err := r.staging.Commit(id); err == nil && c.Committer.When.After(when) {
			when = c.Committer.When
		}
	}
	later(s.platform.repository, of.Base.Hash())
	later(s.platform.repository, of.Environment.Hash())
	later(st.out.repository, st.out.tip)
	return when
}
