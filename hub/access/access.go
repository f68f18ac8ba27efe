// Package access says who may do what at a hub: by tokens, of which only hashes are kept, and
// by what other packages find out about people.
package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/kalypso-io/kalypso/hub/store"
)

// Role is what somebody may do. Each of Viewer, Operator and Admin may do what the one before
// may.
type Role string

// The roles.
const (
	Cluster  Role = "cluster"  // reports about one cluster
	Enroll   Role = "enroll"   // gets tokens for clusters
	Viewer   Role = "viewer"   // sees everything of its environment
	Operator Role = "operator" // reports about any cluster of its environment
	Admin    Role = "admin"    // makes tokens
)

var ranks = map[Role]int{Viewer: 1, Operator: 2, Admin: 3}

// Valid reports whether there is such a role.
func (r Role) Valid() bool { return r == Cluster || r == Enroll || ranks[r] > 0 }

// Identity is who asks.
type Identity struct {
	Name        string // for the audit
	Role        Role
	Cluster     string // of role Cluster
	Environment string // the one that it is for; "" for all
	Session     bool   // it has signed in, and can sign out
}

// May reports whether somebody has a role, or one that may do more.
func (i *Identity) May(r Role) bool { return i.Role == r || ranks[r] > 0 && ranks[i.Role] >= ranks[r] }

// Sees reports whether somebody may see an environment.
func (i *Identity) Sees(environment string) bool {
	return i.May(Viewer) && (i.Environment == "" || i.Environment == environment)
}

type key struct{}

// With returns a context that has who asks.
func With(ctx context.Context, i *Identity) context.Context { return context.WithValue(ctx, key{}, i) }

// From returns who asks; nil where nobody knows.
func From(ctx context.Context) *Identity {
	i, _ := ctx.Value(key{}).(*Identity)
	return i
}

// Local is who asks where nobody has to say who they are: on this machine alone.
func Local() *Identity { return &Identity{Name: "local", Role: Admin} }

// ErrUnknown is the error where nobody knows who asks.
var ErrUnknown = errors.New("the token is not known, has expired or was revoked")

// ErrTooMany is the error where a token is used too often.
var ErrTooMany = errors.New("the token is used too often")

// Tokens are the tokens of a hub. Any number of goroutines may use it.
type Tokens struct {
	store *store.Store
	now   func() time.Time

	mu    sync.Mutex
	known map[string]*known // by id
}

type known struct {
	token   store.Token
	read    time.Time
	limiter *rate.Limiter
}

// The bounds of tokens: how long one that was revoked elsewhere may still be taken, and how
// often one may be used.
const (
	keep       = 15 * time.Second
	mostKnown  = 200_000
	perSecond  = 50 // of a token for one cluster
	burst      = 200
	ofMany     = 40 // times as often for a token for many
	secretSize = 32
	prefix     = "kalypso_"
)

// NewTokens returns the tokens in a store.
func NewTokens(s *store.Store, now func() time.Time) *Tokens {
	return &Tokens{store: s, now: now, known: map[string]*known{}}
}

// Make makes a token, and returns its text, which is kept nowhere.
func (t *Tokens) Make(ctx context.Context, of store.Token) (text string, made store.Token, err error) {
	random := make([]byte, secretSize)
	_, _ = rand.Read(random) // it never fails
	id := make([]byte, 9)
	_, _ = rand.Read(id)
	secret := base64.RawURLEncoding.EncodeToString(random)
	of.ID, of.Hash, of.Made = hex.EncodeToString(id), hash(secret), t.now()
	if err := t.store.AddToken(ctx, of); err != nil {
		return "", of, err
	}
	return prefix + of.ID + "_" + secret, of, nil
}

func hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// Identify returns who has a token.
func (t *Tokens) Identify(ctx context.Context, text string) (*Identity, error) {
	rest, ok := strings.CutPrefix(text, prefix)
	id, secret, found := strings.Cut(rest, "_")
	if !ok || !found || len(text) > 200 {
		return nil, ErrUnknown
	}
	k, err := t.find(ctx, id)
	if err != nil {
		return nil, err
	}
	now := t.now()
	switch {
	case k == nil, subtle.ConstantTimeCompare([]byte(k.token.Hash), []byte(hash(secret))) == 0,
		!k.token.Revoked.IsZero(), !k.token.Expires.IsZero() && now.After(k.token.Expires):
		return nil, ErrUnknown
	case !k.limiter.AllowN(now, 1):
		return nil, ErrTooMany
	}
	return &Identity{Name: name(&k.token), Role: Role(k.token.Role), Cluster: k.token.Cluster, Environment: k.token.Environment}, nil
}

func name(t *store.Token) string {
	switch {
	case t.Cluster != "":
		return "cluster " + t.Cluster
	case t.Note != "":
		return fmt.Sprintf("token %s (%s)", t.ID, t.Note)
	}
	return "token " + t.ID
}

// find returns a token by its id; nil for none.
func (t *Tokens) find(ctx context.Context, id string) (*known, error) {
	now := t.now()
	t.mu.Lock()
	k := t.known[id]
	t.mu.Unlock()
	if k != nil && now.Sub(k.read) < keep {
		return k, nil
	}
	token, there, err := t.store.Token(ctx, id)
	if err != nil || !there {
		return nil, err
	}
	fresh := &known{token: token, read: now, limiter: rate.NewLimiter(perSecond, burst)}
	if token.Role != string(Cluster) {
		fresh.limiter = rate.NewLimiter(perSecond*ofMany, burst*ofMany)
	}
	if k != nil {
		fresh.limiter = k.limiter
	}
	if now.Sub(token.Used) > time.Hour { // it is for people, who see which are not used
		if err := t.store.UseToken(ctx, id, now); err != nil {
			return nil, err
		}
		fresh.token.Used = now
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.known) >= mostKnown {
		t.known = map[string]*known{}
	}
	t.known[id] = fresh
	return fresh, nil
}

// Revoke ends a token; false where there is none that is not ended.
func (t *Tokens) Revoke(ctx context.Context, id string) (bool, error) {
	t.mu.Lock()
	delete(t.known, id)
	t.mu.Unlock()
	return t.store.RevokeToken(ctx, id, t.now())
}

// Rotate makes a new token for a cluster and ends its others.
func (t *Tokens) Rotate(ctx context.Context, of store.Token) (text string, made store.Token, err error) {
	of.Role = string(Cluster)
	text, made, err = t.Make(ctx, of)
	if err != nil {
		return "", made, err
	}
	t.mu.Lock()
	for id, k := range t.known {
		if k.token.Cluster == of.Cluster {
			delete(t.known, id)
		}
	}
	t.mu.Unlock()
	return text, made, t.store.RevokeOthers(ctx, of.Cluster, made.ID, t.now())
}
