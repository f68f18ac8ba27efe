package observe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/internal/httpclient"
	"github.com/kalypso-io/kalypso/internal/terminal"
)

// Sender sends reports to a hub. It is for one goroutine.
type Sender struct {
	hub  *api.Client
	last map[string]sentSnapshot // the last snapshot of each cluster
}

// sentSnapshot is a snapshot that a hub has: its digest, and the items for which the hub knows no
// assignment.
type sentSnapshot struct {
	digest  string
	unknown []string
}

// NewSender returns the sender to a hub.
func NewSender(hub *api.Client) *Sender {
	return &Sender{hub: hub,
		last: map[string]sentSnapshot{}}
}

// SendResult is the result of sending reports.
type SendResult struct {
	// Unknown are items for which the hub knows no assignment, with their clusters.
	Unknown []string
	// Early are clusters that no environment has yet. The hub keeps their reports.
	Early []string
	// Problems are the reasons why the hub refused reports, each with its cluster.
	Problems []error
	// Left are the refused reports that no later report replaces, because they are not snapshots.
	Left []api.Report
	// Read is how many reports SendEach has read, and Taken how many of them the hub has taken.
	Read, Taken int

	more int // how many Problems there are beside those in the list
}

// maxProblems limits how many problems SendEach keeps.
const maxProblems = 100

// SendEach is Send for reports that are read one after the other. A read error ends it as well, and
// the error has the number of reports before it. SendEach does not set Left.
func (s *Sender) SendEach(ctx context.Context, reports iter.Seq2[*FileReport, error]) (SendResult,
	error) {
	var out SendResult
	for r, err := range reports {
		if err != nil {
			return out, out.endError(err, "nothing from there on was sent")
		}
		sent, err := s.each(ctx, []FileReport{*r})
		out.Unknown, out.Early = append(out.Unknown, sent.Unknown...), append(out.Early, sent.Early...)
		if err != nil {
			return out, out.endError(err, "from "+r.Place+" on, nothing was taken")
		}
		out.Read++
		if len(sent.Problems) == 0 {
			out.Taken++
		}
		for _, problem := range sent.Problems {
			if len(out.Problems) < maxProblems {
				out.Problems = append(out.Problems, fmt.Errorf("%s: %w", r.Place, problem))
			} else {
				out.more++
			}
		}
	}
	return out, nil
}

// endError returns an error that ended sending, with the number of reports before it.
func (s *SendResult) endError(err error, rest string) error {
	if s.Read == 0 {
		return fmt.Errorf("%w; %s", err, rest)
	}
	return fmt.Errorf("%w; %s; reports before that: %d, of which the hub has taken %d", err, rest,
		s.Read, s.Taken)
}

// Send sends reports. If the hub already has a snapshot, Send sends only its digest. It continues
// after a refused report. It returns an error if the hub does not answer or does not accept the
// token.
func (s *Sender) Send(ctx context.Context, reports []api.Report) (SendResult, error) {
	all := make([]FileReport, len(reports))
	for i, r := range reports {
		all[i].Report = r
	}
	return s.each(ctx, all)
}

func (s *Sender) each(ctx context.Context, reports []FileReport) (SendResult, error) {
	var out SendResult
	for i := range reports {
		r := &reports[i]
		taken, err := s.send(ctx, r)
		refused := (*api.Error)(nil)
		switch {
		case err == nil:
			for _, name := range taken.Unknown {
				out.Unknown = append(out.Unknown, terminal.Line(name+" on cluster "+r.Cluster))
			}
			if taken.Early {
				out.Early = append(out.Early, terminal.Line(r.Cluster))
			}
		case !errors.As(err, &refused), refused.Status == http.StatusUnauthorized, isBusy(refused):
			out.leave(reports[i:]...)
			return out, fmt.Errorf("cluster %s: %w", terminal.Line(r.Cluster), err)
		case refused.Status == http.StatusNotFound && r.Snapshot && len(r.Items) == 0:
			// The platform may not list a cluster that only runs the reconciler of others.
		default:
			out.leave(*r)
			out.Problems = append(out.Problems, fmt.Errorf("cluster %s: %w", terminal.Line(r.Cluster), err))
		}
	}
	return out, nil
}

