package promotion

import (
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/plan"
	"github.com/kalypso-io/kalypso/promotion/rollout"
	"github.com/kalypso-io/kalypso/promotion/session"
)

// rules are the specification of promotion, a second time and as simple as possible: no git, no
// forge, commits are numbers. Tests compare the engine with them.
type rules struct {
	now      time.Time
	commits  []ruleCommit
	stages   []*ruleStage // in the order of the engine
	frozen   map[string]ruleOrder
	forge    bool
	rejected map[int]bool
	recorded map[string]string // the names in records, by environment
}

// ruleCommit is a commit of the platform's branch, with its contents.
type ruleCommit struct {
	policy *modelPolicy
	text   string            // base.txt
	named  int               // the commit that its message says that it reverts, or -1
	edits  [2]string         // its change of the base: the text before, and after
	own    map[string]string // own.txt, by environment
	ownBy  map[string]int    // the commit that last changed it; not there for none
	isBase bool
}

// ruleOrder is a hold or a freeze.
type ruleOrder struct {
	until time.Time // zero for ever
	base  int       // the source of a rollback, or -1
}

func (o *ruleOrder) stands(now time.Time) bool {
	return o != nil && (o.until.IsZero() || now.Before(o.until))
}

type ruleSource struct{ base, own int } // commits, or -1

var ruleNothing = ruleSource{-1, -1}

type ruleStage struct {
	environment, ring string
	has               ruleSource
	stays             []ruleStay
	pairs             []rulePair       // oldest first, has included
	said              map[int]ruleWord // of base commits
	landing           ruleWord         // of its source
	landed            int              // how many landings there were
	reports           map[string]ruleReport
	hold              *ruleOrder
	drift             bool
	explicit          bool // a person requested its source
	named             *ruleNamed
	forced            bool // its source was merged although its gates were against it
}

// ruleNamed is a proposal of a commit that somebody named, until it is merged.
type ruleNamed struct {
	base     int
	skip     []string
	reason   bool
	ends     *ruleOrder // the hold that it ends
	contains []int      // rejected commits that it knows of
}

// ruleStay is the time of a base commit in a stage.
type ruleStay struct {
	base          int
	entered, left time.Time
}

// rulePair is the time of a base commit with own files in a stage, and the reports about it.
type rulePair struct {
	of    ruleSource
	files string // the files on clusters
	word  ruleWord
	// health is the last report about these files after a success.
	health ruleWord
}

// ruleWord is the newest report about a rollout.
type ruleWord struct {
	told           bool
	state          forge.State
	entered, since time.Time
	failing        bool // after a success
}

type ruleReport struct {
	landed int
	state  rollout.State
}

func (r *rules) policy() *modelPolicy { return r.commits[len(r.commits)-1].policy }

// assignments are the assignments of a stage, by the name of the environment in its
// record.
func (r *rules) assignments(s *ruleStage) []string {
	e := *r.environment(s.environment)
	if named := r.recorded[s.environment]; named != "" {
		e.Name = named
	}
	return e.assignments(s.ring)
}

// nameAt returns the name of an environment in a commit: its present name, or an earlier one.
func (r *rules) nameAt(n int, environment string) string {
	names := append([]string{environment}, r.environment(environment).Formerly...)
	for _, name := range names {
		if slices.ContainsFunc(r.commits[n].policy.Environments, func(e modelEnvironment) bool { return e.Name == name }) {
			return name
		}
	}
	panic(environment)
}

// rename gives an environment another name, with its history.
func (r *rules) rename(was, is string) {
	for i := range r.commits {
		if own, there := r.commits[i].own[was]; there {
			r.commits[i].own[is], r.commits[i].ownBy[is] = own, r.commits[i].ownBy[was]
		}
	}
	for _, s := range r.of(was) {
		s.environment = is
	}
	r.recorded[is] = r.recorded[was]
	if o, there := r.frozen[was]; there {
		delete(r.frozen, was)
		r.frozen[is] = o
	}
}

func (r *rules) environment(name string) *modelEnvironment {
	p := r.policy()
	i := slices.IndexFunc(p.Environments, func(e modelEnvironment) bool { return e.Name == name })
	return &p.Environments[i]
}

