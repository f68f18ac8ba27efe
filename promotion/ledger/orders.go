package ledger

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
	"github.com/kalypso-io/kalypso/promotion/message"
)

// Orders are decisions of people in addition to the policies. Each is in a ref of the GitOps
// repository of its own:
//
//   - refs/kalypso/freeze/<environment>
//   - refs/kalypso/reject/<commit>
//   - refs/kalypso/abort/<environment>[.<ring>]/<commit>, for a cancelled candidate
//
// The ref is a commit without files. Its message ends in the order as JSON, as `git log -1
// refs/kalypso/freeze/prod` shows. The parent of an order is the order before it, even if it
// revokes another order. refs/kalypso/log is the newest. If a server does not accept such refs,
// they are tags: refs/tags/kalypso/...
const (
	ordersRefs = "refs/kalypso/"
	ordersTags = "refs/tags/kalypso/"
	ordersLog  = "log"
)

// IsOrder reports whether a ref is an order in force.
func IsOrder(ref string) bool {
	log := ref == ordersRefs+ordersLog || ref == ordersTags+ordersLog
	return !log && (strings.HasPrefix(ref, ordersRefs) || strings.HasPrefix(ref, ordersTags))
}

// NewOrder returns the ref of an order that was given since the repository was opened: a freeze
// of an environment, or a rejection of a commit. It returns "" if there is no such order. now are
// the current refs. Servers hide some refs from clients that push.
func (r *Repository) NewOrder(environment, commit string, now map[string]git.Hash) string {
	names := []string{"freeze/" + environment, "reject/" + commit}
	for was, is := range r.Names {
		if is == environment {
			names = append(names, "freeze/"+was)
		}
	}
	for _, name := range names {
		for _, prefix := range []string{ordersRefs, ordersTags} {
			if ref := prefix + name; !now[ref].IsZero() && now[ref] != r.Refs[ref] {
				return ref
			}
		}
	}
	return ""
}

// Order is a decision of a person, by its kind and its subject.
type Order struct {
	Kind   string    `json:"kind"` // freeze, reject or abort; thaw, readmit or resume end them
	About  string    `json:"about"`
	Reason string    `json:"reason,omitempty"`
	By     string    `json:"by"`
	Until  time.Time `json:"until,omitzero"`

	At time.Time `json:"-"` // of the commit
	ID git.Hash  `json:"-"` // the commit that the order is in

	name string // of its ref, after the prefix
}

// Orders are the orders about one environment, and the rejections, which are about all.
type Orders struct {
	Frozen   *Order
	Aborted  map[string]map[git.Hash]*Order // by ring
	Rejected map[git.Hash]*Order
}

// Candidate returns the environment, the ring and the commit of an order to cancel a candidate.
func (o *Order) Candidate() (environment, ring string, commit git.Hash) {
	stage, id, _ := strings.Cut(o.About, "/")
	environment, ring, _ = strings.Cut(stage, ".")
	return environment, ring, tree.Revision(id).Hash()
}

// OrdersOf reads the orders about an environment. An order that cannot be read counts, because
// somebody intended it.
func (r *Repository) OrdersOf(ctx context.Context, environment string) (*Orders, error) {
	out := &Orders{Aborted: map[string]map[git.Hash]*Order{}, Rejected: map[git.Hash]*Order{}}
	all, err := r.Orders(ctx)
	if err != nil {
		return nil, err
	}
	for _, o := range all {
		switch {
		case o.Kind == "freeze" && o.About == environment:
			out.Frozen = o
		case o.Kind == "reject":
			out.Rejected[tree.Revision(o.About).Hash()] = o
		case o.Kind == "abort":
			name, ring, commit := o.Candidate()
			if name != environment {
				continue
			}
			if out.Aborted[ring] == nil {
				out.Aborted[ring] = map[git.Hash]*Order{}
			}
			out.Aborted[ring][commit] = o
		}
	}
	return out, nil
}

// Orders returns all orders in force, in no order. They are read once.
func (r *Repository) Orders(ctx context.Context) ([]*Order, error) {
	if r.ordered != nil {
		return r.ordered, nil
	}
	r.ordered = []*Order{}
	ids := r.OrderIDs()
	if len(ids) == 0 {
		return nil, nil
	}
	if err := r.Remote.Fetch(ctx, ids, 1); err != nil {
		return nil, err
	}
	for ref, id := range r.Refs {
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
			o = &Order{Reason: "the order in " + ref + " cannot be read: " + err.Error()}
		}
		o.Kind, o.About, o.ID, o.name = kind, about, id, path
		o.rename(r.Names)
		r.ordered = append(r.ordered, o)
	}
	return r.ordered, nil
}

