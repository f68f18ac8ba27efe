// Package access decides which actions a client may perform at a hub. Clients authenticate with
// tokens, whose hashes the hub stores, or with an identity that another package has established.
package access

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/hub/store"
)

// ErrUnknown is the error if a token does not identify anybody.
var ErrUnknown = errors.New("the token is not known, has expired or was revoked")

// ErrTooMany is the error if a token is used too often.
var ErrTooMany = errors.New("the token is used too often")

// Tokens manages the tokens of a hub. Any number of goroutines may use it. It caches tokens in
// memory once they are used, and reads the revoked tokens from the store every few seconds.
type Tokens struct {
	store *store.Store
	now   func() time.Time

	mu      sync.Mutex
	known   map[string]*cachedToken // by id
	used    map[string]bool         // the tokens whose use the store has not recorded yet
	checked time.Time               // when the store last returned the revoked tokens
	tried   time.Time               // when the store was last queried
	failed  error                   // the error of that query
	ended   int64                   // the store's count of revoked tokens at that query

	checking sync.Mutex // held by the goroutine that queries the store
}

// cachedToken is a token that was used, and that this hub does not know to be revoked.
type cachedToken struct {
	hash     [sha256.Size]byte
	identity Identity
	expires  time.Time
	noted    time.Time // when its last use was recorded
	limiter  *rate.Limiter
}

// The limits of tokens.
const (
	checkEvery = 5 * time.Second
	timeout    = 2 * time.Second // how long the store may take
	// how long a token is accepted, at most, after another hub has revoked it
	keep       = 15 * time.Second
	noteEvery  = time.Hour // the time shows people which tokens are not used
	maxNoted   = 1000
	maxKnown   = 200_000
	perSecond  = 50 // of a token for one cluster
	burst      = 200
	ofMany     = 40 // times as often for a token for many: one process may report about all clusters
	secretSize = 32
	idSize     = 9
)

// NewTokens returns the tokens in a store.
func NewTokens(s *store.Store, now func() time.Time) *Tokens {
	return &Tokens{store: s, now: now, known: map[string]*cachedToken{}, used: map[string]bool{}}
}

// Make creates a token, and returns it with its Secret, which is not stored anywhere.
func (t *Tokens) Make(ctx context.Context, of api.Token) (api.Token, error) {
	secret, made := New(of, t.now())
	if err := t.store.AddTokens(ctx, made); err != nil {
		return api.Token{}, err
	}
	made.Secret = secret
	return made.Token, nil
}

// New returns a new token in its stored form, and its Secret, which is not part of that form.
func New(of api.Token, now time.Time) (text string, made store.Token) {
	random := make([]byte, secretSize)
	_, _ = rand.Read(random) // it never fails
	id := make([]byte, idSize)
	_, _ = rand.Read(id)
	secret := base64.RawURLEncoding.EncodeToString(random)
	public := api.SigningKey(secret).Public().(ed25519.PublicKey)
	sum := sha256.Sum256([]byte(secret))
	of.ID, of.Made = hex.EncodeToString(id), now
	return api.TokenPrefix + of.ID + "_" + secret, store.Token{Token: of,
		Hash: hex.EncodeToString(sum[:]), SigningKey: hex.EncodeToString(public)}
}

// Identify returns the owner of a token.
func (t *Tokens) Identify(ctx context.Context, text string) (*Identity, error) {
	id, secret, ok := api.TokenParts(text)
	if raw, err := hex.DecodeString(id); !ok || len(text) > 200 || err != nil || len(raw) != idSize {
		return nil, ErrUnknown
	}
	sum := sha256.Sum256([]byte(secret))
	return t.admit(ctx, id,
		func(k *cachedToken) bool { return subtle.ConstantTimeCompare(k.hash[:], sum[:]) == 1 })
}

// Signer returns the signer of a report.
func (t *Tokens) Signer(ctx context.Context, s *api.SignedReport) (*Identity, error) {
	id, err := s.Verify(func(id string) (ed25519.PublicKey, error) {
		token, _, err := t.store.Token(ctx, id)
		if err != nil {
			return nil, err
		}
		key, err := hex.DecodeString(token.SigningKey)
		if err != nil || len(key) != ed25519.PublicKeySize {
			return nil, api.ErrSignature
		}
		return key, nil
	})
	if err != nil {
		return nil, err
	}
	return t.admit(ctx, id, func(*cachedToken) bool { return true })
}