// push commits the platform as it is to be from now on, and returns the number of the commit.
func (r *rules) push(policy *modelPolicy, text string, own map[string]string) int {
	c := ruleCommit{named: -1, policy: policy, text: text, own: map[string]string{}, ownBy: map[string]int{}, isBase: true}
	n := len(r.commits)
	if n > 0 {
		last := r.commits[n-1]
		maps.Copy(c.own, last.own)
		maps.Copy(c.ownBy, last.ownBy)
		c.isBase = text != last.text || policy != last.policy
	}
	for name, text := range own {
		c.own[name], c.ownBy[name] = text, n
	}
	encoded, err := json.Marshal(policy)
	if err != nil {
		panic(err)
	}
	if c.edits[1] = text + string(encoded); n > 0 {
		c.edits[0] = r.commits[n-1].edits[1]
	}
	r.commits = append(r.commits, c)
	return n
}

// order sorts the stages so that a stage comes after the stages that it waits for.
func (r *rules) order() {
	done := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		if done[name] {
			return
		}
		done[name] = true
		e := r.environment(name)
		for _, before := range e.After {
			visit(before)
		}
		rings := []modelRing{{}}
		if len(e.Rings) > 0 {
			rings = e.Rings // which the generator makes in an order that will do
		}
		for _, ring := range rings {
			r.stages = append(r.stages, &ruleStage{
				environment: name, ring: ring.Name, has: ruleNothing, said: map[int]ruleWord{}, reports: map[string]ruleReport{},
			})
		}
	}
	for _, e := range r.policy().Environments {
		visit(e.Name)
	}
}

func (r *rules) of(environment string) []*ruleStage {
	return slices.DeleteFunc(slices.Clone(r.stages), func(s *ruleStage) bool { return s.environment != environment })
}

func (s *ruleStage) id() string { return session.StageID(s.environment, s.ring) }

// gates are the gates of the environment and of the ring.
func (r *rules) gates(s *ruleStage) []modelGates {
	e := r.environment(s.environment)
	out := []modelGates{e.modelGates}
	for _, ring := range e.Rings {
		if ring.Name == s.ring {
			out = append(out, ring.modelGates)
		}
	}
	return out
}

// before returns the stages before a stage, as groups. All groups have to be passed, or only one
// if any is true.
func (r *rules) before(s *ruleStage) (groups [][]*ruleStage, any, rings bool) {
	e := r.environment(s.environment)
	for _, ring := range e.Rings {
		if ring.Name != s.ring || len(ring.After) == 0 {
			continue
		}
		for _, name := range ring.After {
			groups = append(groups, slices.DeleteFunc(r.of(s.environment), func(o *ruleStage) bool { return o.ring != name }))
		}
		return groups, false, true
	}
	for _, name := range e.After {
		groups = append(groups, r.of(name))
	}
	return groups, e.Any, false
}

// through reports whether a question is answered by all groups, or by one with any; all
// stages of a group have to.
func through(groups [][]*ruleStage, any bool, ask func(*ruleStage) bool) bool {
	return throughs(groups, any, func(s *ruleStage) ruleAnswer {
		if ask(s) {
			return passes
		}
		return blocks
	}) == passes
}

// ruleAnswer is the answer of a gate; the greatest of several counts.
type ruleAnswer int

const (
	passes ruleAnswer = iota
	waits
	fails // it waits for the end of a failure
	blocks
	never // it left too early
)

func throughs(groups [][]*ruleStage, any bool, ask func(*ruleStage) ruleAnswer) ruleAnswer {
	worst, best := passes, never
	for _, group := range groups {
		of := passes
		for _, s := range group {
			of = max(of, ask(s))
		}
		worst, best = max(worst, of), min(best, of)
	}
	if any && len(groups) > 0 {
		return best
	}
	return worst
}

func (s *ruleStage) held(base int) *ruleStay {
	for i := len(s.stays) - 1; i >= 0; i-- {
		if s.stays[i].base == base {
			return &s.stays[i]
		}
	}
	return nil
}

