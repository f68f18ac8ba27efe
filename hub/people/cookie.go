package people

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/kalypso-io/kalypso/hub/store"
)

// jar stores values that only this hub may read and write in cookies: JSON, encrypted and
// authenticated by AES-256-GCM. A cookie is valid only under its own name, and only for its issuer
// and client.
type jar struct {
	aead   cipher.AEAD
	bound  string // the issuer and client that cookies are bound to, beside their names
	secure bool   // the hub is reached over https
	now    func() time.Time
}

// newJar returns the jar of a key. The key may have any length.
func newJar(key, bound string, secure bool, now func() time.Time) *jar {
	sum := sha256.Sum256([]byte("kalypso-hub cookies\x00" + key))
	block, err := aes.NewCipher(sum[:])
	if err != nil {
		panic(err) // the key has 32 bytes
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err)
	}
	return &jar{aead, bound, secure, now}
}

// cookieContent is the content of a cookie.
type cookieContent struct {
	Expires int64           `json:"e"` // seconds since 1970
	Value   json.RawMessage `json:"v"`
}

// name returns the name of a cookie. Browsers accept a cookie with __Host- only from this very
// host, and only over https.
func (j *jar) name(name string) string {
	if j.secure {
		return "__Host-" + name
	}
	return name
}

func (j *jar) binding(name string) []byte { return []byte(name + "\x00" + j.bound) }

// set sets a cookie that is valid for a time.
func (j *jar) set(w http.ResponseWriter, name string, value any, life time.Duration) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if data, err = json.Marshal(cookieContent{j.now().Add(life).Unix(), data}); err != nil {
		return err
	}
	text := base64.RawURLEncoding.EncodeToString(j.aead.Seal(nil, nil, data, j.binding(name)))
	http.SetCookie(w, j.cookie(name, text, int(life/time.Second)))
	return nil
}

func (j *jar) cookie(name, value string, seconds int) *http.Cookie {
	return &http.Cookie{Name: j.name(name), Value: value, Path: "/", MaxAge: seconds, HttpOnly: true,
		Secure: j.secure, SameSite: http.SameSiteLaxMode}
}

// clear ends a cookie.
func (j *jar) clear(w http.ResponseWriter, name string) {
	http.SetCookie(w, j.cookie(name, "", -1))
}

// get reads a cookie. It returns false if the request has no valid cookie of that name.
func (j *jar) get(r *http.Request, name string, into any) bool {
	c, err := r.Cookie(j.name(name))
	if err != nil {
		return false
	}
	text, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil {
		return false
	}
	data, err := j.aead.Open(nil, nil, text, j.binding(name))
	if err != nil {
		return false
	}
	var s cookieContent
	return json.Unmarshal(data, &s) == nil && j.now().Unix() < s.Expires &&
		json.Unmarshal(s.Value, into) == nil
}

// How often the ended sessions are read, how long they stay valid if the database does not answer,
// and how long the database may take.
const (
	readEvery   = 5 * time.Second
	believeFor  = 15 * time.Second
	readTimeout = 2 * time.Second
)

// endedSessions are the sessions that people have ended by signing out, and the completed sign-ins,
// at any hub of the database.
type endedSessions struct {
	store *store.Store
	now   func() time.Time

	mu          sync.Mutex
	ids         map[string]bool
	tried, read time.Time
	err         error // of the last try
}

// has reports whether a session has ended. It returns an error if that is not known.
func (e *endedSessions) has(ctx context.Context, id string) (bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if now := e.now(); !within(now, e.tried, readEvery) {
		// Other callers need the answer even if this one gives up.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
		defer cancel()
		ids, err := e.store.EndedSessions(ctx, now)
		if e.tried, e.err = now, err; err == nil {
			e.read, e.ids = now, make(map[string]bool, len(ids))
			for _, id := range ids {
				e.ids[id] = true
			}
		}
	}
	if e.err != nil && !within(e.now(), e.read, believeFor) {
		return false, fmt.Errorf("which sessions have ended is not known: %w", e.err)
	}
	return e.ids[id], nil
}

// within reports whether less than a time has passed.
func within(now, since time.Time, most time.Duration) bool {
	d := now.Sub(since)
	return d >= 0 && d < most
}

// end ends a session or a sign-in that would otherwise be valid until a time. first is true for
// only one call with an id, at all hubs.
func (e *endedSessions) end(ctx context.Context, id string, until time.Time) (first bool,
	err error) {
	if first, err = e.store.EndSession(ctx, id, e.now(), until); err != nil {
		return false, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ids == nil {
		e.ids = map[string]bool{}
	}
	e.ids[id] = true
	return first, nil
}
