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
	Old git.Hash // the required commit of the ref; the zero Hash if the ref must not exist
	New git.Hash // the new commit of the ref; the zero Hash to delete the ref
}

// proposal is the request of a push.
type proposal struct {
	updates      []Update
	packs        []string
	staging      string // the folder of the repository with the packs
	atomic       bool
	precondition func(refs map[string]git.Hash) error // may be nil
}

// report is the answer of a server to a push.
type report struct {
	unpack   string            // the status of the packs; "ok"
	status   map[string]string // by ref; "ok" if it changed
	messages string            // to the user
}

// errUnknownResult is that a server did not report the result of a push.
var errUnknownResult = errors.New("the server does not say what it did")

// Push changes refs of the server, each of which must be at Old; Push never forces a ref. packs
// are files of packs in [Remote.Staging] with all objects that the server may lack. No two packs
// have an object in common, and Push sends no pack if refs are only deleted. With atomic, either
// all refs change or none. If the server does not support that, Push returns an ErrNoAtomic.
//
// Push returns a git.ErrLostRace if a ref is not at Old, even if several processes move it at
// once. It returns a *RejectedError if the server rejects the change. A ref that is already at
// its new commit is a success, whoever moved it there. So is a lost answer, if Push then finds
// the refs at their new commits.
//
// Advertised then returns the refs as they were read last, with these changes. The store has the
// objects, so pushed objects are not fetched again.
func (r *Remote) Push(ctx context.Context, updates []Update, packs []string, atomic bool) error {
	return r.PushWhile(ctx, updates, packs, atomic, nil)
}

// PushWhile is Push with a precondition: a function that accepts the refs right before the
// push, or returns the error of it.
func (r *Remote) PushWhile(ctx context.Context, updates []Update, packs []string, atomic bool,
	precondition func(refs map[string]git.Hash) error) error {
	if r.options.Pushing != nil {
		r.options.Pushing()
	}
	err := r.push(ctx, updates, packs, atomic, precondition)
	if err == nil {
		r.moved(updates)
		r.keep(ctx, updates, packs)
	}
	return r.failed(ctx, err)
}

// moved records the pushed updates.
func (r *Remote) moved(updates []Update) {
	r.mu.Lock()
	defer r.mu.Unlock()
	latest := *r.latest
	latest.refs, latest.peeled = maps.Clone(latest.refs), maps.Clone(latest.peeled)
	for _, u := range updates {
		delete(latest.refs, u.Ref)
		delete(latest.peeled, u.Ref)
		delete(r.named, u.Old) // no other process moved it
		if !u.New.IsZero() {
			latest.refs[u.Ref], r.named[u.New] = u.New, true
		}
	}
	r.latest = &latest
}

// keep adds pushed objects to the store. If that fails, they are fetched later.
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

func (r *Remote) push(ctx context.Context, updates []Update, packs []string, atomic bool,
	precondition func(refs map[string]git.Hash) error) error {
	if err := check(updates); err != nil {
		return err
	}
	staging, err := r.Staging()
	if err != nil {
		return err
	}
	p := &proposal{updates: updates, packs: packs, staging: staging.Dir(), atomic: atomic,
		precondition: precondition}
	for attempt := 0; ; attempt++ {
		last := attempt == maxPushes-1
		got, err := r.propose(ctx, p)
		if err == nil && got == nil {
			return nil
		}
		if err != nil && !errors.Is(err, errUnknownResult) && !httpclient.Temporary(err) {
			return err
		}
		outcome := r.outcome(ctx, p, got, err)
		if outcome == nil || !errors.Is(outcome, errUnknownResult) {
			return outcome
		}
		if last {
			return &lostRace{detail: lostDetail(err)}
		}
	}
}

// maxPushes is the number of times that a push is sent if its answer is lost.
const maxPushes = 2

// lostDetail describes a push without a result that left the refs as they were.
func lostDetail(err error) string {
	text := "the server did not say what it did, and the refs are as before"
	if err != nil && !errors.Is(err, errUnknownResult) {
		return text + ": " + err.Error()
	}
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range all.Unwrap() {
			if e != errUnknownResult {
				text += ": " + e.Error()
			}
		}
	}
	return text
}

