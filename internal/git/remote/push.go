package remote

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/httpclient"
	"github.com/kalypso-io/kalypso/internal/terminal"
)

// Update is a change of one ref.
type Update struct {
	Ref string
	Old git.Hash // where the ref must be; the zero Hash where it must not exist
	New git.Hash // where it will be; the zero Hash to delete it
}

// proposal is what a server is asked for with a push.
type proposal struct {
	updates []Update
	packs   []string
	staging string // the repository that has the packs
	atomic  bool
	still   func(refs map[string]git.Hash) error // nil for nothing to ask of the refs
}

// deletes says whether refs are only deleted: servers take no pack then.
func (p *proposal) deletes() bool {
	return !slices.ContainsFunc(p.updates, func(u Update) bool { return !u.New.IsZero() })
}

// report is what a server says to a push.
type report struct {
	unpack string            // what it says of the packs; "ok"
	status map[string]string // by ref; "ok" where it changed
	said   string            // what it said to people
}

// errUnsure is that a server may have done what it was asked for, and did not say.
var errUnsure = errors.New("the server does not say what it did")

// Push changes refs of the server, each of which must be where Old says: no ref is
// ever forced. packs are files of packs in [Remote.Staging] with all objects that
// the server may lack; no two have an object in common, and none is sent where refs
// are only deleted. With atomic, either all refs change or none: the error is an
// ErrNoAtomic where the server cannot do that.
//
// The error is a git.ErrLostRace where a ref is not where it should be, also if
// several processes move it at once, and a *RejectedError where the server does not
// want the change. That a ref is already where it should go is success, whoever
// moved it there. So is an answer that is lost, if the refs are then seen where
// they should be.
//
// Advertised then has the refs as they were asked for last, with these changes, and the
// objects are there for all who use the store: what was pushed is not fetched again.
func (r *Remote) Push(ctx context.Context, updates []Update, packs []string, atomic bool) error {
	return r.PushWhile(ctx, updates, packs, atomic, nil)
}

// PushWhile is Push where a function has nothing against the refs as they are right
// before. Its error is that of the push.
func (r *Remote) PushWhile(ctx context.Context, updates []Update, packs []string, atomic bool, still func(refs map[string]git.Hash) error) error {
	err := r.push(ctx, updates, packs, atomic, still)
	if err == nil {
		r.moved(updates)
		r.keep(ctx, updates, packs)
	}
	return r.failed(ctx, err)
}

// moved takes note of what was pushed.
func (r *Remote) moved(updates []Update) {
	r.mu.Lock()
	defer r.mu.Unlock()
	told := *r.told
	told.refs, told.peeled = maps.Clone(told.refs), maps.Clone(told.peeled)
	for _, u := range updates {
		delete(told.refs, u.Ref)
		delete(told.peeled, u.Ref)
		delete(r.named, u.Old) // nobody else moved it
		if !u.New.IsZero() {
			told.refs[u.Ref], r.named[u.New] = u.New, true
		}
	}
	r.told = &told
}

// keep puts what was pushed into the store, so that nobody fetches it. Where that fails,
// it is fetched.
func (r *Remote) keep(ctx context.Context, updates []Update, packs []string) {
	for _, name := range packs {
		if r.store.take(ctx, name) != nil {
			return
		}
	}
	for _, u := range updates {
		if there, err := r.store.has(u.New, 1, nil); err == nil && there {
			_ = r.store.markAfter(u.Old, u.New)
		}
	}
}

func (r *Remote) push(ctx context.Context, updates []Update, packs []string, atomic bool, still func(refs map[string]git.Hash) error) error {
	if err := check(updates); err != nil {
		return err
	}
	staging, err := r.Staging()
	if err != nil {
		return err
	}
	p := &proposal{updates: updates, packs: packs, staging: staging.Dir(), atomic: atomic, still: still}
	for attempt := 0; ; attempt++ {
		last := attempt == mostPushes-1
		said, err := r.propose(ctx, p)
		if err == nil && said == nil {
			return nil
		}
		if err != nil && !errors.Is(err, errUnsure) && !httpclient.Temporary(err) {
			return err
		}
		outcome := r.outcome(ctx, p, said, err)
		if outcome == nil || !errors.Is(outcome, errUnsure) {
			return outcome
		}
		if last {
			return &lostRace{detail: unsaid(err)}
		}
	}
}

// mostPushes is how often a push is made whose answer is lost.
const mostPushes = 2

// unsaid is what is known of a push that left the refs as they were.
func unsaid(err error) string {
	text := "the server did not say what it did, and the refs are as before"
	if err != nil && !errors.Is(err, errUnsure) {
		return text + ": " + err.Error()
	}
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range all.Unwrap() {
			if e != errUnsure {
				text += ": " + e.Error()
			}
		}
	}
	return text
}