// takenBack returns the base commits that other commits in bases revert, with the reverting
// commits. bases are sorted newest first.
func (r *rules) takenBack(bases []int) map[int]int {
	out, used := map[int]int{}, map[int]bool{}
	for i, n := range bases {
		is := r.commits[n].edits
		for j := i - 1; j >= 0; j-- {
			by := bases[j]
			if _, back := out[by]; !back && r.commits[by].named == n {
				out[n] = by
				break
			}
		}
		for j := i - 1; j >= 0; j-- {
			by := bases[j]
			_, already := out[n]
			if _, back := out[by]; !back && !used[by] && !already && r.commits[by].edits == [2]string{is[1], is[0]} {
				out[n], used[by] = by, true
			}
		}
	}
	return out
}

// brings returns the base commits that enter a stage with a base commit, without reverted ones.
func (r *rules) brings(s *ruleStage, base int) (out []int) {
	newer := slices.DeleteFunc(r.newer(s), func(n int) bool { return n > base })
	back := r.takenBack(newer)
	return slices.DeleteFunc(newer, func(n int) bool { _, is := back[n]; return is })
}

// rejectedIn returns the rejected base commits that enter a stage with a base commit.
func (r *rules) rejectedIn(s *ruleStage, base int) []int {
	if len(r.rejected) == 0 {
		return nil
	}
	return slices.DeleteFunc(r.brings(s, base), func(n int) bool { return n == base || !r.rejected[n] })
}

// reverted reports whether newer commits revert a commit that enters a stage with a base commit.
func (r *rules) reverted(s *ruleStage, base int) bool {
	switch r.environment(s.environment).Advance {
	case model.Latest, model.MatchUpstream, model.Queue:
		return false
	}
	back := r.takenBack(r.newer(s))
	if len(back) == 0 {
		return false
	}
	return slices.ContainsFunc(r.brings(s, base), func(n int) bool { _, is := back[n]; return is })
}

// mayCome answers the gates of the commit.
func (r *rules) mayCome(s *ruleStage, to ruleSource, named *ruleNamed) bool {
	var skip []string
	if named != nil {
		skip = named.skip
	}
	if s.hold.stands(r.now) && !(named != nil && named.ends != nil && *named.ends == *s.hold) {
		return false
	}
	if contains := r.rejectedIn(s, to.base); len(contains) > 0 && (named == nil || !named.reason || !slices.Equal(contains, named.contains)) {
		return false
	}
	if o, there := r.frozen[s.environment]; there && o.stands(r.now) {
		return false
	}
	after, soak := r.asked(s, to)
	if slices.Contains(skip, "after") {
		after = passes
	}
	if slices.Contains(skip, "soak") {
		soak = passes
	}
	return !r.rejected[to.base] && max(after, soak) == passes
}

// asked returns the answers of after and soak.
func (r *rules) asked(s *ruleStage, to ruleSource) (after, soak ruleAnswer) {
	groups, any, rings := r.before(s)
	return r.askedOf(s, to, groups, any, rings)
}

func (r *rules) askedOf(s *ruleStage, to ruleSource, groups [][]*ruleStage, any, rings bool) (after, soak ruleAnswer) {
	onlyOwn := s.has.base == to.base
	if !onlyOwn || rings {
		after = throughs(groups, any, func(up *ruleStage) ruleAnswer { answer, _, _ := up.stayed(to, rings); return answer })
	}
	for _, g := range r.gates(s) {
		if g.Soak == nil || onlyOwn && (!rings || g.Soak.Environment != "") {
			continue
		}
		pair := rings && g.Soak.Environment == ""
		soaked := func(up *ruleStage) ruleAnswer { return up.soaked(to, pair, g.Soak.For, g.Soak.Restart, r.now) }
		switch {
		case g.Soak.Environment != "":
			soak = max(soak, throughs([][]*ruleStage{r.of(g.Soak.Environment)}, false, soaked))
		case len(groups) == 0:
			soak = blocks
		default:
			soak = max(soak, throughs(groups, any, soaked))
		}
	}
	return after, soak
}

// stayed returns the result of a base commit's rollout at its last time in a stage, the time of
// that report, and the time when the commit left. If pair is true, the result is about the
// rollout of the base commit with the environment's own files.
func (s *ruleStage) stayed(of ruleSource, pair bool) (answer ruleAnswer, since, left time.Time) {
	word, had := s.said[of.base], false
	if pair {
		word, left, had = s.pair(of)
	} else if stay := s.held(of.base); stay != nil {
		left, had = stay.left, true
	}
	switch {
	case !had && !pair && s.has.base > of.base:
		return never, since, time.Time{}
	case !had:
		return waits, since, time.Time{}
	case s.hold != nil && s.hold.base >= 0 && (s.hold.base == of.base || of.base > s.has.base):
		return blocks, since, left
	case word.state == forge.Success:
		return passes, word.since, left
	case word.state == forge.Failure:
		return blocks, word.since, left
	case !left.IsZero():
		return never, word.since, left
	}
	return waits, word.since, left
}

