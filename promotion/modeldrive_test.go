package promotion

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/git/remote"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/gate"
	"github.com/kalypso-io/kalypso/promotion/plan"
	"github.com/kalypso-io/kalypso/promotion/rollout"
	"github.com/kalypso-io/kalypso/promotion/session"
	"github.com/kalypso-io/kalypso/promotion/subject"
)

// modelWorld is a platform with its repositories and clusters, and the rules for it.
type modelWorld struct {
	server           *modelServer
	dir              string
	platform, gitops *modelRepo
	forges           map[string]*modelForge // by URL; empty if there is only git
	clusters         *modelClusters
	ids              []git.Hash // of the platform's commits
	rules            *rules
	texts            int
	seen             map[string]git.Hash // the tips of the branches that were looked at last
	quiet            int                 // runs without anything to land since something else happened
	event            string              // the current event
	edited           []string            // environments with edits by hand when it began
}

// worlds numbers the worlds, whose repositories have names of their own.
var worlds atomic.Int64

func newWorld(t testing.TB, server *modelServer, s scenario) *modelWorld {
	dir, err := os.MkdirTemp("", "kalypso-model-")
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("world%d", worlds.Add(1))
	w := &modelWorld{
		server: server, dir: dir, platform: server.repository(name + "-platform"), gitops: server.repository(name + "-gitops"),
		clusters: &modelClusters{reports: map[string]modelReport{}},
		rules:    &rules{now: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC), frozen: map[string]ruleOrder{}, rejected: map[int]bool{}, recorded: map[string]string{}},
		seen:     map[string]git.Hash{},
	}
	if w.rules.forge = s.forge; s.forge {
		now := func() time.Time { return w.rules.now }
		w.forges = map[string]*modelForge{}
		for _, r := range []*modelRepo{w.platform, w.gitops} {
			w.forges[r.url] = &modelForge{of: r, now: now, said: map[git.Hash][]forge.Status{}}
		}
	}
	own := map[string]string{}
	for i, e := range s.policy.Environments {
		if (s.seed+uint64(i))%3 > 0 {
			own[e.Name] = "first"
		}
	}
	w.push(s.policy, "text0 0", own)
	w.rules.order()
	return w
}

func (w *modelWorld) close() {
	w.server.drop(w.platform)
	w.server.drop(w.gitops)
	_ = os.RemoveAll(w.dir)
}

// push commits the platform as it is to be from now on.
func (w *modelWorld) push(policy *modelPolicy, text string, own map[string]string) {
	w.pushing(policy, text, own, -1)
}

// pushing is push with a message that the commit reverts another one, unless reverts is -1.
func (w *modelWorld) pushing(policy *modelPolicy, text string, own map[string]string, reverts int) {
	n := w.rules.push(policy, text, own)
	message := fmt.Sprintf("commit %d", n)
	if w.rules.commits[n].named = reverts; reverts >= 0 {
		message += "\n\nThis reverts commit " + w.ids[reverts].String() + "."
	}
	statuses, err := json.Marshal(policy)
	if err != nil {
		panic(err)
	}
	files := map[string]string{"cue.mod/module.cue": "module: \"example.com/platform@v0\"\n", "policy.json": string(statuses), "base.txt": text}
	for name, text := range own {
		files["environments/"+name+"/own.txt"] = text
	}
	w.ids = append(w.ids, w.platform.commit("main", w.rules.now, message, files))
}

// rename gives an environment another name, and moves its own files.
func (w *modelWorld) rename(was string) {
	last, is := w.last(), was+"x"
	if len(is) > 4 {
		return
	}
	p := &modelPolicy{}
	to := func(name string) string {
		if name == was {
			return is
		}
		return name
	}
	gates := func(g *modelGates) {
		if g.Soak != nil {
			soak := *g.Soak
			soak.Environment = to(soak.Environment)
			g.Soak = &soak
		}
	}
	for _, e := range last.policy.Environments {
		if e.Name == was {
			e.Name, e.Formerly = is, append([]string{was}, e.Formerly...)
		}
		e.After = slices.Clone(e.After)
		for i := range e.After {
			e.After[i] = to(e.After[i])
		}
		gates(&e.modelGates)
		e.Rings = slices.Clone(e.Rings)
		for i := range e.Rings {
			gates(&e.Rings[i].modelGates)
		}
		p.Environments = append(p.Environments, e)
	}
	own := map[string]string{}
	if text, there := last.own[was]; there {
		own[is] = text
	}
	text := last.text
	w.push(p, text, own)
	w.rules.rename(was, is)
	if _, there := own[is]; there {
		w.last().ownBy[is] = len(w.rules.commits) - 1
	}
}