// check finds what no server should be asked for.
func check(updates []Update) error {
	seen := map[string]bool{}
	for _, u := range updates {
		switch {
		case !isRef(u.Ref):
			return fmt.Errorf("%q is not a name that git allows for a ref", u.Ref)
		case u.Old == u.New:
			return fmt.Errorf("%s is to stay where it is", u.Ref)
		case seen[u.Ref]:
			return fmt.Errorf("%s is to be changed twice", u.Ref)
		}
		seen[u.Ref] = true
	}
	return nil
}

// propose sends what is not done yet. It returns the report of a server that did not
// do all of it, and nil where all is done.
func (r *Remote) propose(ctx context.Context, p *proposal) (*report, error) {
	said, err := r.wire.push(ctx, p)
	if err != nil {
		return nil, err
	}
	if said.unpack == done && !slices.ContainsFunc(p.updates, func(u Update) bool { return said.status[u.Ref] != done }) {
		return nil, nil
	}
	return said, nil
}

// send sends what is not done yet, where the refs are as a server says right before.
func (p *proposal) send(refs map[string]git.Hash, push func(*proposal) (*report, error)) (*report, error) {
	if p.still != nil {
		if err := p.still(refs); err != nil {
			return nil, err
		}
	}
	left, err := (&advertisement{refs: refs}).left(p.updates)
	if err != nil {
		return nil, err
	}
	rest, said := *p, accepted(p)
	if rest.updates = left; len(left) == 0 {
		return said, nil
	}
	answer, err := push(&rest)
	if err != nil {
		return nil, err
	}
	for _, u := range left {
		delete(said.status, u.Ref)
	}
	maps.Copy(answer.status, said.status)
	return answer, nil
}

// done is what servers say of what they did.
const done = "ok"

// left returns the updates that are not done yet. The error is a lost race where one
// cannot be done any more.
func (a *advertisement) left(updates []Update) ([]Update, error) {
	var left []Update
	for _, u := range updates {
		is := a.refs[u.Ref]
		if is == u.New {
			continue
		}
		if is != u.Old {
			return nil, &lostRace{detail: fmt.Sprintf("%s should be %s, and is %s", u.Ref, place(u.Old), place(is))}
		}
		if other := a.inTheWay(u, updates); other != "" {
			return nil, &RejectedError{Ref: u.Ref, Reason: other + " is there, and one cannot be the folder of the other"}
		}
		left = append(left, u)
	}
	return left, nil
}

func place(id git.Hash) string {
	if id.IsZero() {
		return "nowhere"
	}
	return "at " + git.Short(id)
}

// inTheWay returns a ref whose folder a new one would be, or that is the folder of a
// new one.
func (a *advertisement) inTheWay(u Update, updates []Update) string {
	if !u.Old.IsZero() {
		return ""
	}
	for ref := range a.refs {
		if !strings.HasPrefix(ref, u.Ref+"/") && !strings.HasPrefix(u.Ref, ref+"/") {
			continue
		}
		if !slices.Contains(updates, Update{Ref: ref, Old: a.refs[ref]}) {
			return ref
		}
	}
	return ""
}

// outcome finds out what a push did that was not simply successful: nil where all
// refs are where they should be, errUnsure where it can be tried once more.
func (r *Remote) outcome(ctx context.Context, p *proposal, said *report, failure error) error {
	told, err := r.ask(ctx)
	if err != nil {
		return errors.Join(failure, err)
	}
	left, err := told.left(p.updates)
	if err != nil || len(left) == 0 {
		return err
	}
	if said == nil {
		return errUnsure
	}
	return said.judge(left)
}

// races are what servers say when a ref is not where it should be, or somebody else
// is changing it: git, GitHub, GitLab, Gitea and others, old and new.
var races = []string{
	"failed to update ref", "non-fast-forward", "fetch first", "required to be", "cannot lock ref",
	"failed to lock", "incorrect old value provided", "stale info", "reference already exists", "reference does not exist",
	"atomic push fail", "atomic transaction fail", "remote rejected: expected", "already exists", "needs force",
}

// together are what servers say of a ref that did not change because another did not.
var together = []string{"atomic push fail", "atomic transaction fail", "transaction failed"}

func saysOneOf(text string, texts []string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(text, t) })
}

// judge says why a server did not do what it was asked for.
func (p *report) judge(left []Update) error {
	if p.unpack != done {
		return fmt.Errorf("the server does not take the objects: %s", p.reason(p.unpack))
	}
	var race error
	for _, u := range left {
		status, told := p.status[u.Ref]
		switch {
		case !told:
			status = "the server says nothing of it"
		case status == done:
			continue
		}
		if !saysOneOf(status, together) && !saysOneOf(status, races) {
			return &RejectedError{Ref: u.Ref, Reason: p.reason(status)}
		}
		if race == nil || !saysOneOf(status, together) {
			race = &lostRace{detail: u.Ref + ": " + p.reason(status)}
		}
	}
	if race == nil {
		return errUnsure // it says that it did, and the refs say that it did not
	}
	return race
}

// reason is a status with what the server said to people, which says more.
func (p *report) reason(status string) string {
	if said := strings.TrimSpace(p.said); said != "" {
		return terminal.Line(status + ": " + said)
	}
	return terminal.Line(status)
}
