package promotion

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/compiler/git"
	"github.com/kalypso-io/kalypso/compiler/git/remote"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/promotion/gate"
)

// Orders are what people decided beside policies, each in a ref of the GitOps
// repository of its own: refs/kalypso/freeze/<environment> and
// refs/kalypso/reject/<commit>, and refs/kalypso/abort/<environment>[.<ring>] for a
// candidate that was called off. The ref is a commit without files, whose message ends
// in the order as JSON: `git log -1 refs/kalypso/freeze/prod` shows it. Where a server
// does not let such refs be written, they are tags: refs/tags/kalypso/...
const (
	ordersRefs = "refs/kalypso/"
	ordersTags = "refs/tags/kalypso/"
)

// order is one of them.
type order struct {
	Kind   string    `json:"kind"` // freeze, reject or abort
	About  string    `json:"about"`
	Reason string    `json:"reason"`
	By     string    `json:"by"`
	Until  time.Time `json:"until,omitzero"`
	Commit string    `json:"commit,omitempty"` // the base commit that was called off

	at  time.Time
	ref string
	id  git.Hash
}

func (o *order) freeze() *gate.Freeze {
	if o == nil {
		return nil
	}
	return &gate.Freeze{Reason: o.Reason, By: o.By, At: o.at, Until: o.Until}
}

// orders are those about one environment, and the rejections, which are about all.
type orders struct {
	frozen   *order
	aborted  map[string]*order // by ring
	rejected map[git.Hash]*order
}

// orders reads what was ordered. An order that cannot be read stops what it is about:
// somebody meant something by it.
func (r *repository) orders(ctx context.Context, environment string) (*orders, error) {
	out := &orders{aborted: map[string]*order{}, rejected: map[git.Hash]*order{}}
	all, err := r.readOrders(ctx)
	if err != nil {
		return nil, err
	}
	for _, o := range all {
		switch {
		case o.Kind == "freeze" && o.About == environment:
			out.frozen = o
		case o.Kind == "reject":
			out.rejected[hashOf(tree.Revision(o.About))] = o
		case o.Kind == "abort":
			if name, ring, _ := strings.Cut(o.About, "."); name == environment {
				out.aborted[ring] = o
			}
		}
	}
	return out, nil
}

// readOrders reads all orders of the repository, once.
func (r *repository) readOrders(ctx context.Context) ([]*order, error) {
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
		o.Kind, o.About, o.ref, o.id = kind, about, ref, id
		r.ordered = append(r.ordered, o)
	}
	return r.ordered, nil
}

func (r *repository) readOrder(id git.Hash) (*order, error) {
	c, err := r.remote.Objects().Commit(id)
	if err != nil {
		return nil, err
	}
	_, text, _ := strings.Cut(c.Message, "\n\n")
	o := &order{}
	if err := json.Unmarshal([]byte(text), o); err != nil {
		return nil, err
	}
	o.at = c.Committer.When
	return o, nil
}

// give writes an order, over one of the same kind about the same.
func (s *Session) give(ctx context.Context, r *repository, o *order) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // people read it
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(o); err != nil {
		return err
	}
	message := fmt.Sprintf("%s %s: %s\n\n%s", strings.ToUpper(o.Kind[:1])+o.Kind[1:], o.About, firstLine(o.Reason), text.String())
	id, packs, err := s.withoutFiles(r, s.committer(s.now), message)
	if err != nil {
		return err
	}
	return r.pushOrder(ctx, o.Kind+"/"+o.About, id, packs)
}

// withoutFiles makes a commit that has no files and no parent.
func (s *Session) withoutFiles(r *repository, by git.Signature, message string) (id git.Hash, packs []string, err error) {
	pack := r.staging.NewPack()
	defer pack.Abort() //nolint:errcheck // nothing but a temporary file is left
	empty, err := pack.Add(git.TreeKind, nil)
	if err != nil {
		return id, nil, err
	}
	content, err := git.Commit{Tree: empty, Author: by, Committer: by, Message: message}.Signed(s.sign())
	if err != nil {
		return id, nil, err
	}
	if id, err = pack.Add(git.CommitKind, content); err != nil {
		return id, nil, err
	}
	err = pack.Finish()
	return id, packsOf(pack), err
}

// pushOrder moves the ref of an order; the zero Hash removes it.
func (r *repository) pushOrder(ctx context.Context, name string, id git.Hash, packs []string) error {
	var refused *remote.RejectedError
	for _, prefix := range []string{ordersRefs, ordersTags} {
		old := r.refs[prefix+name]
		if id == old {
			if !id.IsZero() {
				return nil // it was given already, in the same words
			}
			continue
		}
		err := r.remote.Push(ctx, []remote.Update{{Ref: prefix + name, Old: old, New: id}}, packs, false)
		if !errors.As(err, &refused) || id.IsZero() {
			if err != nil || !id.IsZero() {
				return err
			}
			continue
		}
	}
	if refused != nil {
		return refused
	}
	return nil
}
