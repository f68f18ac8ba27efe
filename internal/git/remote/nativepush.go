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
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/kalypso-io/kalypso/internal/git"
)

// maxSaid is how much of what a server says to people is held, in bytes.
const maxSaid = 16 << 10

func (n *native) push(ctx context.Context, p *proposal) (*report, error) {
	session, err := begin(ctx, n.server, n.server.transport.NewReceivePackSession)
	if err != nil {
		return nil, n.server.explain(err, "write")
	}
	defer session.Close()
	told, err := session.AdvertisedReferencesContext(ctx)
	if err != nil {
		return nil, n.server.explain(err, "write")
	}
	refs := maps.Clone(told.References)
	for _, u := range p.updates {
		// A server may hide refs from those who write, and says so.
		if _, told := refs[u.Ref]; !told && !u.Old.IsZero() {
			refs[u.Ref] = u.Old
		}
	}
	return p.send(refs, func(rest *proposal) (*report, error) { return n.send(ctx, session, rest, told.Capabilities) })
}

// send sends a proposal to a server that has said what it can.
func (n *native) send(ctx context.Context, session transport.ReceivePackSession, p *proposal, can *capability.List) (*report, error) {
	said := &bounded{most: maxSaid}
	request, err := updateRequest(p, can, said)
	if err != nil {
		return nil, err
	}
	if !p.deletes() {
		if request.Packfile, err = openPacks(p.packs); err != nil {
			return nil, err
		}
	}
	answer, err := await(ctx, func() (*packp.ReportStatus, error) { return session.ReceivePack(ctx, request) }, func(*packp.ReportStatus) {})
	switch {
	case answer != nil: // the error, if any, is what the answer says
		return understandReport(answer, said.String()), nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err == nil:
		return nil, errUnsure
	}
	return nil, n.unsure(err, said.String())
}

// unsure tells an answer from one that was lost: of what broke off, nobody knows
// what was done.
func (n *native) unsure(err error, said string) error {
	explained := n.server.explain(err, "write")
	if isAny[*AuthError](explained) || isAny[*NotFoundError](explained) {
		return explained
	}
	if said != "" {
		explained = fmt.Errorf("%w (the server said: %s)", explained, said)
	}
	return errors.Join(errUnsure, explained)
}

func isAny[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// updateRequest makes the request for updates. Each says where its ref is, which the
// server compares while it holds the ref's lock.
func updateRequest(p *proposal, can *capability.List, said io.Writer) (*packp.ReferenceUpdateRequest, error) {
	request := packp.NewReferenceUpdateRequestFromCapabilities(can)
	request.Progress = said
	if p.atomic && !can.Supports(capability.Atomic) {
		return nil, ErrNoAtomic
	}
	if !can.Supports(capability.ReportStatus) {
		return nil, errors.New("the server does not say whether refs changed (it lacks the capability report-status)")
	}
	wanted := map[capability.Capability]bool{capability.Atomic: p.atomic, capability.Sideband64k: true, capability.OFSDelta: true, capability.Quiet: true}
	for _, c := range []capability.Capability{capability.Atomic, capability.Sideband64k, capability.OFSDelta, capability.Quiet} {
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
		request.Commands = append(request.Commands, &packp.Command{Name: plumbing.ReferenceName(u.Ref), Old: u.Old, New: u.New})
	}
	return request, nil
}

func understandReport(answer *packp.ReportStatus, said string) *report {
	out := &report{unpack: answer.UnpackStatus, status: map[string]string{}, said: people(said)}
	for _, s := range answer.CommandStatuses {
		out.status[string(s.ReferenceName)] = s.Status
	}
	return out
}

// people leaves out of what a server says how far it is.
func people(said string) string {
	var out []string
	for line := range strings.FieldsFuncSeq(said, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasSuffix(line, ", done.") && !strings.HasSuffix(line, ")") {
			out = append(out, line)
		}
	}
	return strings.Join(out, " ")
}

// bounded holds the first bytes of what is written to it.
type bounded struct {
	bytes.Buffer
	most int
}

func (b *bounded) Write(p []byte) (int, error) {
	_, _ = b.Buffer.Write(p[:max(0, min(len(p), b.most-b.Len()))])
	return len(p), nil
}

// packHead is how long the head of a pack is: "PACK", a version, a number of objects.
const packHead = 12

// openPacks returns some packs as one; servers want an empty one for none. Objects
// that are differences say how far back the other is, so that they may be moved
// together.
func openPacks(files []string) (io.ReadCloser, error) {
	sum := sha1.New()
	all := &joined{}
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
	all.Reader = io.MultiReader(io.TeeReader(io.MultiReader(bodies...), sum), &checksum{of: func() []byte { return sum.Sum(nil) }})
	return all, nil
}

type joined struct {
	io.Reader
	files []*os.File
}

// open opens a pack, and returns its objects and how many they are.
func (j *joined) open(name string) (io.Reader, uint32, error) {
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

func (j *joined) Close() error {
	var errs []error
	for _, f := range j.files {
		errs = append(errs, f.Close())
	}
	j.files = nil
	return errors.Join(errs...)
}

// checksum is what is known only when all before it was read.
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
