package people

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/kalypso-io/kalypso/hub/access"
	"github.com/kalypso-io/kalypso/hub/store"
)

// fake is an issuer whose tokens a test chooses.
type fake struct {
	*httptest.Server
	key      *rsa.PrivateKey
	claims   func(claims map[string]any) // changes the claims of the next ID token
	sign     func(claims map[string]any) string
	userInfo map[string]any
	down     bool
	asked    int // for keys

	nonce, challenge string // of the sign-in that has begun
}

// made are the keys of all tests, of the issuer and of an attacker. Their creation takes long.
var made = sync.OnceValues(func() (out [2]*rsa.PrivateKey, err error) {
	for i := range out {
		if out[i], err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
			return out, err
		}
	}
	return out, nil
})

func keys(t *testing.T) [2]*rsa.PrivateKey {
	t.Helper()
	out, err := made()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func newFake(t *testing.T) *fake {
	key := keys(t)[0]
	f := &fake{key: key, claims: func(map[string]any) {}}
	f.sign = func(claims map[string]any) string { return signed(t, key, jose.RS256, "one", claims) }
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		if f.down {
			http.Error(w, "secret-of-the-issuer", http.StatusBadGateway)
			return
		}
		answer(w, map[string]any{
			"issuer": f.URL, "authorization_endpoint": f.URL + "/authorize", "token_endpoint": f.URL + "/token", "jwks_uri": f.URL + "/keys",
			"userinfo_endpoint": f.URL + "/userinfo", "id_token_signing_alg_values_supported": []string{"RS256"}, "scopes_supported": []string{"openid", "groups"},
		})
	})
	f.authorize(mux)
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		f.asked++
		answer(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &key.PublicKey, KeyID: "one", Algorithm: "RS256", Use: "sig"}}})
	})
	mux.HandleFunc("/userinfo", func(w http.ResponseWriter, _ *http.Request) { answer(w, f.userInfo) })
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		_, secret, _ := r.BasicAuth()
		sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		if r.PostFormValue("code") != "the-code" || secret != "the-secret" || base64.RawURLEncoding.EncodeToString(sum[:]) != f.challenge {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"error":"invalid_grant","error_description":"secret-of-the-issuer"}`))
			return
		}
		claims := map[string]any{
			"iss": f.URL, "aud": "the-client", "sub": "42", "email": "ann@example.com", "groups": []string{"staff", "sre"}, "nonce": f.nonce,
			"iat": clock.Unix(), "exp": clock.Add(time.Hour).Unix(),
		}
		f.claims(claims)
		answer(w, map[string]any{"access_token": "the-access", "token_type": "Bearer", "id_token": f.sign(claims)})
	})
	f.Server = httptest.NewServer(mux)
	t.Cleanup(f.Close)
	return f
}

func answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value)
}

func signed(t *testing.T, key any, algorithm jose.SignatureAlgorithm, id string, claims map[string]any) string {
	t.Helper()
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, (&jose.SignerOptions{}).WithHeader("kid", id))
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	o, err := s.Sign(data)
	if err != nil {
		t.Fatal(err)
	}
	text, err := o.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// unsigned returns a token with the algorithm none.
func unsigned(claims map[string]any) string {
	data, _ := json.Marshal(claims)
	return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + base64.RawURLEncoding.EncodeToString(data) + "."
}

var clock = time.Date(2026, 11, 25, 9, 0, 0, 0, time.UTC)

// hub is the part of a hub that signs people in.
type hub struct {
	*httptest.Server
	t        *testing.T
	fake     *fake
	people   *People
	db       *store.Store
	rules    string // the file
	now      time.Time
	problems []string
	pages    http.Handler // serves all other paths; if nil, the hub prints the caller's name
	later    atomic.Int64 // the additional time while a browser sends requests
}

const rulesText = `
groups:
  - {group: sre, role: operator}
  - {group: staff, role: viewer, environment: dev}