// admit returns the owner of the token with an id, if holds accepts the token.
func (t *Tokens) admit(ctx context.Context, id string, holds func(*cachedToken) bool) (*Identity,
	error) {
	if err := t.check(ctx); err != nil {
		return nil, err
	}
	k, err := t.find(ctx, id)
	if err != nil {
		return nil, err
	}
	now := t.now()
	switch {
	case k == nil, !holds(k), !k.expires.IsZero() && now.After(k.expires):
		return nil, ErrUnknown
	case !k.limiter.AllowN(now, 1):
		return nil, ErrTooMany
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(k.noted) >= noteEvery { // it is written later, with others
		k.noted = now
		t.used[id] = true
	}
	identity := k.identity
	return &identity, nil
}

// check reads the revoked tokens from the store every few seconds. If the store has not answered
// for a long time, check returns an error, and every token is refused.
func (t *Tokens) check(ctx context.Context) error {
	since := func() time.Duration {
		t.mu.Lock()
		defer t.mu.Unlock()
		return t.now().Sub(t.checked)
	}
	if d := since(); d >= 0 && d < checkEvery {
		return nil
	} else if d < 0 || d >= keep {
		t.checking.Lock()
	} else if !t.checking.TryLock() {
		return nil // another goroutine does it
	}
	defer t.checking.Unlock()
	if d := since(); d >= 0 && d < checkEvery {
		return nil // another goroutine has done it
	}
	now := t.now()
	// goroutines that have waited do not query again
	if d := now.Sub(t.tried); t.failed == nil || d < 0 || d >= timeout {
		// Waiting goroutines need the answer even if this caller gives up.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
		defer cancel()
		if t.failed = t.forget(ctx, now); t.failed == nil {
			t.failed = t.write(ctx, now)
		}
		t.tried = t.now()
	}
	if d := since(); t.failed != nil && d >= 0 && d < keep {
		return nil
	}
	return t.failed
}

// forget removes the cached tokens that the store lists as revoked.
func (t *Tokens) forget(ctx context.Context, now time.Time) error {
	t.mu.Lock()
	after := t.ended
	t.mu.Unlock()
	ids, ended, err := t.store.EndedTokens(ctx, after)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range ids {
		delete(t.known, id)
	}
	t.checked, t.ended = now, ended
	return nil
}

// write stores which tokens were used, a limited number at once.
func (t *Tokens) write(ctx context.Context, now time.Time) error {
	t.mu.Lock()
	var ids []string
	for id := range t.used {
		if ids = append(ids, id); len(ids) == maxNoted {
			break
		}
	}
	for _, id := range ids {
		delete(t.used, id)
	}
	t.mu.Unlock()
	return t.store.UseTokens(ctx, ids, now)
}

// find returns the token with an id. It returns nil if no such token exists or the token was
// revoked.
func (t *Tokens) find(ctx context.Context, id string) (*cachedToken, error) {
	t.mu.Lock()
	k, ended := t.known[id], t.ended
	t.mu.Unlock()
	if k != nil {
		return k, nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	token, there, err := t.store.Token(ctx, id)
	if err != nil || !there || !token.Revoked.IsZero() {
		return nil, err
	}
	name := "token " + token.ID
	switch {
	case token.Cluster != "":
		name = "cluster " + token.Cluster
	case token.Note != "":
		name += " (" + token.Note + ")"
	}
	k = &cachedToken{
		identity: Identity{Name: name, Grants: []Grant{{Role(token.Role), token.Environment}},
			Cluster: token.Cluster},
		expires: token.Expires, noted: token.Used, limiter: rate.NewLimiter(perSecond, burst),
	}
	if !k.identity.May(Cluster) {
		k.limiter = rate.NewLimiter(perSecond*ofMany, burst*ofMany)
	}
	if n, err := hex.Decode(k.hash[:], []byte(token.Hash)); err != nil || n != len(k.hash) {
		return nil, nil // no secret matches such a hash
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended != ended {
		return k, nil // it may have been revoked meanwhile: the next caller reads it again
	}
	if len(t.known) >= maxKnown {
		t.known = map[string]*cachedToken{}
	}
	if other := t.known[id]; other != nil {
		return other, nil // both share one limit
	}
	t.known[id] = k
	return k, nil
}

// drop removes the tokens that this hub revokes from the cache, at once.
func (t *Tokens) drop(is func(id string, k *cachedToken) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.known, is)
}

// Revoke ends a token. It reports whether the token existed and had not ended before.
func (t *Tokens) Revoke(ctx context.Context, id string) (bool, error) {
	ended, err := t.store.RevokeToken(ctx, id, t.now())
	t.drop(func(other string, _ *cachedToken) bool { return other == id })
	return ended, err
}

// Rotate creates a new token for a cluster, and revokes its other tokens of the same environment.
func (t *Tokens) Rotate(ctx context.Context, of api.Token) (api.Token, error) {
	of.Role = string(Cluster)
	made, err := t.Make(ctx, of)
	if err != nil {
		return api.Token{}, err
	}
	err = t.store.RevokeOthers(ctx, of.Cluster, of.Environment, made.ID, t.now())
	t.drop(func(_ string, k *cachedToken) bool {
		return k.identity.Cluster == of.Cluster &&
			slices.Contains(k.identity.Grants, Grant{Cluster, of.Environment})
	})
	return made, err
}

// maxListed is how many environments a warning names.
const maxListed = 20

// Absent returns a warning if a token's environment is not one of the environments that a hub
// knows. It returns "" if the token is for all environments, or if the hub knows no environment
// yet.
func Absent(environment string, known []string) string {
	if environment == "" || len(known) == 0 || slices.Contains(known, environment) {
		return ""
	}
	are, more := "are", ""
	if len(known) == 1 {
		are = "is"
	}
	if n := len(known) - maxListed; n > 0 {
		known, more = known[:maxListed], fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("the platform has no environment %s, or its branch was not read yet: "+
		"there %s %s%s", environment, are, strings.Join(known, ", "), more)
}

// Role is a set of permissions. Each of Viewer, Operator and Admin includes the permissions of the
// role before it.
type Role string

// The roles.
const (
	Cluster  Role = "cluster"  // reports about one cluster
	Enroll   Role = "enroll"   // gets tokens for clusters
	Viewer   Role = "viewer"   // sees everything of its environment
	Operator Role = "operator" // reports about any cluster of its environment
	Admin    Role = "admin"    // creates tokens
)

var ranks = map[Role]int{Viewer: 1, Operator: 2, Admin: 3}

// Valid reports whether the role exists.
func (r Role) Valid() bool { return r == Cluster || r == Enroll || ranks[r] > 0 }

// Identity is the person or program that sends a request.
type Identity struct {
	Name    string  // for the audit
	Grants  []Grant // its permissions are the union of these
	Cluster string  // of role Cluster
	Session bool    // it has signed in, and can sign out
}

// Grant is a role in an environment, or in all.
type Grant struct {
	Role        Role
	Environment string // "" for all
}

// String returns the role, with its environment if it has one.
func (g Grant) String() string {
	if g.Environment == "" {
		return string(g.Role)
	}
	return string(g.Role) + " of " + g.Environment
}

func (g Grant) may(r Role) bool { return g.Role == r || ranks[r] > 0 && ranks[g.Role] >= ranks[r] }

// May reports whether i has a role, or one that includes it, in any environment.
func (i *Identity) May(r Role) bool {
	return slices.ContainsFunc(i.Grants, func(g Grant) bool { return g.may(r) })
}

// Scope returns the environments in which i has a role, or one that includes it.
func (i *Identity) Scope(r Role) state.Environments {
	out := state.Environments{}
	for _, g := range i.Grants {
		switch {
		case g.may(r) && g.Environment == "":
			return nil
		case g.may(r) && !slices.Contains(out, g.Environment):
			out = append(out, g.Environment)
		}
	}
	slices.Sort(out)
	return out
}

// MayIn reports whether i has a role in an environment, or in all of them if environment is "".
func (i *Identity) MayIn(r Role, environment string) bool { return i.Scope(r).Has(environment) }

// Audits reports whether i may read the audit, which covers all environments.
func (i *Identity) Audits() bool { return i.Scope(Admin) == nil }

// Sees reports whether i may see an environment.
func (i *Identity) Sees(environment string) bool { return i.MayIn(Viewer, environment) }

// Roles returns the grants as text for people, separated by commas.
func (i *Identity) Roles() string {
	var all []string
	for _, g := range i.Grants {
		all = append(all, g.String())
	}
	return strings.Join(all, ", ")
}

type key struct{}

// With returns a context with the identity of the caller.
func With(ctx context.Context,
	i *Identity) context.Context {
	return context.WithValue(ctx, key{}, i)
}

// From returns the identity that sent a request. It returns nil if the context has no identity.
func From(ctx context.Context) *Identity {
	i, _ := ctx.Value(key{}).(*Identity)
	return i
}

// Local returns the identity of clients on this machine that need no token. It is an admin.
func Local() *Identity { return &Identity{Name: "local", Grants: []Grant{{Role: Admin}}} }
