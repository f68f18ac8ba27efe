package remote

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/kalypso-io/kalypso/internal/git"
)

// maxMessages is the largest number of bytes of a server's messages to keep.
const maxMessages = 16 << 10

func (n *native) push(ctx context.Context, p *proposal) (*report, error) {
	var session transport.ReceivePackSession
	var adv *packp.AdvRefs
	err := n.server.signIn(ctx, func() (err error) {
		if session, err = begin(ctx, n.server, n.server.transport.NewReceivePackSession); err != nil {
			return n.server.explain(err, "write")
		}
		if adv, err = session.AdvertisedReferencesContext(ctx); err != nil {
			_ = session.Close()
			return n.server.explain(err, "write")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	defer session.Close()
	refs := maps.Clone(adv.References)
	for _, u := range p.updates {
		// A server may hide refs from writers.
		if _, known := refs[u.Ref]; !known && !u.Old.IsZero() {
			refs[u.Ref] = u.Old
		}
	}
	return p.send(refs,
		func(rest *proposal) (*report, error) { return n.send(ctx, session, rest, adv.Capabilities) })
}

// send sends a proposal to a server with the capabilities.
func (n *native) send(ctx context.Context, session transport.ReceivePackSession, p *proposal,
	can *capability.List) (*report, error) {
	messages := &limitBuffer{most: maxMessages}
	request, err := updateRequest(p, can, messages)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(p.updates, func(u Update) bool { return !u.New.IsZero() }) {
		if request.Packfile, err = openPacks(p.packs); err != nil {
			return nil, err
		}
	}
	answer, err := await(ctx, func() (*packp.ReportStatus, error) {
		return session.ReceivePack(ctx, request)
	}, func(*packp.ReportStatus) {})
	switch {
	case answer != nil: // the error, if any, repeats the answer
		return understandReport(answer, messages.String()), nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err == nil:
		return nil, errUnknownResult
	}
	return nil, n.unknownResult(err, messages.String())
}

// unknownResult distinguishes an answer from a lost one: after a broken connection, the
// result of a push is not known.
func (n *native) unknownResult(err error, messages string) error {
	explained := n.server.explain(err, "write")
	if isAny[*AuthError](explained) || isAny[*NotFoundError](explained) {
		return explained
	}
	if messages != "" {
		explained = fmt.Errorf("%w (the server said: %s)", explained, messages)
	}
	return errors.Join(errUnknownResult, explained)
}

func isAny[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// updateRequest makes the request for updates. Each has the current commit of its ref,
// which the server compares while it holds the ref's lock.
func updateRequest(p *proposal, can *capability.List,
	messages io.Writer) (*packp.ReferenceUpdateRequest, error) {
	request := packp.NewReferenceUpdateRequestFromCapabilities(can)
	request.Progress = messages
	if p.atomic && !can.Supports(capability.Atomic) {
		return nil, ErrNoAtomic
	}
	if !can.Supports(capability.ReportStatus) {
		return nil, errors.New(
			"the server does not say whether refs changed (it lacks the capability report-status)")
	}
	wanted := map[capability.Capability]bool{capability.Atomic: p.atomic, capability.Sideband64k: true,
		capability.OFSDelta: true, capability.Quiet: true}
	for _, c := range []capability.Capability{capability.Atomic, capability.Sideband64k,
		capability.OFSDelta, capability.Quiet} {
		if wanted[c] && can.Supports(c) {
			if err := request.Capabilities.Set(c); err != nil {
				return nil, err
			}
		}
	}
	for _, u := range p.updates {
		if u.New.IsZero() && !can.Supports(capability.DeleteRefs) {
			return nil, &RejectedError{Ref: u.Ref, Reason: "the server lets no ref be deleted"}
		}
		request.Commands = append(request.Commands,
			&packp.Command{Name: plumbing.ReferenceName(u.Ref), Old: u.Old, New: u.New})
	}
	return request, nil
}

func understandReport(answer *packp.ReportStatus, messages string) *report {
	out := &report{unpack: answer.UnpackStatus, status: map[string]string{},
		messages: withoutProgress(messages)}
	for _, s := range answer.CommandStatuses {
		out.status[string(s.ReferenceName)] = s.Status
	}
	return out
}

// withoutProgress removes the progress lines from a server's messages.
func withoutProgress(messages string) string {
	var out []string
	for line := range strings.FieldsFuncSeq(messages,
		func(r rune) bool { return r == '\n' || r == '\r' }) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasSuffix(line, ", done.") &&
			!strings.HasSuffix(line, ")") {
			out = append(out, line)
		}
	}
	return strings.Join(out, " ")
}

// limitBuffer keeps the first bytes that are written to it.
type limitBuffer struct {
	bytes.Buffer
	most int
}

func (b *limitBuffer) Write(p []byte) (int, error) {
	_, _ = b.Buffer.Write(p[:max(0, min(len(p), b.most-b.Len()))])
	return len(p), nil
}

// packHead is the length of a pack's header: "PACK", a version, a number of objects.
const packHead = 12

// openPacks returns some packs as one, which is empty without packs, as servers want
// it. The objects stay valid when moved together, because differences refer to others
// by their distance.
func openPacks(files []string) (io.ReadCloser, error) {
	sum := sha1.New()
	all := &joinedPacks{}
	var bodies []io.Reader
	objects := uint32(0)
	for _, name := range files {
		body, n, err := all.open(name)
		if err != nil {
			return nil, errors.Join(err, all.Close())
		}
		bodies = append(bodies, body)
		objects += n
	}
	head := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), objects)
	bodies = append([]io.Reader{bytes.NewReader(head)}, bodies...)
	all.Reader = io.MultiReader(io.TeeReader(io.MultiReader(bodies...), sum),
		&checksum{of: func() []byte { return sum.Sum(nil) }})
	return all, nil
}

type joinedPacks struct {
	io.Reader
	files []*os.File
}

// open opens a pack, and returns its objects and their number.
func (j *joinedPacks) open(name string) (io.Reader, uint32, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, 0, err
	}
	j.files = append(j.files, f)
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	head := make([]byte, packHead)
	if _, err := f.ReadAt(head, 0); err != nil || string(head[:8]) != "PACK\x00\x00\x00\x02" {
		return nil, 0, errors.Join(fmt.Errorf("%s is no pack", name), err)
	}
	body := io.NewSectionReader(f, packHead, info.Size()-packHead-int64(len(git.Hash{})))
	return body, binary.BigEndian.Uint32(head[8:]), nil
}

func (j *joinedPacks) Close() error {
	var errs []error
	for _, f := range j.files {
		errs = append(errs, f.Close())
	}
	j.files = nil
	return errors.Join(errs...)
}

// checksum returns the checksum of everything that was read before.
type checksum struct {
	of   func() []byte
	rest *bytes.Reader
}

func (c *checksum) Read(p []byte) (int, error) {
	if c.rest == nil {
		c.rest = bytes.NewReader(c.of())
	}
	return c.rest.Read(p)
}
