package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/httpclient"
)

// native speaks git's protocol with go-git's transports. Of go-git it takes no more
// than the messages: its clone has no filters, its push walks all history, drops
// "atomic" without a word where the server lacks it, and cannot say which commit a
// ref must be at.
type native struct {
	server *server

	mu sync.Mutex
	// can is what the server can, where it need not be asked before each request: it
	// is one of HTTP, and led nowhere else. nil where it must be.
	can *capability.List
}

var _ wire = (*native)(nil)

func (n *native) advertised(ctx context.Context) (*advertisement, error) {
	endpoint := *n.server.endpoint
	session, err := beginAt(ctx, &endpoint, n.server, n.server.transport.NewUploadPackSession)
	if err != nil {
		return nil, n.server.explain(err, "read")
	}
	defer session.Close()
	told, err := session.AdvertisedReferencesContext(ctx)
	n.remember(told, &endpoint)
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return &advertisement{refs: map[string]git.Hash{}, peeled: map[string]git.Hash{}}, n.emptyFormat(ctx)
	}
	if err != nil {
		return nil, n.server.explain(err, "read")
	}
	return understand(told)
}

// emptyFormat is git.ErrSHA256 where an empty repository has such ids. Not all servers
// say so to those who read, and all that let the user write say so then.
func (n *native) emptyFormat(ctx context.Context) error {
	session, err := begin(ctx, n.server, n.server.transport.NewReceivePackSession)
	if err != nil {
		return nil
	}
	defer session.Close()
	if _, err = session.AdvertisedReferencesContext(ctx); err != nil && errors.Is(n.server.explain(err, "write"), git.ErrSHA256) {
		return git.ErrSHA256
	}
	return nil
}

// remember keeps what a server of HTTP can, which has no connection to be asked on: what
// it says of its refs once is all that git asks for before any request. One that
// redirects is asked again, for where to.
func (n *native) remember(told *packp.AdvRefs, endpoint *transport.Endpoint) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.can = nil
	if told != nil && strings.HasPrefix(endpoint.Protocol, "http") && endpoint.String() == n.server.endpoint.String() && len(told.Shallows) == 0 {
		n.can = told.Capabilities
	}
}

// before is what a session says before a request, or what the server said before.
func (n *native) before(ctx context.Context, session transport.UploadPackSession) (*packp.AdvRefs, error) {
	n.mu.Lock()
	can := n.can
	n.mu.Unlock()
	if can != nil {
		return &packp.AdvRefs{Capabilities: can}, nil
	}
	return session.AdvertisedReferencesContext(ctx)
}

// understand reads what a server says. Refs whose names git does not allow are left
// out, as git does.
func understand(told *packp.AdvRefs) (*advertisement, error) {
	can := told.Capabilities
	if can.Supports("object-format") && !strings.Contains(can.String(), "object-format=sha1") {
		return nil, git.ErrSHA256
	}
	a := &advertisement{
		refs: map[string]git.Hash{}, peeled: map[string]git.Hash{},
		anyID:   can.Supports(capability.AllowReachableSHA1InWant),
		ids:     can.Supports(capability.AllowReachableSHA1InWant) || can.Supports(capability.AllowTipSHA1InWant),
		filter:  can.Supports(capability.Filter),
		shallow: can.Supports(capability.Shallow),
		cut:     told.Shallows,
	}
	for name, id := range told.References {
		if isRef(name) {
			a.refs[name] = id
		}
	}
	for name, id := range told.Peeled {
		if isRef(name) {
			a.peeled[name] = id
		}
	}
	for _, ref := range can.Get(capability.SymRef) {
		if target, ok := strings.CutPrefix(ref, "HEAD:"); ok && isRef(target) {
			a.head = target
		}
	}
	return a, nil
}

