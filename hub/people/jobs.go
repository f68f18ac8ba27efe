package people

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/time/rate"

	"github.com/kalypso-io/kalypso/hub/access"
	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/store"
)

// Audience is the required audience of the tokens of CI jobs.
const Audience = "kalypso-hub"

// jobs identifies the CI job that sends a request.
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

// job is the content of a verified token.
type job struct {
	issuer, name string
	claims       map[string]any
	expires      time.Time
}

// The limits of tokens. An unknown key makes the hub ask the issuer, so only so many new tokens of
// an issuer are verified in a second. Only so many tokens are remembered.
const (
	newPerSecond = 20
	newAtOnce    = 100
	maxJobs      = 10_000
	maxToken     = 16 << 10
)

func newJobs(o Options, client *http.Client) *jobs {
	return &jobs{store: o.Store, rules: o.Rules, client: client, now: o.Now, problem: o.Problem,
		refusals: &refusals{said: map[string]time.Time{},
			limiter: rate.NewLimiter(rate.Every(sayEvery), sayAtOnce)},
		issuers: map[string]*issuer{}, limits: map[string]*rate.Limiter{},
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

// issuer returns the issuer with an address from a rule.
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
		return nil, j.refused(ctx,
			&refusedError{known.issuer, known.name, rules.unfit(known.issuer, known.claims)})
	}
	if found {
		return identity, nil
	}
	// The audit has only the first use, because a job sends many requests.
	if err := j.store.Audit(ctx, api.Event{At: j.now(), Who: known.name, Action: "CI token",
		Subject: known.issuer, Detail: identity.Roles()}); err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.known) >= maxJobs {
		clear(j.known)
	}
	j.known[hash] = known
	return identity, nil
}

// verify verifies a token with the issuer that it names, if a rule names that issuer. The error may
// be a refusedError.
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
	return &job{issuer: address, name: jobName(verified.Subject, address), claims: claims,
		expires: verified.Expiry}, nil
}

// jobName returns the name of a job in the audit.
func jobName(subject, issuer string) string {
	host := issuer
	if u, err := url.Parse(issuer); err == nil {
		host = u.Host
	}
	return fmt.Sprintf("job %s of %s", line(subject, 200), host)
}

// refusedError explains why a token is refused. The sender learns only the refusal.
type refusedError struct {
	issuer string // "" if no rule names the issuer
	who    string // "" if the issuer has not signed the token
	reason string
}

func (e *refusedError) Error() string {
	if e.issuer == "" {
		return "a token: " + e.reason
	}
	return "a token of the issuer " + e.issuer + ": " + e.reason
}

func (*refusedError) Unwrap() error { return access.ErrUnknown }

// The limits of messages about refused tokens: when the same message may be repeated, and how many
// messages there may be.
const (
	sayAgain  = time.Hour
	sayEvery  = 10 * time.Second
	sayAtOnce = 20
	maxSaid   = 1000
)

// refusals remembers the messages about refused tokens.
type refusals struct {
	mu      sync.Mutex
	said    map[string]time.Time
	limiter *rate.Limiter
}

// isNew reports whether a message must be logged now.
func (r *refusals) isNew(text string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at, said := r.said[text]; said && now.Sub(at) < sayAgain || !r.limiter.AllowN(now, 1) {
		return false
	}
	if len(r.said) >= maxSaid {
		clear(r.said)
	}
	r.said[text] = now
	return true
}

// refused logs why a token is refused, and returns the error for the sender. The audit has only
// content that an issuer has signed.
func (j *jobs) refused(ctx context.Context, e *refusedError) error {
	if !j.refusals.isNew(e.who+"\x00"+e.Error(), j.now()) {
		return access.ErrUnknown
	}
	who := ""
	if e.who != "" {
		who = " (" + e.who + ")"
	}
	j.problem(fmt.Errorf("a CI job is refused%s: %w", who, e))
	if e.who != "" {
		if err := audit(ctx, j.store, j.now(), e.who, "CI token refused", e.issuer,
			e.reason); err != nil {
			return err
		}
	}
	return access.ErrUnknown
}

// unverified returns why a token could not be verified.
func unverified(issuer, token string, err error) *refusedError {
	e := &refusedError{issuer: issuer}
	claims := claimed(token)
	if expired := (*oidc.TokenExpiredError)(nil); errors.As(err, &expired) {
		e.who, e.reason = jobName(claims.Subject, issuer), "it has expired: get one where it is used"
		return e
	}
	if strings.HasPrefix(err.Error(), "oidc: expected audience") { // go-oidc has no type for it
		is := strings.Join(claims.Audience, ", ")
		if is == "" {
			is = "missing"
		}
		e.who, e.reason = jobName(claims.Subject, issuer),
			line("the audience is "+is+", and must be "+Audience, 300)
		return e
	}
	e.reason = "it cannot be verified: " + short(err).Error()
	return e
}

// audience is one or several texts.
type audience []string

// UnmarshalJSON implements json.Unmarshaler.
func (a *audience) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*a = audience{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(a))
}

// unverifiedClaims are the claims of a token before its verification.
type unverifiedClaims struct {
	Issuer   string   `json:"iss"`
	Subject  string   `json:"sub"`
	Audience audience `json:"aud"`
}

// claimed returns the unverified claims of a token, or no claims if the text is not a token.
func claimed(token string) (claims unverifiedClaims) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 || len(token) > maxToken {
		return unverifiedClaims{}
	}
	data, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(data, &claims) != nil {
		return unverifiedClaims{}
	}
	return claims
}

// maxUnfit is how many unfit rules an error lists.
const maxUnfit = 3

// unfit explains why no rule matches a token of an issuer.
func (r *Rules) unfit(issuer string, claims map[string]any) string {
	var why []string
	for i, c := range r.CI {
		if c.Issuer != issuer {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(c.Claims)) {
			has := valuesOf(claims[name])
			if slices.Contains(has, c.Claims[name]) {
				continue
			}
			is := "it has none"
			if len(has) > 0 {
				is = "it is " + line(strings.Join(has, ", "), 100)
			}
			why = append(why,
				fmt.Sprintf("entry %d of ci wants %s %s, and %s", i+1, name, c.Claims[name], is))
			break
		}
	}
	text := "no rule fits"
	if len(why) == 0 {
		return text + ": none is about its issuer"
	}
	more := ""
	if n := len(why) - maxUnfit; n > 0 {
		why, more = why[:maxUnfit], fmt.Sprintf("; and %d more", n)
	}
	return text + ": " + strings.Join(why, "; ") + more
}