func (w *modelWorld) last() *ruleCommit { return &w.rules.commits[len(w.rules.commits)-1] }

// bases returns the base commits, newest first.
func (w *modelWorld) bases() []int { return w.rules.newer(&ruleStage{has: ruleNothing}) }

func (w *modelWorld) request() session.Request {
	now := w.rules.now
	return session.Request{
		Repository: w.platform.url, Path: ".", Subjects: []subject.Subject{modelSubject{w.gitops.url}},
		Remote: func(ctx context.Context, url string) (*remote.Remote, error) {
			return remote.Open(ctx, url, remote.Options{Store: w.dir, Wait: time.Millisecond, Backend: remote.Native})
		},
		Forge: func(_ context.Context, url string) (forge.Forge, error) {
			if f := w.forges[url]; f != nil {
				return f, nil
			}
			return nil, nil
		},
		Sources: []session.Source{{Kind: "report", Source: w.clusters}},
		Now:     func() time.Time { return now },
		By:      "somebody",
	}
}

// session calls a function with a session, and calls it again if others were faster, as the
// command does.
func (w *modelWorld) session(ctx context.Context, r session.Request, use func(*Session) error) error {
	for attempt := 1; ; attempt++ {
		err := func() (err error) {
			s, err := Open(ctx, r)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, s.Close()) }()
			return use(s)
		}()
		if !errors.Is(err, git.ErrLostRace) || attempt == 50 {
			return err
		}
	}
}

// apply is a run of the engine.
func (w *modelWorld) apply(ctx context.Context, r session.Request) error {
	return w.session(ctx, r, func(s *Session) error {
		_, err := s.Apply(ctx, plan.Intent{}, nil)
		return err
	})
}

// decide is something that people do to a stage.
func (w *modelWorld) decide(of *ruleStage, do func(context.Context, *Session) error) error {
	r := w.request()
	r.Environments, r.Ring = []string{of.environment}, of.ring
	return w.session(context.Background(), r, func(s *Session) error { return do(context.Background(), s) })
}

// happen lets something happen to the world and to the rules.
func (w *modelWorld) happen(e event) error {
	r := w.rules
	st := r.stages[e.a%len(r.stages)]
	bases := w.bases()
	if w.event, w.edited = e.what, nil; e.what != "run" {
		w.quiet = 0
	}
	for _, s := range r.stages {
		if s.drift {
			w.edited = append(w.edited, s.environment)
		}
	}
	switch e.what {
	case "push", "broken", "small", "own", "both", "policy", "same":
		w.change(e, st)
		return nil
	case "clock":
		r.now = r.now.Add(time.Duration(1+e.a%9) * 10 * time.Minute)
		return nil
	case "report":
		w.report(st, e.b)
		return nil
	case "edit":
		w.edit(st, e.b)
		return nil
	case "run":
		return w.once()
	case "race":
		return w.race(e.a)
	case "crash":
		return w.crash(e)
	case "merge", "force":
		return w.merge(st, e.what == "force")
	case "rename":
		w.rename(st.environment)
		return nil
	case "overwrite":
		return w.overwrite()
	case "verify":
		return w.verify()
	case "rollback":
		return w.rollback(st, 1+e.b%4/3, e.c%3 == 0)
	case "hold", "release":
		return w.hold(st, e)
	case "freeze":
		return w.freeze(st, e)
	case "thaw":
		delete(r.frozen, st.environment)
		return w.decide(st, func(ctx context.Context, s *Session) error {
			_, err := s.Thaw(ctx)
			return err
		})
	case "reject":
		base := bases[e.a%min(len(bases), 3)]
		r.rejected[base] = true
		return w.decide(st, func(ctx context.Context, s *Session) error {
			_, err := s.Reject(ctx, w.ids[base].String(), plan.Decision{Reason: "it is bad"})
			return err
		})
	case "unreject":
		base := bases[e.a%min(len(bases), 3)]
		delete(r.rejected, base)
		return w.decide(st, func(ctx context.Context, s *Session) error {
			_, err := s.Unreject(ctx, w.ids[base].String())
			return err
		})
	case "named":
		return w.named(st, bases[e.b%min(len(bases), 4)], e.c%2 == 0, e.c%3 > 0)
	case "revert":
		w.revert(bases[e.b%min(len(bases), 3)], e.c%2 == 0)
		return nil
	}
	panic(e.what)
}

