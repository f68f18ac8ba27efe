package promotion

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/git/remote"
	"github.com/kalypso-io/kalypso/promotion/forge"
)

// Session is the state of a platform's promotion as it was read. It is for one
// goroutine. What others change meanwhile is found when something is written, which
// then fails with git.ErrLostRace: a new Session sees it.
type Session struct {
	request      Request
	now          time.Time
	repositories map[string]*repository // by URL
	opened       map[string]*opened     // by URL: those that are not among the repositories yet
	unopened     map[string]error       // by URL: why those cannot be
	platform     *platform
	subject      Subject
	outputs      map[string]*output     // by environment
	byHand       map[handwritten]string // what edited has found
	stops        []*stop                // in an order in which what others wait for comes first
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
func Open(ctx context.Context, r Request) (*Session, error) {
	s := &Session{request: r, now: r.Now(), repositories: map[string]*repository{}, unopened: map[string]error{}, outputs: map[string]*output{}, byHand: map[handwritten]string{}}
	if err := s.read(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close releases the repositories.
func (s *Session) Close() error {
	if s.platform != nil {
		s.platform.bases.stop()
	}
	var errs []error
	for _, r := range s.repositories {
		errs = append(errs, r.close())
	}
	for _, o := range s.opened {
		if o.remote != nil {
			errs = append(errs, o.remote.Close())
		}
	}
	return errors.Join(errs...)
}

func (s *Session) read(ctx context.Context) error {
	var err error
	if s.platform, err = s.openPlatform(ctx); err != nil {
		return err
	}
	if repo := s.platform.repository; repo.plain { // now that it is known whose signatures count
		if repo.forge, err = s.plainForge(repo); err != nil {
			return err
		}
	}
	if err := s.checkRequest(); err != nil {
		return err
	}
	s.openRemotes(ctx)
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
	for _, o := range s.askedOutputs() {
		if err := s.restore(ctx, o); err != nil {
			if err := s.unreadable(ctx, o.stage, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// unreadable takes note of an environment whose state cannot be read: it is blocked, and
// others go on. Where it is the one that was asked for, that is an error, and so it is
// where it has moved meanwhile.
func (s *Session) unreadable(ctx context.Context, stage *model.Stage, err error) error {
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
func (s *Session) known() (names []string) {
	for i := range s.platform.stages {
		names = append(names, s.platform.stages[i].Name)
	}
	return names
}

func (s *Session) checkRequest() error {
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

// stop is one ring of an environment, or an environment without rings.
type stop struct {
	stage *model.Stage
	ring  *model.Ring // nil where there are none
	out   *output
}

func (s *stop) ringName() string {
	if s.ring == nil {
		return ""
	}
	return s.ring.Name
}

func stopID(environment, ring string) string {
	if ring == "" {
		return environment
	}
	return environment + "/" + ring
}

func (s *stop) id() string { return stopID(s.stage.Name, s.ringName()) }

// has returns what the record says that the stop has; the zero Source for nothing.
func (s *stop) has() tree.Source { return s.out.has(s.ringName()) }

// order returns all stops, each after what it waits for. The platform was checked for
// cycles.
func (s *Session) order() []*stop {
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
func (s *Session) ringsOf(stage *model.Stage) []*stop {
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
func (s *Session) stopsOf(environment string) []*stop {
	return slices.DeleteFunc(slices.Clone(s.stops), func(of *stop) bool { return of.stage.Name != environment })
}

// asked returns the stops that the request is about, in order.
func (s *Session) asked() []*stop {
	return slices.DeleteFunc(slices.Clone(s.stops), func(of *stop) bool {
		return len(s.request.Environments) > 0 && !slices.Contains(s.request.Environments, of.stage.Name) ||
			s.request.Ring != "" && of.ringName() != s.request.Ring
	})
}

// askedOutputs returns the trees of the environments that the request is about, in order.
func (s *Session) askedOutputs() []*output {
	var out []*output
	for _, st := range s.asked() {
		if !slices.Contains(out, st.out) {
			out = append(out, st.out)
		}
	}
	return out
}

// repository is a git repository with what it is hosted on.
type repository struct {
	url     string // without credentials
	remote  *remote.Remote
	refs    map[string]git.Hash
	staging *git.Repository
	forge   forge.Forge
	plain   bool // nothing but git
	// notes are where statuses and approvals are kept where there is no forge.
	notes *notes
	// statuses is the ledger; nil before it is asked for.
	statuses *ledger
	// elsewhere is a ledger in git notes, for what is said of commits of a platform that
	// is on no forge; nil for none.
	elsewhere *ledger
	// ordered are the orders of the repository; nil before they are read.
	ordered []*order
}

// repository opens a repository, once for each URL.
func (s *Session) repository(ctx context.Context, url string) (*repository, error) {
	if known := s.repositories[url]; known != nil {
		return known, nil
	}
	if err := s.unopened[url]; err != nil {
		return nil, err
	}
	r, err := s.openRepository(ctx, url)
	if err != nil {
		s.unopened[url] = err
		return nil, errors.Join(err, r.close())
	}
	s.repositories[url] = r
	return r, nil
}

// openRepository opens a repository; what it returns is to be closed, also with an error.
func (s *Session) openRepository(ctx context.Context, url string) (r *repository, err error) {
	r = &repository{}
	if r.remote, err = s.openRemote(ctx, url); err != nil {
		return r, err
	}
	r.url = r.remote.URL()
	told, _ := r.remote.Advertised() // it has just been opened
	r.refs = maps.Clone(told)
	if r.staging, err = r.remote.Staging(); err != nil {
		return r, err
	}
	if r.forge, err = s.request.Forge(ctx, url); err != nil {
		return r, err
	}
	if r.forge == nil {
		r.plain = true
		r.forge, err = s.plainForge(r)
	}
	return r, err
}

func (r *repository) close() error {
	var errs []error
	if r.staging != nil {
		errs = append(errs, r.staging.Close())
	}
	if r.remote != nil {
		errs = append(errs, r.remote.Close())
	}
	return errors.Join(errs...)
}

// branchRef is the full name of a branch.
func branchRef(branch string) string { return "refs/heads/" + branch }

// defaultBranch is the branch that a repository begins with.
func (r *repository) defaultBranch() string { return cmp.Or(r.remote.DefaultBranch(), "main") }