func (s *ruleStage) soaked(of ruleSource, pair bool, wanted time.Duration, restart bool, now time.Time) ruleAnswer {
	answer, since, left := s.stayed(of, pair)
	failing, okSince := s.health(of, pair)
	switch {
	case answer != passes:
		return answer
	case failing && !left.IsZero():
		return never
	case failing && !restart:
		return blocks
	case failing:
		return fails
	}
	if okSince.After(since) {
		since = okSince
	}
	switch {
	case !left.IsZero() && left.Sub(since) < wanted:
		return never
	case now.Sub(since) < wanted:
		return waits
	}
	return passes
}

// health reports whether something fails in the last stay of a base commit, or of a pair,
// although its rollout succeeded. It also returns the time since which nothing fails any more.
func (s *ruleStage) health(of ruleSource, pair bool) (failing bool, okSince time.Time) {
	is := func(p *rulePair) bool { return p.of == of || !pair && p.of.base == of.base }
	last := len(s.pairs) - 1
	for last >= 0 && !is(&s.pairs[last]) {
		last--
	}
	if last < 0 {
		return false, okSince
	}
	first := last
	for first > 0 && (is(&s.pairs[first]) && is(&s.pairs[first-1]) || s.pairs[first-1].files == s.pairs[first].files) {
		first--
	}
	for last+1 < len(s.pairs) {
		next := &s.pairs[last+1]
		if goesOn := next.of.base == of.base && next.of.own > of.own; next.files != s.pairs[last].files && !(pair && goesOn) {
			break
		}
		last++
	}
	for i := first; i <= last; i++ {
		p := &s.pairs[i]
		if i > first && p.files != s.pairs[i-1].files && p.word.state == forge.Success && failing {
			failing, okSince = false, p.word.since
		}
		if h := p.health; h.told && h.failing != failing {
			failing, okSince = h.failing, h.since
		}
	}
	if failing {
		okSince = time.Time{}
	}
	return failing, okSince
}

// pair returns the report about the last time of a pair in a stage, and when it left. The pair
// stays while newer own files with the same base commit do not fail.
func (s *ruleStage) pair(of ruleSource) (word ruleWord, left time.Time, had bool) {
	for i, p := range slices.Backward(s.pairs) {
		if p.of != of {
			continue
		}
		files := p.files
		for _, next := range s.pairs[i+1:] {
			if next.files == files {
				continue
			}
			if files = next.files; next.of.base == of.base && next.of.own > of.own && next.word.state != forge.Failure && p.word.state == forge.Success {
				continue
			}
			if left = next.word.entered; left.Before(p.word.since) {
				left = p.word.since
			}
			break
		}
		return p.word, left, true
	}
	return word, left, false
}

// sources returns the sources that a stage may get with a base commit, newest own files first.
func (r *rules) sources(s *ruleStage, base int, unfit []ruleSource) []ruleSource {
	groups, _, rings := r.before(s)
	var out []ruleSource
	if !rings {
		out = []ruleSource{{base, r.own(s)}}
	} else {
		for own := len(r.commits) - 1; own >= -1; own-- {
			of := ruleSource{base, own}
			there := through(groups, false, func(up *ruleStage) bool { _, _, had := up.pair(of); return had })
			if there && (s.has == ruleNothing || own >= s.has.own) && of != s.has {
				out = append(out, of)
			}
		}
	}
	return slices.DeleteFunc(out, func(of ruleSource) bool { return slices.Contains(unfit, of) })
}

// best returns the newest of some sources that may enter a stage. It returns ruleNothing if there
// is no such source.
func (r *rules) best(s *ruleStage, sources []ruleSource) ruleSource {
	for _, of := range sources {
		if r.mayCome(s, of, nil) {
			return of
		}
	}
	return ruleNothing
}