// change pushes to the platform.
func (w *modelWorld) change(e event, st *ruleStage) {
	last := w.last()
	w.texts++
	text := fmt.Sprintf("text%d %d", w.texts, w.texts)
	own := map[string]string{st.environment: fmt.Sprintf("own%d", w.texts)}
	switch e.what {
	case "push":
		w.push(last.policy, text, nil)
	case "broken":
		w.push(last.policy, text+" "+brokenBase, nil)
	case "small":
		var first string
		_, _ = fmt.Sscan(last.text, &first)
		w.push(last.policy, fmt.Sprintf("%s %d", first, w.texts), nil)
	case "own":
		w.push(last.policy, last.text, own)
	case "both":
		w.push(last.policy, text, own)
	case "policy", "same":
		p := &modelPolicy{Environments: slices.Clone(last.policy.Environments)}
		i := slices.IndexFunc(p.Environments, func(e modelEnvironment) bool { return e.Name == st.environment })
		to := &p.Environments[i]
		switch {
		case e.what == "same":
			most := 100 + w.texts // so that the file is another one
			to.Budget = &most
		case e.b%3 == 0:
			to.Any = !to.Any
		case e.b%3 == 1:
			to.Advance = []model.Advance{model.LatestPassed, model.Latest, model.MatchUpstream, model.Queue}[e.c%4]
		case len(to.After) > 0:
			to.Soak = &model.SoakGate{For: time.Duration(e.c%4) * 20 * time.Minute}
		}
		statuses, _ := json.Marshal(p)
		if before, _ := json.Marshal(last.policy); string(statuses) != string(before) {
			w.push(p, last.text, nil)
		}
	}
}

// report lets clusters report about the contents of a stage.
func (w *modelWorld) report(st *ruleStage, mode int) {
	tip, there := w.gitops.refs()[session.BranchRef(w.rules.environment(st.environment).branch())]
	if !there {
		return
	}
	w.clusters.mu.Lock()
	defer w.clusters.mu.Unlock()
	for i, id := range w.rules.assignments(st) {
		state := rollout.Healthy
		switch mode % 8 {
		case 5: // one failed
			if i == 0 {
				state = rollout.Failed
			}
		case 6: // half of them say something
			if i%2 == 0 {
				continue
			}
		case 7:
			state = rollout.Failed
		}
		w.clusters.reports[id] = modelReport{tip.String(), state, w.rules.now}
		if st.reports[id] = (ruleReport{st.landed, state}); st.drift {
			st.reports[id] = ruleReport{0, state} // of edited files
		}
	}
}

// edit changes a generated file by hand.
func (w *modelWorld) edit(st *ruleStage, n int) {
	if st.has == ruleNothing {
		return
	}
	types := w.rules.environment(st.environment).clusterTypes(st.ring)
	st.drift = true
	w.gitops.commit(w.rules.environment(st.environment).branch(), w.rules.now, "by hand", map[string]string{types[n%len(types)] + "/t1/deploy.yaml": "by hand\n"})
}

