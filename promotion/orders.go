package promotion

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/git/remote"
)

// Orders are what people decided beside policies, each in a ref of the GitOps
// repository of its own: refs/kalypso/freeze/<environment> and
// refs/kalypso/reject/<commit>, and refs/kalypso/abort/<environment>[.<ring>]/<commit>
// for a candidate that was called off. The ref is a commit without files, whose message ends
// in the order as JSON: `git log -1 refs/kalypso/freeze/prod` shows it. Each comes after
// the one before, also those that take another back: refs/kalypso/log is the newest. Where
// a server does not let such refs be written, they are tags: refs/tags/kalypso/...
const (
	ordersRefs = "refs/kalypso/"
	ordersTags = "refs/tags/kalypso/"
	ordersLog  = "log"
)

// order is one of them.
type order struct {
	Kind   string    `json:"kind"` // freeze, reject or abort; thaw, readmit or resume end them
	About  string    `json:"about"`
	Reason string    `json:"reason,omitempty"`
	By     string    `json:"by"`
	Until  time.Time `json:"until,omitzero"`

	at time.Time
	id git.Hash
}

// orders are those about one environment, and the rejections, which are about all.
type orders struct {
	frozen   *order
	aborted  map[string]map[git.Hash]*order // by ring
	rejected map[git.Hash]*order
}

// candidate is what an order to call off is about.
func (o *order) candidate() (environment, ring string, commit git.Hash) {
	stop, id, _ := strings.Cut(o.About, "/")
	environment, ring, _ = strings.Cut(stop, ".")
	return environment, ring, tree.Revision(id).Hash()
}

// gitRepository is a git repository as it was opened: its refs are those of then, with
// what was pushed since. It is for one goroutine.
type gitRepository struct {
	url     string // without credentials
	remote  *remote.Remote
	refs    map[string]git.Hash
	staging *git.Repository
	ordered []*order // the orders; nil before they are read
}

// author is who makes commits, and signs them.
type author struct {
	git.Signature
	sign func([]byte) (string, error) // nil for nothing
}

// orders reads what was ordered. An order that cannot be read stops what it is about:
// somebody meant something by it.
func (r *gitRepository) orders(ctx context.Context, environment string) (*orders, error) {
	out := &orders{aborted: map[string]map[git.Hash]*order{}, rejected: map[git.Hash]*order{}}
	all, err := r.readOrders(ctx)
	if err != nil {
		return nil, err
	}
	for _, o := range all {
		switch {
		case o.Kind == "freeze" && o.About == environment:
			out.frozen = o
		case o.Kind == "reject":
			out.rejected[tree.Revision(o.About).Hash()] = o
		case o.Kind == "abort":
			name, ring, commit := o.candidate()
			if name != environment {
				continue
			}
			if out.aborted[ring] == nil {
				out.aborted[ring] = map[git.Hash]*order{}
			}
			out.aborted[ring][commit] = o
		}
	}
	return out, nil
}

// readOrders reads all orders of the repository, once.
func (r *gitRepository) readOrders(ctx context.Context) ([]*order, error) {
	if r.ordered != nil {
		return r.ordered, nil
	}
	r.ordered = []*order{}
	ids := r.orderIDs()
	if len(ids) == 0 {
		return nil, nil
	}
	if err := r.remote.Fetch(ctx, ids, 1); err != nil {
		return nil, err
	}
	for ref, id := range r.refs {
		path, ok := strings.CutPrefix(ref, ordersRefs)
		if !ok {
			path, ok = strings.CutPrefix(ref, ordersTags)
		}
		kind, about, of := strings.Cut(path, "/")
		if !ok || !of || kind != "freeze" && kind != "reject" && kind != "abort" {
			continue
		}
		o, err := r.readOrder(id)
		if err != nil {
			o = &order{Reason: "the order in " + ref + " cannot be read: " + err.Error()}
		}
		o.Kind, o.About, o.id = kind, about, id
		r.ordered = append(r.ordered, o)
	}
	return r.ordered, nil
}

func (r *gitRepository) readOrder(id git.Hash) (*order, error) {
	c, err := r.remote.Objects().Commit(id)
	if err != nil {
		return nil, err
	}
	_, text, _ := strings.Cut(c.Message, "\n\n")
	o := &order{}
	if err := json.Unmarshal([]byte(text), o); err != nil {
		return nil, err
	}
	o.id, o.at = id, c.Committer.When
	return o, nil
}