func (s *SendResult) leave(reports ...FileReport) {
	for _, r := range reports {
		if !r.Snapshot {
			s.Left = append(s.Left, r.Report)
		}
	}
}

func (s *Sender) send(ctx context.Context, r *FileReport) (*api.Taken, error) {
	if last := s.last[r.Cluster]; r.Signed == nil && r.Snapshot && r.Digest != "" &&
		last.digest == r.Digest {
		same := *r
		same.Items = nil
		if _, err := s.try(ctx, &same); !api.IsResend(err) {
			if err != nil {
				delete(s.last, r.Cluster) // the next one has the items
			}
			return &api.Taken{Unknown: last.unknown}, err // the hub requests the items if it has others
		}
	}
	delete(s.last, r.Cluster) // unless it arrives
	answer, err := s.try(ctx, r)
	if err == nil && r.Snapshot && !answer.Early {
		s.last[r.Cluster] = sentSnapshot{r.Digest, answer.Unknown}
	}
	return answer, err
}

// The limits of retries if a hub is busy.
const (
	tries   = 4
	longest = time.Minute
)

// try sends a report, and again when the hub asks for that.
func (s *Sender) try(ctx context.Context, r *FileReport) (*api.Taken, error) {
	for n := 1; ; n++ {
		taken, err := s.once(ctx, r)
		refused := (*api.Error)(nil)
		if !errors.As(err, &refused) || !isBusy(refused) || refused.RetryAfter <= 0 || n == tries {
			return taken, err
		}
		if err := httpclient.Wait(ctx, min(refused.RetryAfter, longest)); err != nil {
			return nil, err
		}
	}
}

func (s *Sender) once(ctx context.Context, r *FileReport) (*api.Taken, error) {
	if r.Signed != nil {
		return s.hub.Carry(ctx, r.Signed)
	}
	return s.hub.Report(ctx, &r.Report)
}

func isBusy(e *api.Error) bool {
	return e.Status == http.StatusTooManyRequests || e.Status == http.StatusServiceUnavailable
}

// Err returns the refused reports as an error, or nil if the hub has refused no report.
func (s *SendResult) Err() error {
	if s.more > 0 {
		return errors.Join(
			append(slices.Clip(s.Problems), fmt.Errorf("%d more reports were not taken", s.more))...)
	}
	return errors.Join(s.Problems...)
}

// String lists the names that the hub does not know, or returns "" if it knows all.
func (s *SendResult) String() string {
	var out []string
	if len(s.Unknown) > 0 {
		out = append(out, "the hub knows no assignment for "+some(s.Unknown))
	}
	if len(s.Early) > 0 {
		out = append(out, "no environment has cluster "+some(s.Early)+" yet: the hub keeps the report "+
			"until it has read the GitOps branches")
	}
	return strings.Join(out, "; ")
}

// some lists the first of some names.
func some(names []string) string {
	const most = 10
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}

// ReadToken returns the token in a file.
func ReadToken(file string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(data))
	if token == "" || strings.ContainsAny(token, " \t\r\n") {
		return "", fmt.Errorf("%s has no token in it, which is one word", file)
	}
	return token, nil
}

// Enroll returns the token of a cluster from a file. If the file does not exist, Enroll gets a
// token from the hub, and writes it to the file, which only this user can read.
func Enroll(ctx context.Context, hub *api.Client, cluster, file string) (string, error) {
	token, err := ReadToken(file)
	if !errors.Is(err, fs.ErrNotExist) {
		return token, err
	}
	// Check that the file can be written before the hub creates a token, because that revokes the
	// earlier ones.
	temporary, err := os.CreateTemp(filepath.Dir(file), ".token-*") // 0600
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(temporary.Name()) }()
	made, err := hub.Enroll(ctx, cluster)
	if err != nil {
		return "", errors.Join(fmt.Errorf("enrolling cluster %s: %w", cluster, err), temporary.Close())
	}
	_, err = temporary.WriteString(made.Secret + "\n")
	if err := errors.Join(err, temporary.Close()); err != nil {
		return "", err
	}
	return made.Secret, os.Rename(temporary.Name(), file)
}