func (n *native) get(ctx context.Context, s *store, w want) error {
	session, err := begin(ctx, n.server, n.server.transport.NewUploadPackSession)
	if err != nil {
		return n.server.explain(err, "read")
	}
	defer session.Close()
	told, err := n.before(ctx, session)
	if err != nil {
		return n.server.explain(err, "read")
	}
	request, err := requestFor(s, w, told.Capabilities)
	if err != nil {
		return err
	}
	if request.IsEmpty() {
		return nil // another process has brought it, or it is to be asked for in another way
	}
	response, err := session.UploadPack(ctx, request)
	if err != nil {
		if httpclient.Temporary(err) || ctx.Err() != nil {
			return err
		}
		return errors.Join(errRefused, n.server.explain(err, "read"))
	}
	defer response.Close()
	return s.receive(ctx, response, request, told)
}

// requestFor asks for objects in the words that a server knows.
func requestFor(s *store, w want, can *capability.List) (*packp.UploadPackRequest, error) {
	request := packp.NewUploadPackRequestFromCapabilities(can)
	request.Wants = w.ids
	var errs []error
	if can.Supports(capability.Shallow) {
		errs = append(errs, request.Capabilities.Set(capability.Shallow))
		request.Depth = packp.DepthCommits(w.depth)
	}
	if !w.whole && can.Supports(capability.Filter) {
		errs = append(errs, request.Capabilities.Set(capability.Filter))
		request.Filter = packp.FilterBlobNone()
	}
	if can.Supports(capability.NoProgress) {
		errs = append(errs, request.Capabilities.Set(capability.NoProgress))
	}
	if !w.alone && can.Supports(capability.Shallow) {
		for _, folder := range []string{complete, cut} {
			have, err := s.marked(folder)
			errs = append(errs, err)
			request.Haves = append(request.Haves, have...)
		}
		shallow, err := s.shallow()
		errs = append(errs, err)
		request.Shallows = shallow
		if w.depth == 0 && len(shallow) > 0 {
			request.Depth = packp.DepthCommits(allDepths)
		}
	}
	return request, errors.Join(errs...)
}

// allDepths is what git asks for to have cut histories whole again: without it, the
// server takes them for what is wanted.
const allDepths = 0x7fffffff

// receive puts the pack of a response into the store. Commits are known to be cut
// before they can be read.
func (s *store) receive(ctx context.Context, response *packp.UploadPackResponse, request *packp.UploadPackRequest, told *packp.AdvRefs) error {
	in := io.Reader(response)
	switch {
	case request.Capabilities.Supports(capability.Sideband64k):
		in = sideband.NewDemuxer(sideband.Sideband64k, in)
	case request.Capabilities.Supports(capability.Sideband):
		in = sideband.NewDemuxer(sideband.Sideband, in)
	}
	pack, err := s.local.ReceivePack(ctx, in, maxPack)
	if err != nil {
		return err
	}
	if err := s.cutAt(append(response.Shallows, told.Shallows...), nil); err != nil {
		return errors.Join(err, pack.Abort())
	}
	if err := pack.Finish(true); err != nil {
		return err
	}
	return s.cutAt(nil, response.Unshallows)
}

// begin begins to speak with the server. What go-git does then, over SSH, does not
// end with a context, so that it is left behind where that ends.
func begin[S io.Closer](ctx context.Context, s *server, open func(*transport.Endpoint, transport.AuthMethod) (S, error)) (S, error) {
	// A redirect changes the endpoint of a session, which then has no credentials: the
	// next one begins where this one did.
	endpoint := *s.endpoint
	return beginAt(ctx, &endpoint, s, open)
}

// beginAt is begin with an endpoint of the session's own.
func beginAt[S io.Closer](ctx context.Context, endpoint *transport.Endpoint, s *server, open func(*transport.Endpoint, transport.AuthMethod) (S, error)) (S, error) {
	return await(ctx, func() (S, error) { return open(endpoint, s.auth) }, func(session S) { _ = session.Close() })
}

// await does something that does not end with a context. What it makes after the
// context has ended is let go of.
func await[V any](ctx context.Context, do func() (V, error), drop func(V)) (V, error) {
	type result struct {
		value V
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := do()
		done <- result{value, err}
	}()
	select {
	case got := <-done:
		return got.value, got.err
	case <-ctx.Done():
		go func() {
			if got := <-done; got.err == nil {
				drop(got.value)
			}
		}()
		var none V
		return none, fmt.Errorf("waiting for the server: %w", ctx.Err())
	}
}
