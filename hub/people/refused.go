package people

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/time/rate"

	"github.com/kalypso-io/kalypso/hub/access"
)

// refusedError is why a token lets nobody in. Who sent it learns only that it does not.
type refusedError struct {
	issuer string // "" where no rule is about it
	who    string // "" where the issuer has not signed it
	reason string
}

func (e *refusedError) Error() string {
	if e.issuer == "" {
		return "a token: " + e.reason
	}
	return "a token of the issuer " + e.issuer + ": " + e.reason
}

func (*refusedError) Unwrap() error { return access.ErrUnknown }

// The bounds of what is said of refused tokens: after which time the same is said again, and how
// often anything is.
const (
	sayAgain  = time.Hour
	sayEvery  = 10 * time.Second
	sayAtOnce = 20
	mostSaid  = 1000
)

// refusals are what was said of refused tokens.
type refusals struct {
	mu      sync.Mutex
	said    map[string]time.Time
	limiter *rate.Limiter
}

func newRefusals() *refusals {
	return &refusals{said: map[string]time.Time{}, limiter: rate.NewLimiter(rate.Every(sayEvery), sayAtOnce)}
}

// isNew reports whether something is to be said now.
func (r *refusals) isNew(text string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at, said := r.said[text]; said && now.Sub(at) < sayAgain || !r.limiter.AllowN(now, 1) {
		return false
	}
	if len(r.said) >= mostSaid {
		clear(r.said)
	}
	r.said[text] = now
	return true
}

// refused says why a token lets nobody in, and returns what who sent it learns. The audit has only
// what an issuer has signed.
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
		if err := audit(ctx, j.store, j.now(), e.who, "CI token refused", e.issuer, e.reason); err != nil {
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
		e.who, e.reason = jobName(claims.Subject, issuer), line("the audience is "+is+", and must be "+Audience, 300)
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

// unsure are claims of a token that nobody has verified.
type unsure struct {
	Issuer   string   `json:"iss"`
	Subject  string   `json:"sub"`
	Audience audience `json:"aud"`
}

// claimed returns what a token says of itself; nothing for what is none.
func claimed(token string) (claims unsure) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 || len(token) > mostToken {
		return unsure{}
	}
	data, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(data, &claims) != nil {
		return unsure{}
	}
	return claims
}

// mostUnfit is how many rules are said not to fit.
const mostUnfit = 3

// unfit says why no rule fits a token of an issuer.
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
			why = append(why, fmt.Sprintf("entry %d of ci wants %s %s, and %s", i+1, name, c.Claims[name], is))
			break
		}
	}
	text := "no rule fits"
	if len(why) == 0 {
		return text + ": none is about its issuer"
	}
	more := ""
	if n := len(why) - mostUnfit; n > 0 {
		why, more = why[:mostUnfit], fmt.Sprintf("; and %d more", n)
	}
	return text + ": " + strings.Join(why, "; ") + more
}