// rename changes an order about a renamed environment to its present name.
func (o *Order) rename(names Names) {
	if o.Kind != "reject" && o.Kind != "readmit" { // which are about commits
		o.About = names.currentName(o.About, "./")
	}
}

// readOrder reads the order of a commit.
func (r *Repository) readOrder(id git.Hash) (*Order, error) {
	c, err := r.Remote.Objects().Commit(id)
	if err != nil {
		return nil, err
	}
	_, text, _ := strings.Cut(c.Message, "\n\n")
	o := &Order{}
	if err := json.Unmarshal([]byte(text), o); err != nil {
		return nil, err
	}
	o.ID, o.At = id, c.Committer.When
	return o, nil
}

// Give writes an order, in place of an order of the same kind about the same subject. If the same
// order is already in force, Give does not write anything.
func (r *Repository) Give(ctx context.Context, o *Order, by Author) error {
	standing, err := r.Orders(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(standing, o.Same) {
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

// Same reports whether two orders have the same content.
func (o *Order) Same(as *Order) bool {
	return o.Kind == as.Kind && o.About == as.About && o.Reason == as.Reason && o.By == as.By &&
		o.Until.Equal(as.Until)
}

// TakeBack ends an order of a kind, by another order about the same subject. If there is no such
// order, it does not write anything.
func (r *Repository) TakeBack(ctx context.Context, o *Order, kind string, by Author) error {
	names := []string{kind + "/" + o.About}
	standing, err := r.Orders(ctx)
	if err != nil {
		return err
	}
	for _, was := range standing {
		// by an earlier name
		if was.Kind == kind && was.About == o.About && !slices.Contains(names, was.name) {
			names = append(names, was.name)
		}
	}
	for _, prefix := range []string{ordersRefs, ordersTags} {
		for _, name := range names {
			if r.Refs[prefix+name].IsZero() {
				continue
			}
			if err := r.enter(ctx, prefix, o, name, false, by); err != nil {
				return err
			}
		}
	}
	return nil
}

// enter adds an order to the log and, at once, sets a ref to it or removes the ref.
func (r *Repository) enter(ctx context.Context, prefix string, o *Order, name string, stands bool,
	by Author) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // people read it
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(o); err != nil {
		return err
	}
	title := strings.ToUpper(o.Kind[:1]) + o.Kind[1:] + " " + o.About
	if o.Reason != "" {
		title += ": " + message.FirstLine(o.Reason)
	}
	log, ref := prefix+ordersLog, prefix+name
	id, packs, err := r.WithoutFiles(by, title+"\n\n"+text.String(), r.Refs[log])
	if err != nil {
		return err
	}
	changes := []remote.Update{{Ref: log, Old: r.Refs[log], New: id}, {Ref: ref, Old: r.Refs[ref]}}
	if stands {
		changes[1].New = id
	}
	err = r.Remote.Push(ctx, changes, packs, true)
	if errors.Is(err, remote.ErrNoAtomic) {
		err = r.Remote.Push(ctx, changes, packs, false)
	}
	if err == nil {
		r.Refs[log], r.Refs[ref] = id, changes[1].New
	}
	return err
}

// OrderLog returns all orders that were ever given or taken back, oldest first.
func (r *Repository) OrderLog(ctx context.Context) ([]*Order, error) {
	var out []*Order
	for _, prefix := range []string{ordersRefs, ordersTags} {
		head := r.Refs[prefix+ordersLog]
		if head.IsZero() {
			continue
		}
		if err := r.Remote.Fetch(ctx, []git.Hash{head}, MaxDepth); err != nil {
			return nil, err
		}
		for c, err := range r.Remote.Objects().Mainline(head) {
			if err != nil {
				return nil, err
			}
			if o, err := r.readOrder(c.ID); err == nil {
				o.rename(r.Names)
				out = append(out, o)
			}
		}
	}
	slices.Reverse(out)
	slices.SortStableFunc(out, func(a, b *Order) int { return a.At.Compare(b.At) })
	return out, nil
}

// OrderIDs returns the commits of the refs of orders.
func (r *Repository) OrderIDs() []git.Hash {
	var ids []git.Hash
	for ref, id := range r.Refs {
		if strings.HasPrefix(ref, ordersRefs) || strings.HasPrefix(ref, ordersTags) {
			ids = append(ids, id)
		}
	}
	return ids
}