func (w *modelWorld) once() error {
	before, statuses := w.gitops.refs(), w.onForges()
	was := w.states()
	if err := w.apply(context.Background(), w.request()); err != nil {
		return err
	}
	w.rules.run(false)
	if err := w.compare(); err != nil {
		return err
	}
	if was != w.states() {
		return nil
	}
	if w.quiet++; w.quiet == 1 && w.forges != nil {
		return nil // something may have been proposed
	}
	if after := w.gitops.refs(); !maps.Equal(before, after) {
		return fmt.Errorf("%w: nothing was to do, and refs changed: %v, then %v", errDiffers, before, after)
	}
	if after := w.onForges(); statuses != after {
		return fmt.Errorf("%w: nothing was to do, and the forge changed: %s, then %s", errDiffers, statuses, after)
	}
	return nil
}

func (w *modelWorld) onForges() string {
	if w.forges == nil {
		return ""
	}
	return w.forges[w.platform.url].state() + w.forges[w.gitops.url].state()
}

// states returns the state in the rules, to be compared.
func (w *modelWorld) states() string {
	var out []string
	for _, s := range w.rules.stages {
		out = append(out, fmt.Sprint(s.id(), s.has, s.said, s.landing, s.landed, s.hold, s.drift, s.pairs))
	}
	return fmt.Sprint(out)
}

// settle runs the rules until nothing changes any more.
func (w *modelWorld) settle() {
	for was := ""; was != w.states(); {
		was = w.states()
		w.rules.run(false)
	}
}

// settled runs the engine until nothing changes any more.
func (w *modelWorld) settled() error {
	for range len(w.ids) + 5 {
		before, statuses := w.gitops.refs(), w.onForges()
		if err := w.apply(context.Background(), w.request()); err != nil {
			return err
		}
		if maps.Equal(before, w.gitops.refs()) && statuses == w.onForges() {
			w.settle()
			return w.compare()
		}
	}
	return fmt.Errorf("%w: it does not come to an end", errDiffers)
}

