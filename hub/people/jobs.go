package people

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/kalypso-io/kalypso/hub/access"
	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/store"
)

// Audience is what the tokens of CI jobs must be for.
const Audience = "kalypso-hub"

// jobs finds out which CI job a request is from.
type jobs struct {
	store   *store.Store
	rules   *File
	client  *http.Client
	now     func() time.Time
	problem func(error)

	refusals *refusals

	mu      sync.Mutex
	issuers map[string]*issuer
	limits  map[string]*rate.Limiter
	known   map[[sha256.Size]byte]job // by the hash of their tokens
}

// job is what is known of a token that was verified.
type job struct {
	issuer, name string
	claims       map[string]any
	expires      time.Time
}

// The bounds of tokens: how many new ones of an issuer are verified in a second, since one with
// an unknown key makes the hub ask the issuer, and how many are remembered.
const (
	newPerSecond = 20
	newAtOnce    = 100
	mostJobs     = 10_000
	mostToken    = 16 << 10
)

func newJobs(o Options, client *http.Client) *jobs {
	return &jobs{store: o.Store, rules: o.Rules, client: client, now: o.Now, problem: o.Problem,
		refusals: newRefusals(), issuers: map[string]*issuer{}, limits: map[string]*rate.Limiter{},
		known: map[[sha256.Size]byte]job{}}
}

// addresses returns the issuers that rules name.
func (j *jobs) addresses() map[string]bool {
	out := map[string]bool{}
	for _, c := range j.rules.Rules().CI {
		out[c.Issuer] = true
	}
	return out
}

// issuer returns the issuer with an address, which a rule names.
func (j *jobs) issuer(address string) *issuer {
	j.mu.Lock()
	defer j.mu.Unlock()
	i := j.issuers[address]
	if i == nil {
		i = &issuer{address: address, client: j.client, now: j.now, problem: j.problem}
		j.issuers[address] = i
		j.limits[address] = rate.NewLimiter(newPerSecond, newAtOnce)
	}
	return i
}

// identify returns the identity of the job that has a token.
func (j *jobs) identify(ctx context.Context, token string) (*access.Identity, error) {
	hash := sha256.Sum256([]byte(token))
	j.mu.Lock()
	known, found := j.known[hash]
	j.mu.Unlock()
	if !found || !j.now().Before(known.expires) {
		verified, err := j.verify(ctx, token)
		if refused := (*refusedError)(nil); errors.As(err, &refused) {
			return nil, j.refused(ctx, refused)
		}
		if err != nil {
			return nil, err
		}
		known = *verified
	}
	rules := j.rules.Rules()
	identity := rules.job(known.issuer, known.name, known.claims)
	if identity == nil {
		return nil, j.refused(ctx, &refusedError{known.issuer, known.name, rules.unfit(known.issuer, known.claims)})
	}
	if found {
		return identity, nil
	}
	// The first use is what the audit has: a job asks often.
	if err := j.store.Audit(ctx, api.Event{At: j.now(), Who: known.name, Action: "CI token",
		Subject: known.issuer, Detail: identity.Roles()}); err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.known) >= mostJobs {
		clear(j.known)
	}
	j.known[hash] = known
	return identity, nil
}

// verify asks the issuer that a token names, where a rule is about it. The error may be a
// refusedError.
func (j *jobs) verify(ctx context.Context, token string) (*job, error) {
	address := trimIssuer(claimed(token).Issuer)
	if !j.addresses()[address] {
		reason := "it is none of an issuer of OpenID Connect, nor of this hub"
		if address != "" {
			reason = "no rule is about its issuer, " + line(address, 200)
		}
		return nil, &refusedError{reason: reason}
	}
	i := j.issuer(address)
	if !j.limits[address].AllowN(j.now(), 1) {
		return nil, access.ErrTooMany
	}
	verified, claims, err := i.verify(ctx, token, Audience)
	if unreachable := (*unreachableError)(nil); errors.As(err, &unreachable) {
		return nil, err
	}
	if err != nil {
		return nil, unverified(address, token, err)
	}
	if verified.Subject == "" {
		return nil, &refusedError{issuer: address, reason: "it has no sub"}
	}
	return &job{issuer: address, name: jobName(verified.Subject, address), claims: claims, expires: verified.Expiry}, nil
}

// jobName returns what a job is called in the audit.
func jobName(subject, issuer string) string {
	host := issuer
	if u, err := url.Parse(issuer); err == nil {
		host = u.Host
	}
	return fmt.Sprintf("job %s of %s", line(subject, 200), host)
}
