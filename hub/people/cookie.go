package people

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"time"
)

// jar puts what only this hub may read and write into cookies: JSON, encrypted and authenticated
// by AES-256-GCM. A cookie of one name is none of another, and one of another issuer or client
// is none either.
type jar struct {
	aead   cipher.AEAD
	bound  string // what cookies are bound to, beside their names
	secure bool   // the hub is reached over https
	now    func() time.Time
}

// newJar returns the jar of a key, which may have any length.
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

// sealed is what is in a cookie.
type sealed struct {
	Expires int64           `json:"e"` // seconds since 1970
	Value   json.RawMessage `json:"v"`
}

// name returns the name of a cookie: browsers take one with __Host- from this very host alone,
// and only over https.
func (j *jar) name(name string) string {
	if j.secure {
		return "__Host-" + name
	}
	return name
}

func (j *jar) about(name string) []byte { return []byte(name + "\x00" + j.bound) }

// set sets a cookie that holds for a time.
func (j *jar) set(w http.ResponseWriter, name string, value any, life time.Duration) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if data, err = json.Marshal(sealed{j.now().Add(life).Unix(), data}); err != nil {
		return err
	}
	text := base64.RawURLEncoding.EncodeToString(j.aead.Seal(nil, nil, data, j.about(name)))
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

// get reads a cookie; false where there is none that holds.
func (j *jar) get(r *http.Request, name string, into any) bool {
	c, err := r.Cookie(j.name(name))
	if err != nil {
		return false
	}
	text, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil {
		return false
	}
	data, err := j.aead.Open(nil, nil, text, j.about(name))
	if err != nil {
		return false
	}
	var s sealed
	return json.Unmarshal(data, &s) == nil && j.now().Unix() < s.Expires && json.Unmarshal(s.Value, into) == nil
}