// race has several runners work at once.
func (w *modelWorld) race(runners int) error {
	errs := make([]error, runners)
	var all sync.WaitGroup
	for i := range runners {
		all.Go(func() { errs[i] = w.apply(context.Background(), w.request()) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("one of several runners: %w", err)
	}
	return w.settled()
}

// crash breaks off a run at some request, before or after the server does it.
func (w *modelWorld) crash(e event) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	left := e.a
	var mu sync.Mutex
	fault := func(push, done bool) bool {
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() != nil {
			return true
		}
		if done != (e.b == 1) || e.c == 1 && !push {
			return false
		}
		if e.c == 1 {
			left -= 6 // there are fewer pushes
		} else {
			left--
		}
		if left < 0 {
			cancel()
			return true
		}
		return false
	}
	w.faults(fault)
	err := w.apply(ctx, w.request())
	w.faults(nil)
	if err != nil && ctx.Err() == nil {
		return err
	}
	return w.settled()
}

func (w *modelWorld) faults(f fault) {
	for _, r := range []*modelRepo{w.platform, w.gitops} {
		r.mu.Lock()
		r.fault = f
		r.mu.Unlock()
	}
}

func (w *modelWorld) overwrite() error {
	r := w.request()
	r.Overwrite = true
	if err := w.apply(context.Background(), r); err != nil {
		return err
	}
	w.rules.run(true)
	return w.compare()
}

// merge lets a person merge the change request of a stage, if its head has passed all gates, or
// with force in any case.
func (w *modelWorld) merge(st *ruleStage, force bool) error {
	if w.forges == nil {
		return nil
	}
	f := w.forges[w.gitops.url]
	w.gitops.mu.Lock()
	c := f.open("kalypso/promote/"+st.id(), w.rules.environment(st.environment).branch())
	var err error
	passes := c != nil && f.passes(c.Head)
	if c != nil && c.Head.IsZero() { // its branch is gone
		c = nil
	}
	if c != nil {
		if err = errors.New("its head does not say so"); passes || force {
			err = f.merge(c.Number, c.Head, "Merge "+c.Title)
		}
	}
	w.gitops.mu.Unlock()
	if c == nil || err != nil {
		return nil
	}
	record := w.record(c.Merged)
	has := sourceIn(record, st.ring)
	to := ruleSource{w.number(has.Base), w.number(has.Environment)}
	var hold *ruleOrder
	if h := holdIn(record, st.ring); h != nil {
		hold = &ruleOrder{base: w.number(h.Base)}
		hold.until, _ = time.Parse(time.RFC3339, h.Until)
	}
	switch {
	case hold != nil && hold.base >= 0:
		w.event = "rollback"
	case st.named != nil && st.named.base == to.base:
		w.event = "named"
	}
	changes := to != st.has
	w.rules.arrive(st, to, hold, false)
	st.forced = st.forced || changes && !passes
	return w.once()
}

func (w *modelWorld) rollback(st *ruleStage, steps int, exact bool) error {
	to, there := w.rules.rollback(st, steps, exact)
	before := w.gitops.refs()
	err := w.decide(st, func(ctx context.Context, s *Session) error {
		_, err := s.Rollback(ctx, plan.RollbackTo{Steps: steps, Exact: exact}, plan.Decision{Reason: "it is bad"})
		return err
	})
	if !there {
		if after := w.gitops.refs(); !maps.Equal(before, after) {
			return fmt.Errorf("%w: there was nothing to go back to, and refs changed", errDiffers)
		}
		return nil
	}
	if err != nil {
		return err
	}
	hold := &ruleOrder{base: st.has.base}
	if st.hold != nil && st.hold.base >= 0 {
		hold.base = st.hold.base
	}
	w.rules.land(st, to, hold, true)
	return w.compare()
}

func (w *modelWorld) hold(st *ruleStage, e event) error {
	order := &ruleOrder{base: -1}
	d := plan.Decision{Reason: "wait"}
	if e.b%2 == 0 {
		order.until = w.rules.now.Add(time.Duration(1+e.c%4) * 30 * time.Minute)
		d.Until = order.until
	}
	err := w.decide(st, func(ctx context.Context, s *Session) (err error) {
		if e.what == "release" {
			_, err = s.Release(ctx, d)
		} else {
			_, err = s.Hold(ctx, d)
		}
		return err
	})
	if st.has == ruleNothing {
		if err == nil {
			return fmt.Errorf("%w: there is nothing to hold", errDiffers)
		}
		return w.compare()
	}
	if err != nil {
		return err
	}
	if changes := e.what == "hold" || st.hold != nil; changes {
		w.rules.observe(st)
	}
	if st.hold = order; e.what == "release" {
		st.hold = nil
	}
	return w.compare()
}

func (w *modelWorld) freeze(st *ruleStage, e event) error {
	order := ruleOrder{base: -1}
	if e.b%2 == 0 {
		order.until = w.rules.now.Add(time.Duration(1+e.c%4) * 30 * time.Minute)
	}
	w.rules.frozen[st.environment] = order
	return w.decide(st, func(ctx context.Context, s *Session) error {
		_, err := s.Freeze(ctx, plan.Decision{Reason: "holidays", Until: order.until})
		return err
	})
}

// revert reverts a commit. Its message names the reverted commit, or only the content shows the
// revert if the commit is the newest of the branch.
func (w *modelWorld) revert(base int, says bool) {
	last := w.last()
	if says {
		w.texts++
		w.pushing(last.policy, fmt.Sprintf("text%d %d", w.texts, w.texts), nil, base)
	} else if n := len(w.rules.commits) - 1; n > 0 && last.isBase && slices.EqualFunc(last.policy.Environments, w.rules.commits[n-1].policy.Environments, func(a, b modelEnvironment) bool { return a.Name == b.Name }) {
		w.push(w.rules.commits[n-1].policy, w.rules.commits[n-1].text, nil)
	}
}

func (w *modelWorld) named(st *ruleStage, base int, skips, reason bool) error {
	intent := plan.Intent{Commit: w.ids[base].String(), By: "somebody"}
	if reason = reason || skips; reason {
		intent.Reason = "it is urgent"
	}
	if skips {
		intent.Skip = gate.Skip{Gates: []string{"soak", "after", "budget"}, Reason: "it is urgent", By: "somebody"}
	}
	err := w.decide(st, func(ctx context.Context, s *Session) error {
		_, err := s.Apply(ctx, intent, nil)
		return err
	})
	older := base < st.has.base
	needsReason := w.rules.name(st, &ruleNamed{base: base, skip: intent.Skip.Gates, reason: reason})
	if (err != nil) != (older || needsReason) && !(older && err == nil) {
		return fmt.Errorf("%w: naming %d for %s, of which the rules say that a reason is missing: %v: %v", errDiffers, base, st.id(), needsReason, err)
	}
	return w.compare()
}

// verify has the engine compile everything again.
func (w *modelWorld) verify() error {
	return w.session(context.Background(), w.request(), func(s *Session) error {
		all, err := s.Verify(context.Background(), "")
		if err != nil {
			return err
		}
		for _, v := range all {
			forced := slices.ContainsFunc(w.rules.of(v.Environment), func(s *ruleStage) bool { return s.forced })
			if want := !w.rules.drifts(v.Environment) && !forced; v.OK != want {
				return fmt.Errorf("%w: verify of %s says %v: %v", errDiffers, v.Environment, v.OK, v.Problems)
			}
		}
		return nil
	})
}

// compare compares records of the repository with the rules, and checks that forbidden states do
// not occur.
func (w *modelWorld) compare() error {
	for _, st := range w.rules.stages {
		record := w.record(w.gitops.refs()[session.BranchRef(w.rules.environment(st.environment).branch())])
		has := sourceIn(record, st.ring)
		if want := w.source(st.has); has != want {
			return fmt.Errorf("%w: %s has %s, and should have %s (%s)", errDiffers, st.id(), w.name(has), w.name(want), w.orders())
		}
		hold := holdIn(record, st.ring)
		if (hold != nil) != (st.hold != nil) {
			return fmt.Errorf("%w: the hold of %s is %v, and should be %v", errDiffers, st.id(), hold, st.hold)
		}
	}
	return w.invariants()
}

func (w *modelWorld) orders() string {
	return fmt.Sprintf("frozen %v, rejected %v, now %s", w.rules.frozen, w.rules.rejected, w.rules.now.Format(time.TimeOnly))
}

func (w *modelWorld) source(of ruleSource) tree.Source {
	var out tree.Source
	if of.base >= 0 {
		out.Base = tree.RevisionOf(w.ids[of.base])
	}
	if of.own >= 0 {
		out.Environment = tree.RevisionOf(w.ids[of.own])
	}
	return out
}

// name returns the numbers of a source's commits.
func (w *modelWorld) name(of tree.Source) string {
	return fmt.Sprintf("%d with %d", w.number(of.Base), w.number(of.Environment))
}

func (w *modelWorld) number(r tree.Revision) int {
	return slices.IndexFunc(w.ids, func(id git.Hash) bool { return tree.RevisionOf(id) == r })
}

// record reads the record in a commit, or nil.
func (w *modelWorld) record(commit git.Hash) *tree.Record {
	if commit.IsZero() {
		return nil
	}
	w.gitops.mu.Lock()
	defer w.gitops.mu.Unlock()
	root, _, _ := w.gitops.parsed(commit)
	id, there := w.gitops.find(root, tree.RecordPath)
	if !there {
		return nil
	}
	record, err := tree.ParseRecord(w.gitops.content(id, git.BlobKind), nil)
	if err != nil {
		panic(err)
	}
	return record
}

// sourceIn and holdIn return the source and the hold of a ring in a record, if policies do not
// change.
func sourceIn(record *tree.Record, ring string) tree.Source {
	return outputOf(record).SourceIn(record, ring)
}

func holdIn(record *tree.Record, ring string) *tree.Hold {
	return outputOf(record).HoldIn(record, ring)
}

func outputOf(record *tree.Record) *session.Environment {
	stage := &model.Declaration{}
	if record != nil {
		for _, r := range record.Rings {
			stage.Promotion.Rings = append(stage.Promotion.Rings, model.Ring{Name: r.Name})
		}
	}
	return &session.Environment{Policy: stage}
}
