package people

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/kalypso-io/kalypso/hub/access"
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
	return &jobs{store: o.Store, rules: o.Rules, client: client, now: o.Now, problem: o.Problem, issuers: map[string]*issuer{}, limits: map[string]*rate.Limiter{}, known: map[[sha256.Size]byte]job{}}
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
		if err != nil {
			return nil, err
		}
		known = *verified
	}
	identity := j.rules.Rules().job(known.issuer, known.name, known.claims)
	if identity == nil {
		return nil, access.ErrUnknown
	}
	if found {
		return identity, nil
	}
	// The first use is what the audit has: a job asks often.
	if err := j.store.Audit(ctx, store.Event{At: j.now(), Who: known.name, Action: "CI token", Subject: known.issuer, Detail: identity.Roles()}); err != nil {
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

// verify asks the issuer that a token names, where a rule is about it.
func (j *jobs) verify(ctx context.Context, token string) (*job, error) {
	address := claimedIssuer(token)
	if !j.addresses()[address] {
		return nil, access.ErrUnknown
	}
	i := j.issuer(address)
	if !j.limits[address].AllowN(j.now(), 1) {
		return nil, access.ErrTooMany
	}
	verified, claims, err := i.verify(ctx, token, Audience)
	if unreachable := (*unreachableError)(nil); errors.As(err, &unreachable) {
		return nil, err
	}
	if err != nil || verified.Subject == "" {
		return nil, access.ErrUnknown
	}
	host := address
	if u, err := url.Parse(address); err == nil {
		host = u.Host
	}
	return &job{issuer: address, name: fmt.Sprintf("job %s of %s", line(verified.Subject, 200), host), claims: claims, expires: verified.Expiry}, nil
}

// claimedIssuer returns the issuer that a token says it is of; "" for none. Nothing else of it
// is believed.
func claimedIssuer(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 || len(token) > mostToken {
		return ""
	}
	data, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	var claims struct {
		Issuer string `json:"iss"`
	}
	if json.Unmarshal(data, &claims) != nil {
		return ""
	}
	return claims.Issuer
}
