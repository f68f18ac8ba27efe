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

// native implements git's protocol with go-git's transports. It uses only the messages of go-git,
// for three reasons. go-git's clone has no filters. Its push walks all history, and silently
// drops "atomic" if the server lacks it. It also cannot send which commit a ref must be at.
type native struct {
	server *server

	mu sync.Mutex
	// can are the capabilities of a server of HTTP that does not redirect: they need not be
	// read before each request. nil if they must.
	can *capability.List
}

var _ backend = (*native)(nil)

func (n *native) advertised(ctx context.Context) (*advertisement, error) {
	endpoint := *n.server.endpoint
	session, err := beginAt(ctx, &endpoint, n.server, n.server.transport.NewUploadPackSession)
	if err != nil {
		return nil, n.server.explain(err, "read")
	}
	defer session.Close()
	adv, err := session.AdvertisedReferencesContext(ctx)
	n.remember(adv, &endpoint)
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return &advertisement{refs: map[string]git.Hash{}, peeled: map[string]git.Hash{}},
			n.emptyFormat(ctx)
	}
	if err != nil {
		return nil, n.server.explain(err, "read")
	}
	return understand(adv)
}

// emptyFormat returns git.ErrSHA256 if an empty repository has such ids. Not all servers report
// the format to readers. Servers that let the user write report it then.
func (n *native) emptyFormat(ctx context.Context) error {
	session, err := begin(ctx, n.server, n.server.transport.NewReceivePackSession)
	if err != nil {
		return nil
	}
	defer session.Close()
	if _, err = session.AdvertisedReferencesContext(ctx); err != nil &&
		errors.Is(n.server.explain(err, "write"), git.ErrSHA256) {
		return git.ErrSHA256
	}
	return nil
}

// remember keeps the capabilities of a server of HTTP, which has no connection. After reading the
// refs once, any request can use them. If a server redirects, the target is asked again.
func (n *native) remember(adv *packp.AdvRefs, endpoint *transport.Endpoint) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.can = nil
	if adv != nil && strings.HasPrefix(endpoint.Protocol, "http") &&
		endpoint.String() == n.server.endpoint.String() && len(adv.Shallows) == 0 {
		n.can = adv.Capabilities
	}
}

// advertisement returns the advertisement that precedes a request: the one of the session, or the
// remembered one.
func (n *native) advertisement(ctx context.Context,
	session transport.UploadPackSession) (*packp.AdvRefs,
	error) {
	n.mu.Lock()
	can := n.can
	n.mu.Unlock()
	if can != nil {
		return &packp.AdvRefs{Capabilities: can}, nil
	}
	return session.AdvertisedReferencesContext(ctx)
}

// understand converts an advertisement. Refs whose names git does not allow are left out,
// as git does.
func understand(adv *packp.AdvRefs) (*advertisement, error) {
	can := adv.Capabilities
	if can.Supports("object-format") && !strings.Contains(can.String(), "object-format=sha1") {
		return nil, git.ErrSHA256
	}
	a := &advertisement{
		refs: map[string]git.Hash{}, peeled: map[string]git.Hash{},
		anyID: can.Supports(capability.AllowReachableSHA1InWant),
		ids: can.Supports(capability.AllowReachableSHA1InWant) ||
			can.Supports(capability.AllowTipSHA1InWant),
		filter:  can.Supports(capability.Filter),
		shallow: can.Supports(capability.Shallow),
		cut:     adv.Shallows,
	}
	for name, id := range adv.References {
		if isRef(name) {
			a.refs[name] = id
		}
	}
	for name, id := range adv.Peeled {
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
	adv, err := n.advertisement(ctx, session)
	if err != nil {
		return n.server.explain(err, "read")
	}
	request, err := requestFor(s, w, adv.Capabilities)
	if err != nil {
		return err
	}
	if request.IsEmpty() {
		return nil // another process has fetched it, or another request is to be tried
	}
	response, err := session.UploadPack(ctx, request)
	if err != nil {
		if httpclient.Temporary(err) || ctx.Err() != nil {
			return err
		}
		return errors.Join(errRefused, n.server.explain(err, "read"))
	}
	defer response.Close()
	return s.receive(ctx, response, request, adv)
}

// requestFor returns the request for objects that a server with the capabilities
// understands.
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

// allDepths is the depth with which git completes cut histories: without it, the server
// assumes that they stay cut.
const allDepths = 0x7fffffff

// receive adds the pack of a response to the store. The shallow file is written before
// commits can be read.
func (s *store) receive(ctx context.Context, response *packp.UploadPackResponse,
	request *packp.UploadPackRequest, adv *packp.AdvRefs) error {
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
	if err := s.cutAt(append(response.Shallows, adv.Shallows...), nil); err != nil {
		return errors.Join(err, pack.Abort())
	}
	if err := pack.Finish(true); err != nil {
		return err
	}
	return s.cutAt(nil, response.Unshallows)
}

// begin opens a session with the server. Over SSH, go-git's connection ignores the context;
// it is abandoned when that ends.
func begin[S io.Closer](ctx context.Context, s *server,
	open func(*transport.Endpoint, transport.AuthMethod) (S, error)) (S, error) {
	// A redirect changes the endpoint of a session, which has no credentials then: the next
	// session begins with the original one.
	endpoint := *s.endpoint
	return beginAt(ctx, &endpoint, s, open)
}

// beginAt is begin with an endpoint of its own for the session.
func beginAt[S io.Closer](ctx context.Context, endpoint *transport.Endpoint, s *server,
	open func(*transport.Endpoint, transport.AuthMethod) (S, error)) (S, error) {
	var session S
	hosts, err := s.hosts(ctx)
	for _, endpoint.Host = range hosts {
		session, err = await(ctx, func() (S, error) { return open(endpoint, s.credentials()) },
			func(session S) { _ = session.Close() })
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	return session, err
}

// await calls do, which ignores contexts. Its result after the end of the context is
// closed.
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