`

func newHub(t *testing.T, f *fake, rules string) *hub {
	return newHubOn(t, filepath.Join(t.TempDir(), "hub.db"), f, rules)
}

func newHubOn(t *testing.T, database string, f *fake, rules string) *hub {
	h := &hub{t: t, fake: f, now: clock, rules: filepath.Join(t.TempDir(), "rules.yaml")}
	h.write(rules)
	var err error
	if h.db, err = store.Open(t.Context(), database); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.db.Close() })
	problem := func(err error) { h.problems = append(h.problems, err.Error()) }
	file, err := Open(h.rules, problem)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	h.Server = httptest.NewServer(mux)
	t.Cleanup(h.Close)
	h.people, err = New(t.Context(), Options{
		Store: h.db, Rules: file, URL: h.URL, Issuer: f.URL, ClientID: "the-client", ClientSecret: "the-secret", GroupsClaim: "groups",
		Session: time.Hour, Now: func() time.Time { return h.now.Add(time.Duration(h.later.Load())) }, Problem: problem,
	})
	if err != nil {
		t.Fatal(err)
	}
	mux.Handle("/sign-in/", h.people.Handler())
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if h.pages != nil {
			h.pages.ServeHTTP(w, r)
			return
		}
		i, err := h.people.Identify(r)
		switch {
		case errors.Is(err, access.ErrUnknown):
			http.Error(w, "unknown", http.StatusUnauthorized)
		case err != nil:
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		case i == nil:
			http.Error(w, "nobody", http.StatusUnauthorized)
		default:
			_, _ = w.Write([]byte(i.Name + ", " + i.Roles()))
		}
	})
	return h
}

// write writes the rules, with a later modification time.
func (h *hub) write(rules string) {
	h.t.Helper()
	if err := os.WriteFile(h.rules, []byte(rules), 0o600); err != nil {
		h.t.Fatal(err)
	}
	h.now = h.now.Add(time.Second)
	if err := os.Chtimes(h.rules, h.now, h.now); err != nil {
		h.t.Fatal(err)
	}
}

// browser follows redirects within the hub only.
func (h *hub) browser() *http.Client {
	jar, err := cookiejar.New(nil)
	if err != nil {
		h.t.Fatal(err)
	}
	return &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// get returns the status, the text and the address of the redirect.
func (h *hub) get(c *http.Client, address string) (int, string, string) {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), http.MethodGet, address, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	return h.do(c, r)
}

func (h *hub) do(c *http.Client, r *http.Request) (int, string, string) {
	h.t.Helper()
	a, err := c.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	var b strings.Builder
	buffer := make([]byte, 4096)
	for {
		n, err := a.Body.Read(buffer)
		b.Write(buffer[:n])
		if err != nil {
			break
		}
	}
	return a.StatusCode, strings.TrimSpace(b.String()), a.Header.Get("Location")
}

// begin begins a sign-in, and returns the address to which the issuer sends the browser then.
func (h *hub) begin(c *http.Client, to string) string {
	h.t.Helper()
	status, text, location := h.get(c, h.URL+"/sign-in/?"+url.Values{"to": {to}}.Encode())
	if status != http.StatusSeeOther || !strings.HasPrefix(location, h.fake.URL+"/authorize?") {
		h.t.Fatalf("the sign-in begins with %d, %s: %s", status, location, text)
	}
	u, err := url.Parse(location)
	if err != nil {
		h.t.Fatal(err)
	}
	q := u.Query()
	if q.Get("code_challenge_method") != "S256" || q.Get("redirect_uri") != h.URL+"/sign-in/callback" || q.Get("scope") != "openid profile email groups" {
		h.t.Fatalf("the issuer is asked with %v", q)
	}
	h.fake.nonce, h.fake.challenge = q.Get("nonce"), q.Get("code_challenge")
	return h.URL + "/sign-in/callback?" + url.Values{"state": {q.Get("state")}, "code": {"the-code"}}.Encode()
}

func (h *hub) audit() []string {
	h.t.Helper()
	events, err := h.db.Events(h.t.Context(), 0, 100)
	if err != nil {
		h.t.Fatal(err)
	}
	var out []string
	for _, e := range events {
		out = append(out, e.Who+": "+e.Action+" "+e.Subject+" "+e.Detail)
	}
	return out
}

func with(claims map[string]any, more map[string]any) map[string]any {
	out := maps.Clone(claims)
	maps.Copy(out, more)
	return out
}