// shown returns the source that best shows if no source may enter. This is the first source that
// may pass by itself, or else the first.
func (r *rules) shown(s *ruleStage, sources []ruleSource) ruleSource {
	shown := sources[0]
	for _, of := range sources {
		after, soak := r.asked(s, of)
		if max(after, soak) == passes {
			return of
		}
		if was, then := r.asked(s, shown); max(was, then) >= blocks && max(after, soak) < blocks {
			shown = of
		}
	}
	return shown
}

// soaking returns the stages that a stage is after, and the stages that its soak gates name.
func (r *rules) soaking(s *ruleStage) []*ruleStage {
	groups, _, _ := r.before(s)
	out := slices.Concat(groups...)
	for _, g := range r.gates(s) {
		if g.Soak != nil && g.Soak.Environment != "" {
			out = append(out, r.of(g.Soak.Environment)...)
		}
	}
	return out
}

// locked reports whether another commit soaks in a stage or in a stage after it, and can still
// enter the stage that it soaks for.
func (r *rules) locked(s *ruleStage, base int) bool {
	after := map[string]bool{s.environment: true}
	for _, next := range r.stages {
		if next.environment != s.environment && !slices.ContainsFunc(r.environment(next.environment).After, func(name string) bool { return after[name] }) {
			continue
		}
		after[next.environment] = true
		for _, up := range r.soaking(next) {
			has := up.has
			if !after[up.environment] || has == ruleNothing || has.base <= next.has.base || has.base == base || r.rejected[has.base] {
				continue
			}
			if _, _, rings := r.before(next); !rings || up.environment != next.environment {
				has.own = r.own(next)
			} else if pairs := r.sources(next, has.base, nil); len(pairs) > 0 {
				has = r.shown(next, pairs)
			}
			if after, soak := r.asked(next, has); after < blocks && soak == waits && !r.refuses(next, has) && !r.neverComes(next, has.base, has.own) {
				return true
			}
		}
	}
	return false
}

// refuses reports whether a stage will not take a base commit that it does not have.
func (r *rules) refuses(s *ruleStage, to ruleSource) bool {
	after, soak := r.asked(s, to)
	if r.environment(s.environment).Advance == model.MatchUpstream {
		groups, any, _ := r.before(s)
		for _, up := range slices.Concat(groups...) {
			switch {
			case up.has == ruleNothing:
				continue
			case up.has.base > to.base:
				return true
			}
			if any {
				break
			}
		}
	}
	return to.base <= s.has.base || r.rejected[to.base] || len(r.rejectedIn(s, to.base)) > 0 || r.reverted(s, to.base) || max(after, soak) >= blocks || !r.fits(s, to, nil)
}

// neverComes reports whether a base commit can no longer enter a stage through the stages before
// it.
func (r *rules) neverComes(s *ruleStage, base, own int) bool {
	groups, any, rings := r.before(s)
	count := 0
	for _, group := range groups {
		after, soak := r.askedOf(s, ruleSource{base, own}, [][]*ruleStage{group}, false, rings)
		if max(after, soak) >= blocks || slices.ContainsFunc(group, func(up *ruleStage) bool {
			at := ruleSource{base, r.own(up)}
			if _, _, pairs := r.before(up); pairs {
				at.own = up.has.own
			}
			return up.held(base) == nil && (r.refuses(up, at) || r.neverComes(up, base, own))
		}) {
			count++
		}
	}
	return count > 0 && (!any || count == len(groups))
}

// fits answers the gates of the change.
func (r *rules) fits(s *ruleStage, to ruleSource, skip []string) bool {
	if strings.Contains(r.commits[to.base].text, brokenBase) {
		return false
	}
	changed := r.changed(s, to)
	for _, g := range r.gates(s) {
		if g.Budget != nil && changed > *g.Budget && !slices.Contains(skip, "budget") {
			return false
		}
	}
	return true
}

// changed returns the number of assignments that a step changes.
func (r *rules) changed(s *ruleStage, to ruleSource) int {
	n := 0
	for _, id := range r.assignments(s) {
		target := id[strings.LastIndex(id, "/")+1:]
		if s.has == ruleNothing || r.content(s, target, s.has) != r.content(s, target, to) {
			n++
		}
	}
	return n
}