// give writes an order, over one of the same kind about the same. One that says the same
// stands as it is.
func (r *gitRepository) give(ctx context.Context, o *order, by author) error {
	standing, err := r.readOrders(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(standing, o.same) {
		return nil
	}
	var refused *remote.RejectedError
	for _, prefix := range []string{ordersRefs, ordersTags} {
		if err := r.enter(ctx, prefix, o, o.Kind+"/"+o.About, true, by); !errors.As(err, &refused) {
			return err
		}
	}
	return refused
}

func (o *order) same(as *order) bool {
	return o.Kind == as.Kind && o.About == as.About && o.Reason == as.Reason && o.By == as.By && o.Until.Equal(as.Until)
}

// takeBack ends an order of a kind, by another order about the same. Where there is none,
// nothing happens.
func (r *gitRepository) takeBack(ctx context.Context, o *order, kind string, by author) error {
	for _, prefix := range []string{ordersRefs, ordersTags} {
		name := kind + "/" + o.About
		if r.refs[prefix+name].IsZero() {
			continue
		}
		if err := r.enter(ctx, prefix, o, name, false, by); err != nil {
			return err
		}
	}
	return nil
}

// enter adds an order to the log, together with what it does to a ref: that is the order
// from now on, or is removed.
func (r *gitRepository) enter(ctx context.Context, prefix string, o *order, name string, stands bool, by author) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // people read it
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(o); err != nil {
		return err
	}
	title := strings.ToUpper(o.Kind[:1]) + o.Kind[1:] + " " + o.About
	if o.Reason != "" {
		title += ": " + firstLine(o.Reason)
	}
	log, ref := prefix+ordersLog, prefix+name
	id, packs, err := r.withoutFiles(by, title+"\n\n"+text.String(), r.refs[log])
	if err != nil {
		return err
	}
	changes := []remote.Update{{Ref: log, Old: r.refs[log], New: id}, {Ref: ref, Old: r.refs[ref]}}
	if stands {
		changes[1].New = id
	}
	err = r.remote.Push(ctx, changes, packs, true)
	if errors.Is(err, remote.ErrNoAtomic) {
		err = r.remote.Push(ctx, changes, packs, false)
	}
	if err == nil {
		r.refs[log], r.refs[ref] = id, changes[1].New
	}
	return err
}

// orderLog returns all orders that were ever given or taken back, oldest first.
func (r *gitRepository) orderLog(ctx context.Context) ([]*order, error) {
	var out []*order
	for _, prefix := range []string{ordersRefs, ordersTags} {
		head := r.refs[prefix+ordersLog]
		if head.IsZero() {
			continue
		}
		if err := r.remote.Fetch(ctx, []git.Hash{head}, mostDepth); err != nil {
			return nil, err
		}
		for c, err := range r.remote.Objects().Mainline(head) {
			if err != nil {
				return nil, err
			}
			if o, err := r.readOrder(c.ID); err == nil {
				out = append(out, o)
			}
		}
	}
	slices.Reverse(out)
	slices.SortStableFunc(out, func(a, b *order) int { return a.at.Compare(b.at) })
	return out, nil
}

// withoutFiles makes a commit that has no files, after another; the zero Hash is none.
func (r *gitRepository) withoutFiles(by author, message string, after git.Hash) (id git.Hash, packs []string, err error) {
	pack := r.staging.NewPack()
	defer pack.Abort() //nolint:errcheck // nothing but a temporary file is left
	empty, err := pack.Add(git.TreeKind, nil)
	if err != nil {
		return id, nil, err
	}
	c := git.Commit{Tree: empty, Author: by.Signature, Committer: by.Signature, Message: message}
	if !after.IsZero() {
		c.Parents = []git.Hash{after}
	}
	content, err := c.Signed(by.sign)
	if err != nil {
		return id, nil, err
	}
	if id, err = pack.Add(git.CommitKind, content); err != nil {
		return id, nil, err
	}
	err = pack.Finish()
	return id, packsOf(pack), err
}

// orderIDs are the commits that the refs of orders name.
func (r *gitRepository) orderIDs() []git.Hash {
	var ids []git.Hash
	for ref, id := range r.refs {
		if strings.HasPrefix(ref, ordersRefs) || strings.HasPrefix(ref, ordersTags) {
			ids = append(ids, id)
		}
	}
	return ids
}