// check returns an error for updates that cannot be sent.
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

// propose sends the updates that are not done yet. It returns the report of a server that
// did not do all of them, and nil if all are done.
func (r *Remote) propose(ctx context.Context, p *proposal) (*report, error) {
	got, err := r.backend.push(ctx, p)
	if r.gitMaySignIn(err) {
		if answer, failed := (&command{url: r.url}).push(ctx, p); failed == nil {
			got, err = answer, nil
		}
	}
	if err != nil {
		return nil, err
	}
	if got.unpack == done &&
		!slices.ContainsFunc(p.updates, func(u Update) bool { return got.status[u.Ref] != done }) {
		return nil, nil
	}
	return got, nil
}

// send sends the updates that are not done yet, given the refs that the server reports
// right before.
func (p *proposal) send(refs map[string]git.Hash, push func(*proposal) (*report, error)) (*report,
	error) {
	if p.precondition != nil {
		if err := p.precondition(refs); err != nil {
			return nil, err
		}
	}
	left, err := (&advertisement{refs: refs}).left(p.updates)
	if err != nil {
		return nil, err
	}
	rest, got := *p, accepted(p)
	if rest.updates = left; len(left) == 0 {
		return got, nil
	}
	answer, err := push(&rest)
	if err != nil {
		return nil, err
	}
	for _, u := range left {
		delete(got.status, u.Ref)
	}
	maps.Copy(answer.status, got.status)
	return answer, nil
}

// done is the status of servers for a success.
const done = "ok"

// left returns the updates that are not done yet. It returns a lost race if one is not possible
// any more.
func (a *advertisement) left(updates []Update) ([]Update, error) {
	var left []Update
	for _, u := range updates {
		is := a.refs[u.Ref]
		if is == u.New {
			continue
		}
		if is != u.Old {
			return nil, &lostRace{detail: fmt.Sprintf("%s should be %s, and is %s", u.Ref, place(u.Old),
				place(is))}
		}
		if other := a.conflicting(u, updates); other != "" {
			return nil, &RejectedError{Ref: u.Ref,
				Reason: other + " is there, and one cannot be the folder of the other"}
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

// conflicting returns a ref whose folder a new one would be, or that is the folder of a new
// one.
func (a *advertisement) conflicting(u Update, updates []Update) string {
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

// outcome reads the refs to find the result of a push. It returns nil if all refs are at their
// new commits, and errUnknownResult if the push can be sent once more.
func (r *Remote) outcome(ctx context.Context, p *proposal, got *report, failure error) error {
	latest, err := r.ask(ctx)
	if err != nil {
		return errors.Join(failure, err)
	}
	left, err := latest.left(p.updates)
	if err != nil || len(left) == 0 {
		return err
	}
	if got == nil {
		return errUnknownResult
	}
	return got.judge(left)
}

// races are the statuses of servers for a ref that is not at the expected commit, or that another
// process is changing. They are from git, GitHub, GitLab, Gitea and others, old and new.
var races = []string{
	"failed to update ref", "non-fast-forward", "fetch first", "required to be", "cannot lock ref",
	"failed to lock", "incorrect old value provided", "stale info", "reference already exists",
	"reference does not exist",
	"atomic push fail", "atomic transaction fail", "remote rejected: expected", "already exists",
	"needs force",
}

// together are the statuses of a ref that did not change because another did not.
var together = []string{"atomic push fail", "atomic transaction fail", "transaction failed"}

func saysOneOf(text string, texts []string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(text, t) })
}

// judge returns the error for the updates that a server did not do.
func (p *report) judge(left []Update) error {
	if p.unpack != done {
		return fmt.Errorf("the server does not take the objects: %s", p.reason(p.unpack))
	}
	var race error
	for _, u := range left {
		status, known := p.status[u.Ref]
		switch {
		case !known:
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
		return errUnknownResult // it reports success, and the refs have not changed
	}
	return race
}

// reason returns a status with the server's messages, which have more detail.
func (p *report) reason(status string) string {
	if messages := strings.TrimSpace(p.messages); messages != "" {
		return terminal.Line(status + ": " + messages)
	}
	return terminal.Line(status)
}