func (r *rules) content(s *ruleStage, target string, of ruleSource) string {
	own := ""
	if of.own >= 0 {
		own = r.commits[of.own].own[s.environment]
	}
	return modelContent(target, r.commits[of.base].text, own)
}

// own is the commit that last changed the environment's own files.
func (r *rules) own(s *ruleStage) int {
	if n, there := r.commits[len(r.commits)-1].ownBy[s.environment]; there {
		return n
	}
	return -1
}

// newer returns the base commits that are newer than the commit of a stage, newest first.
func (r *rules) newer(s *ruleStage) []int {
	var out []int
	for i := len(r.commits) - 1; i > s.has.base; i-- {
		if r.commits[i].isBase {
			out = append(out, i)
		}
	}
	return out
}

// choose returns the source that a stage may get now, except the sources in unfit. It returns
// ruleNothing if there is no such source.
func (r *rules) choose(s *ruleStage, unfit []ruleSource) ruleSource {
	groups, any, rings := r.before(s)
	newer := slices.DeleteFunc(r.newer(s), func(base int) bool {
		return r.rejected[base] || r.reverted(s, base) || len(r.sources(s, base, unfit)) == 0 && len(r.sources(s, base, nil)) > 0
	})
	there := slices.DeleteFunc(slices.Clone(newer), func(base int) bool {
		if rings {
			return len(r.sources(s, base, unfit)) == 0
		}
		return !through(groups, any, func(up *ruleStage) bool { return up.held(base) != nil })
	})
	with := func(base int) ruleSource { return r.best(s, r.sources(s, base, unfit)) }
	may := func(base int) bool { return with(base) != ruleNothing }
	candidate := -1
	switch e := r.environment(s.environment); {
	case len(there) == 0 || slices.ContainsFunc(unfit, func(of ruleSource) bool { return of.base != s.has.base }) && !slices.Contains([]model.Advance{model.LatestPassed, model.Lockstep, model.Batch}, e.Advance):
	case e.Advance == model.MatchUpstream:
		candidate = r.upstreamHas(groups, any, there)
	case e.Advance == model.Queue && s.has != ruleNothing:
		for _, candidate = range slices.Backward(there) {
			if after, soak := r.asked(s, r.shown(s, r.sources(s, candidate, unfit))); max(after, soak) < never {
				break
			}
		}
	case e.Advance == model.Latest:
		candidate = there[0]
	default:
		if i := slices.IndexFunc(there, may); i >= 0 {
			candidate = there[i]
		}
		if i := slices.IndexFunc(there, func(base int) bool { return may(base) && !r.locked(s, base) }); i >= 0 && e.Advance == model.Lockstep && s.has != ruleNothing {
			candidate = there[i] // a commit in progress has priority
		}
	}
	if e := r.environment(s.environment); candidate >= 0 && s.has != ruleNothing &&
		(e.Advance == model.Lockstep && r.locked(s, candidate) || e.Advance == model.Batch && r.now.Before(s.stays[len(s.stays)-1].entered.Add(e.Every))) {
		candidate = -1
	}
	if candidate >= 0 && may(candidate) {
		return with(candidate)
	}
	if s.has == ruleNothing {
		return ruleNothing
	}
	return r.best(s, slices.DeleteFunc(r.sources(s, s.has.base, unfit), func(of ruleSource) bool { return of == s.has }))
}

func (r *rules) upstreamHas(groups [][]*ruleStage, any bool, there []int) int {
	common := -1
	for _, up := range slices.Concat(groups...) {
		switch is := up.has.base; {
		case any && is < 0:
		case common < 0:
			common = is
		case is != common && !any:
			return -1
		}
	}
	if len(groups) == 0 || !slices.Contains(there, common) {
		return -1
	}
	return common
}

// run takes the steps that a run of the engine has to take.
func (r *rules) run(overwrite bool) {
	for _, s := range r.stages {
		r.observe(s)
		if r.drifts(s.environment) && !overwrite {
			continue
		}
		if s.named != nil && s.named.base >= s.has.base {
			r.promote(s, s.named)
			continue
		}
		if to := r.fitting(s); to != ruleNothing {
			r.land(s, to, nil, false)
			continue
		}
		if overwrite && s.has != ruleNothing && !r.proposes(s, s.has) {
			s.drift = false
		}
	}
}

// fitting returns the first source that a stage may get and that fits.
func (r *rules) fitting(s *ruleStage) ruleSource {
	var unfit []ruleSource
	for range plan.MaxTried {
		to := r.choose(s, unfit)
		if to == ruleNothing || r.fits(s, to, nil) {
			return to
		}
		unfit = append(unfit, to)
	}
	return ruleNothing
}

func (r *rules) drifts(environment string) bool {
	return slices.ContainsFunc(r.of(environment), func(s *ruleStage) bool { return s.drift })
}

// proposes reports whether a step waits for people to merge its change request.
func (r *rules) proposes(s *ruleStage, to ruleSource) bool {
	return r.forge && r.environment(s.environment).Manual && !r.empty(s.environment) && (s.drift || r.changed(s, to) > 0)
}

func (r *rules) empty(environment string) bool {
	return !slices.ContainsFunc(r.of(environment), func(s *ruleStage) bool { return s.has != ruleNothing })
}

// land is a new tree in a stage, unless it is only proposed.
func (r *rules) land(s *ruleStage, to ruleSource, hold *ruleOrder, explicit bool) {
	if s.named = nil; !r.proposes(s, to) {
		r.arrive(s, to, hold, explicit)
		r.observe(s)
	}
}

// arrive puts a new tree into a stage, without any reports.
func (r *rules) arrive(s *ruleStage, to ruleSource, hold *ruleOrder, explicit bool) {
	s.hold, s.drift, s.named = hold, false, nil
	if to == s.has {
		return
	}
	if to.base != s.has.base {
		s.stays = append(s.stays, ruleStay{base: to.base})
		s.explicit = explicit
	}
	s.has, s.landed, s.forced = to, s.landed+1, false
	r.recorded[s.environment] = r.nameAt(to.base, s.environment)
	s.pairs = append(s.pairs, rulePair{of: to, files: r.content(s, "t1", to)})
	s.landing = ruleWord{}
}

// observe looks at the clusters.
func (r *rules) observe(s *ruleStage) {
	if s.has == ruleNothing {
		return
	}
	last := len(s.pairs) - 1
	if !s.landing.told {
		same := last > 0 && s.pairs[last-1].files == s.pairs[last].files && s.pairs[last-1].word.told
		if s.landing = (ruleWord{told: true, state: forge.Pending, entered: r.now, since: r.now}); same {
			s.landing, s.pairs[last].health = s.pairs[last-1].word, s.pairs[last-1].health // of the files
		}
		n := len(s.stays) - 1
		if s.stays[n].entered.IsZero() {
			s.stays[n].entered, s.said[s.has.base] = s.landing.entered, s.landing
		} else if said := s.said[s.has.base]; said.state == forge.Failure { // other files are tried
			said.state, said.since = s.landing.state, s.landing.since
			s.said[s.has.base] = said
		}
		for i := range s.stays[:n] {
			if !same && s.stays[i].left.IsZero() {
				s.stays[i].left = r.now
			}
		}
	}
	health := s.pairs[last].health
	switch state := r.judge(s); {
	case s.landing.state == forge.Success && state == forge.Failure && !health.failing && r.soaks(s),
		s.landing.state == forge.Success && state == forge.Success && health.failing:
		health = ruleWord{told: true, failing: state == forge.Failure, since: r.now}
	case s.landing.state == forge.Success:
	case state != forge.Pending && state != s.landing.state:
		s.landing.state, s.landing.since = state, r.now
	}
	for i := last; i >= 0 && s.pairs[i].files == s.pairs[last].files; i-- { // the report is about all such pairs
		s.pairs[i].word, s.pairs[i].health = s.landing, health
		base := s.pairs[i].of.base
		if said := s.said[base]; said.state != forge.Success && said.state != s.landing.state && s.landing.state != forge.Pending {
			said.state, said.since = s.landing.state, s.landing.since
			s.said[base] = said
		}
	}
}

// soaks reports whether the commit of a stage soaks there for another stage.
func (r *rules) soaks(s *ruleStage) bool {
	return slices.ContainsFunc(r.stages, func(next *ruleStage) bool {
		groups, _, rings := r.before(next)
		lacks := next.has.base < s.has.base || rings && next.environment == s.environment && next.has.base == s.has.base && next.has != s.has
		return lacks && slices.ContainsFunc(r.gates(next), func(g modelGates) bool {
			if g.Soak == nil || g.Soak.Environment != "" {
				return g.Soak != nil && g.Soak.Environment == s.environment
			}
			return slices.Contains(slices.Concat(groups...), s)
		})
	})
}

func (r *rules) rolloutGate(s *ruleStage) model.RolloutGate {
	out := model.RolloutGate{Source: "any", Min: "100%"}
	for _, g := range r.gates(s) {
		if g.Rollout != nil {
			out = *g.Rollout
		}
	}
	return out
}

func (r *rules) judge(s *ruleStage) forge.State {
	g := r.rolloutGate(s)
	if g.Source == "none" {
		return forge.Success
	}
	wanted, healthy, failed, silent := 0, 0, 0, 0
	for _, id := range r.assignments(s) {
		wanted++
		report, there := s.reports[id]
		switch {
		case !there:
			silent++
		case report.landed == 0 || r.differs(s, report.landed-1):
		case report.state == rollout.Healthy:
			healthy++
		case report.state == rollout.Failed:
			failed++
		}
	}
	min, _ := new(big.Rat).SetString(strings.TrimSuffix(g.Min, "%"))
	min.Quo(min, big.NewRat(100, 1)).Mul(min, big.NewRat(int64(wanted), 1))
	switch {
	case failed > g.MaxFailed:
		return forge.Failure
	case silent < wanted && big.NewRat(int64(healthy), 1).Cmp(min) >= 0:
		return forge.Success
	case g.Timeout > 0 && s.landing.state != forge.Success && r.now.Sub(s.landing.entered) >= g.Timeout:
		return forge.Failure
	}
	return forge.Pending
}

// differs reports whether a stage had other files since a landing.
func (r *rules) differs(s *ruleStage, since int) bool {
	now := s.pairs[len(s.pairs)-1].files
	return slices.ContainsFunc(s.pairs[since:], func(p rulePair) bool { return p.files != now })
}

// rollback brings a stage some base commits back. It reports whether there is
// something.
func (r *rules) rollback(s *ruleStage, steps int, exact bool) (ruleSource, bool) {
	if s.has == ruleNothing || r.drifts(s.environment) {
		return ruleNothing, false
	}
	first := slices.IndexFunc(s.pairs, func(p rulePair) bool { return p.of.base == s.has.base })
	var earlier []ruleSource
	for _, p := range slices.Backward(s.pairs[:first]) {
		if !r.rejected[p.of.base] && !slices.ContainsFunc(earlier, func(e ruleSource) bool { return e.base == p.of.base }) {
			earlier = append(earlier, p.of)
		}
	}
	if steps > len(earlier) {
		return ruleNothing, false
	}
	to := earlier[steps-1]
	if _, _, rings := r.before(s); !exact && rings {
		to.own = s.has.own
	} else if !exact {
		to.own = r.own(s)
	} else if len(r.environment(s.environment).Rings) > 1 {
		return ruleNothing, false
	}
	return to, true
}

// name promotes a commit by its name. It reports whether that needs a reason.
func (r *rules) name(s *ruleStage, n *ruleNamed) bool {
	for _, up := range r.soaking(s) {
		r.observe(up)
	}
	r.observe(s)
	if r.drifts(s.environment) || n.base < s.has.base {
		return false
	}
	n.contains = r.rejectedIn(s, n.base)
	if s.hold.stands(r.now) {
		n.ends = s.hold
	}
	if !n.reason && !r.rejected[n.base] && (n.ends != nil || len(n.contains) > 0) {
		return true
	}
	r.promote(s, n)
	return false
}

// promote promotes the commit that a person named to a stage, if it may enter.
func (r *rules) promote(s *ruleStage, n *ruleNamed) {
	base := n.base
	to := ruleSource{base, r.own(s)}
	if _, _, rings := r.before(s); rings {
		if s.has != ruleNothing {
			to.own = s.has.own
		}
		if pairs := r.sources(s, base, nil); len(pairs) > 0 && base != s.has.base {
			to = r.shown(s, pairs)
		}
	}
	if to == s.has && s.hold == nil {
		return
	}
	if r.mayCome(s, to, n) && r.fits(s, to, n.skip) {
		if r.land(s, to, nil, true); s.has != to {
			s.named = n
		}
	}
}
