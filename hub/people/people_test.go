package people

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/kalypso-io/kalypso/hub/access"
	"github.com/kalypso-io/kalypso/internal/testing/hubtest"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

func TestSignIn(t *testing.T) {
	h := newHub(t, newFake(t), rulesText)
	c := h.browser()
	if status, text, _ := h.get(c, h.URL+"/"); status != http.StatusUnauthorized || text != "nobody" {
		t.Fatalf("before: %d %s", status, text)
	}
	callback := h.begin(c, "/rollouts/prod?ring=canary")
	if status, text, to := h.get(c, callback); status != http.StatusSeeOther || to != "/rollouts/prod?ring=canary" {
		t.Fatalf("the sign-in ends with %d, %s: %s", status, to, text)
	}
	if _, text, _ := h.get(c, h.URL+"/"); text != "person ann@example.com, operator, viewer of dev" {
		t.Errorf("who asks is %s", text)
	}
	if status, _, _ := h.get(c, callback); status != http.StatusBadRequest {
		t.Errorf("the same sign-in ends twice: %d", status)
	}
	// A page of another site sends a form: browsers add a header about that.
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.URL+"/v1/tokens", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	if status, text, _ := h.do(c, r); status != http.StatusUnauthorized {
		t.Errorf("the form of another site: %d %s", status, text)
	}
	// The session ends by itself.
	h.now = h.now.Add(time.Hour)
	if status, _, _ := h.get(c, h.URL+"/"); status != http.StatusUnauthorized {
		t.Errorf("after an hour: %d", status)
	}
	if got, want := h.audit(), []string{"person ann@example.com: sign in 42 operator, viewer of dev"}; !slices.Equal(got, want) {
		t.Errorf("the audit has %q, not %q", got, want)
	}
}

func TestCookies(t *testing.T) {
	h := newHub(t, newFake(t), rulesText)
	c := h.browser()
	h.get(c, h.begin(c, "/"))
	u, err := url.Parse(h.URL)
	if err != nil {
		t.Fatal(err)
	}
	cookies := c.Jar.Cookies(u)
	if len(cookies) != 1 || cookies[0].Name != sessionCookie {
		t.Fatalf("the cookies are %v", cookies)
	}
	value := cookies[0].Value
	other := newJar("another key", h.fake.URL+"\x00the-client", false, h.people.Now)
	for what, cookie := range map[string]http.Cookie{
		"a changed one":           {Name: sessionCookie, Value: changed(value)},
		"one of another purpose":  {Name: signInCookie, Value: value},
		"no base64":               {Name: sessionCookie, Value: "=="},
		"an empty one":            {Name: sessionCookie},
		"one of another key":      {Name: sessionCookie, Value: strings.Repeat("A", 100)},
		"a session as a sign-in ": {Name: sessionCookie, Value: value[:20]},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.AddCookie(&cookie)
		if i, err := h.people.Identify(r); i != nil || err != nil {
			t.Errorf("%s: %v, %v", what, i, err)
		}
		var s session
		if other.get(r, sessionCookie, &s) {
			t.Errorf("%s is read with another key", what)
		}
	}
	// Another hub of the same database has the same key.
	again, err := New(t.Context(), h.people.Options)
	if err != nil {
		t.Fatal(err)
	}
	o := h.people.Options
	o.Key = ""
	replica, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.AddCookie(cookies[0])
	for _, p := range []*People{again, replica} {
		if i, err := p.Identify(r); i == nil || err != nil {
			t.Errorf("a replica says %v, %v", i, err)
		}
	}
	// Over https, a cookie is valid only for this host, and is never sent without https.
	secure := newJar("key", "", true, h.people.Now)
	if c := secure.cookie(sessionCookie, "", 1); !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || !strings.HasPrefix(c.Name, "__Host-") {
		t.Errorf("the cookie is %+v", c)
	}
}

// changed returns a value with a different first character.
func changed(value string) string {
	if value[0] == 'A' {
		return "B" + value[1:]
	}
	return "A" + value[1:]
}

// Nothing that an issuer or an attacker in between sends lets in a person who may not sign in.
func TestSignInRefused(t *testing.T) {
	other := keys(t)[1]
	for name, c := range map[string]struct {
		claims  func(map[string]any)
		sign    func(*fake, map[string]any) string
		address func(string) string
		says    string
	}{
		"wrong nonce":    {claims: func(c map[string]any) { c["nonce"] = "another" }, says: "its nonce differs"},
		"no nonce":       {claims: func(c map[string]any) { delete(c, "nonce") }, says: "its nonce differs"},
		"wrong audience": {claims: func(c map[string]any) { c["aud"] = "another-client" }, says: "expected audience"},
		"wrong issuer":   {claims: func(c map[string]any) { c["iss"] = "https://evil.example.com" }, says: "different provider"},
		"expired":        {claims: func(c map[string]any) { c["exp"] = clock.Add(-time.Minute).Unix() }, says: "token is expired"},
		"nobody":         {claims: func(c map[string]any) { c["sub"] = "" }, says: "names nobody"},
		"wrong key":      {sign: func(_ *fake, c map[string]any) string { return signed(t, other, jose.RS256, "one", c) }, says: "failed to verify signature"},
		"alg none":       {sign: func(_ *fake, c map[string]any) string { return unsigned(c) }, says: "malformed jwt"},
		"alg HS256 with the public key": {sign: func(f *fake, c map[string]any) string {
			return signed(t, f.key.PublicKey.N.Bytes(), jose.HS256, "one", c)
		}, says: "malformed jwt"},
		"another algorithm": {sign: func(f *fake, c map[string]any) string { return signed(t, f.key, jose.RS512, "one", c) }, says: "malformed jwt"},
		"wrong code":        {address: func(a string) string { return strings.Replace(a, "the-code", "a-code", 1) }, says: "invalid_grant"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t, newFake(t), rulesText)
			b := h.browser()
			callback := h.begin(b, "/")
			if c.claims != nil {
				h.fake.claims = c.claims
			}
			if c.sign != nil {
				h.fake.sign = func(claims map[string]any) string { return c.sign(h.fake, claims) }
			}
			if c.address != nil {
				callback = c.address(callback)
			}
			if status, text, _ := h.get(b, callback); status != http.StatusForbidden || !strings.Contains(text, "cannot be trusted") {
				t.Errorf("it answers %d: %s", status, text)
			}
			if len(h.problems) != 1 || !strings.Contains(h.problems[0], c.says) || strings.Contains(h.problems[0], "secret-of") {
				t.Errorf("the log has %q, not %q", h.problems, c.says)
			}
			if status, _, _ := h.get(b, h.URL+"/"); status != http.StatusUnauthorized {
				t.Error("there is a session")
			}
		})
	}
}

// A browser cannot end a sign-in that another browser began.
func TestSignInElsewhere(t *testing.T) {
	h := newHub(t, newFake(t), rulesText)
	attacker, victim := h.browser(), h.browser()
	theirs := h.begin(attacker, "/")
	if status, _, _ := h.get(victim, theirs); status != http.StatusBadRequest {
		t.Errorf("without one of its own: %d", status)
	}
	h.begin(victim, "/")
	if status, _, _ := h.get(victim, theirs); status != http.StatusBadRequest {
		t.Errorf("with another state: %d", status)
	}
	late := h.begin(victim, "/")
	h.now = h.now.Add(signInLife)
	if status, _, _ := h.get(victim, late); status != http.StatusBadRequest {
		t.Errorf("too late: %d", status)
	}
	callback := h.begin(victim, "/")
	refused := strings.Replace(callback, "code=the-code", "error=access_denied&error_description=%3Cscript%3E", 1)
	if status, text, _ := h.get(victim, refused); status != http.StatusForbidden || !strings.Contains(text, "access_denied &lt;script&gt;") {
		t.Errorf("refused: %d %s", status, text)
	}
}

func TestInside(t *testing.T) {
	for to, want := range map[string]string{
		"/":                             "/",
		"/rollouts/prod?ring=a%2Fb":     "/rollouts/prod?ring=a%2Fb",
		"":                              "/",
		"https://evil.example.com":      "/",
		"//evil.example.com":            "/",
		"///evil.example.com":           "/",
		`/\evil.example.com`:            "/",
		`\\evil.example.com`:            "/",
		"/%5cevil.example.com":          "/%5cevil.example.com", // stays a path: browsers decode none
		"/\t/evil.example.com":          "/",
		"/\n/evil.example.com":          "/",
		"javascript:alert(1)":           "/",
		"rollouts":                      "/",
		"/%2f/evil.example.com":         "/",
		"/sign-in/out":                  "/",
		"/%":                            "/",
		"/" + strings.Repeat("a", 2000): "/",
	} {
		if got := inside(to); got != want {
			t.Errorf("inside(%.60q) is %.60q, not %q", to, got, want)
		}
	}
}

// A person's permissions follow the rules, and the groups that the issuer names at the next
// sign-in.
func TestGroups(t *testing.T) {
	h := newHub(t, newFake(t), rulesText)
	c := h.browser()
	h.get(c, h.begin(c, "/"))
	h.write("groups:\n  - {group: staff, role: viewer, environment: dev}\n")
	if _, text, _ := h.get(c, h.URL+"/"); text != "person ann@example.com, viewer of dev" {
		t.Errorf("with fewer rules, who asks is %s", text)
	}
	h.write("groups:\n  - {group: staff, role: king}\n")
	if _, text, _ := h.get(c, h.URL+"/"); text != "person ann@example.com, viewer of dev" {
		t.Errorf("with rules that cannot be read, who asks is %s", text)
	}
	if len(h.problems) != 1 || !strings.Contains(h.problems[0], `there is no role "king"`) {
		t.Errorf("the problems are %q", h.problems)
	}
	h.write("groups:\n  - {group: others, role: viewer}\n")
	if status, _, _ := h.get(c, h.URL+"/"); status != http.StatusUnauthorized {
		t.Errorf("without a rule: %d", status)
	}
	h.write(rulesText)
	h.fake.claims = func(c map[string]any) { c["groups"] = []string{"visitors"} }
	if status, text, _ := h.get(c, h.begin(c, "/")); status != http.StatusForbidden || !strings.Contains(text, "none of your groups has a role") {
		t.Errorf("in no group: %d %s", status, text)
	}
	if got := h.audit()[0]; got != "person ann@example.com: sign-in refused 42 no group has a role" {
		t.Errorf("the audit has %q", got)
	}
	// The claim may be deeper, or one text, or only in the issuer's user info.
	h.people.GroupsClaim = "realm_access.roles"
	h.fake.claims = func(c map[string]any) { c["realm_access"] = map[string]any{"roles": "sre"} }
	if status, text, _ := h.get(c, h.begin(c, "/")); status != http.StatusSeeOther {
		t.Errorf("of a deeper claim: %d %s", status, text)
	}
	h.people.GroupsClaim = "teams"
	h.fake.claims = func(map[string]any) {}
	h.fake.userInfo = map[string]any{"sub": "42", "teams": []string{"sre"}}
	if status, text, _ := h.get(c, h.begin(c, "/")); status != http.StatusSeeOther {
		t.Errorf("of the issuer's answer: %d %s", status, text)
	}
	h.fake.userInfo = map[string]any{"sub": "43", "teams": []string{"sre"}}
	if status, text, _ := h.get(c, h.begin(c, "/")); status != http.StatusForbidden {
		t.Errorf("of somebody else: %d %s", status, text)
	}
}

func TestSignOut(t *testing.T) {
	h := newHub(t, newFake(t), rulesText)
	c := h.browser()
	h.get(c, h.begin(c, "/"))
	if _, text, _ := h.get(c, h.URL+"/sign-in/out"); !strings.Contains(text, "You are ann@example.com.") || !strings.Contains(text, "<button>") {
		t.Errorf("it asks with %s", text)
	}
	if status, _, _ := h.get(c, h.URL+"/"); status != http.StatusOK {
		t.Error("a link signs out")
	}
	post := func(site string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.URL+"/sign-in/out", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Sec-Fetch-Site", site)
		status, _, _ := h.do(c, r)
		return status
	}
	if status := post("cross-site"); status != http.StatusForbidden {
		t.Errorf("another site signs out: %d", status)
	}
	if status := post("same-origin"); status != http.StatusOK {
		t.Errorf("signing out: %d", status)
	}
	if status, _, _ := h.get(c, h.URL+"/"); status != http.StatusUnauthorized {
		t.Error("there is a session")
	}
	if got := h.audit()[0]; got != "person ann@example.com: sign out  " {
		t.Errorf("the audit has %q", got)
	}
}

// A hub starts without its issuer, reports that, and tries again later.
func TestUnreachable(t *testing.T) {
	f := newFake(t)
	f.down = true
	h := newHub(t, f, rulesText)
	h.people.Reach(t.Context())
	c := h.browser()
	for range 3 {
		if status, text, _ := h.get(c, h.URL+"/sign-in/"); status != http.StatusServiceUnavailable || !strings.Contains(text, "Nobody can sign in now") || strings.Contains(text, "secret-of") {
			t.Errorf("it answers %d: %s", status, text)
		}
	}
	if len(h.problems) != 1 || !strings.Contains(h.problems[0], "until it answers") || !strings.Contains(h.problems[0], "502") {
		t.Errorf("the problems are %q", h.problems)
	}
	f.down = false
	h.now = h.now.Add(askAgain)
	h.begin(c, "/")
}

func TestJobs(t *testing.T) {
	f := newFake(t)
	h := newHub(t, f, "ci:\n  - issuer: "+f.URL+"\n    claims: {repository: acme/platform, ref_protected: true}\n    role: viewer\n    environment: prod\n")
	other := keys(t)[1]
	good := map[string]any{"iss": f.URL, "aud": []string{"other", Audience}, "sub": "repo:acme/platform", "repository": "acme/platform", "ref_protected": "true", "exp": clock.Add(10 * time.Minute).Unix()}
	ask := func(token string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.URL+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		status, text, _ := h.do(h.browser(), r)
		return status, text
	}
	token := f.sign(good)
	for range 2 {
		if status, text := ask(token); status != http.StatusOK || !strings.HasPrefix(text, "job repo:acme/platform of 127.0.0.1:") || !strings.HasSuffix(text, ", viewer of prod") {
			t.Errorf("a job: %d %s", status, text)
		}
	}
	if got := h.audit(); len(got) != 1 || !strings.Contains(got[0], "CI token "+f.URL+" viewer") {
		t.Errorf("the audit has %q", got)
	}
	for name, token := range map[string]string{
		"wrong audience":     f.sign(with(good, map[string]any{"aud": "sigstore"})),
		"another repository": f.sign(with(good, map[string]any{"repository": "evil/platform"})),
		"not protected":      f.sign(with(good, map[string]any{"ref_protected": false})),
		"a claim of objects": f.sign(with(good, map[string]any{"repository": map[string]any{"acme/platform": "acme/platform"}})),
		"expired":            f.sign(with(good, map[string]any{"exp": clock.Add(-time.Second).Unix()})),
		"no end":             f.sign(with(good, map[string]any{"exp": nil})),
		"not yet":            f.sign(with(good, map[string]any{"nbf": clock.Add(time.Hour).Unix()})),
		"another issuer":     f.sign(with(good, map[string]any{"iss": "https://token.actions.githubusercontent.com"})),
		"wrong key":          signed(t, other, jose.RS256, "one", good),
		"unknown key":        signed(t, other, jose.RS256, "two", good),
		"alg none":           unsigned(good),
		"no token":           "a.b.c",
		"a huge one":         token + strings.Repeat("A", maxToken),
		"two tokens":         token + "." + token,
	} {
		if status, text := ask(token); status != http.StatusUnauthorized || text != "unknown" {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	h.write("ci: [{issuer: " + f.URL + ", claims: {repository: acme/other}, role: viewer}]\n")
	if status, _ := ask(token); status != http.StatusUnauthorized {
		t.Errorf("a job without a rule: %d", status)
	}
	h.write("ci:\n  - {issuer: " + f.URL + ", claims: {repository: acme/platform}, role: admin}\n")
	if _, text := ask(token); !strings.HasSuffix(text, ", admin") {
		t.Errorf("a job with another rule: %s", text)
	}
	h.now = clock.Add(time.Hour)
	if status, _ := ask(token); status != http.StatusUnauthorized {
		t.Errorf("a job whose token has expired since: %d", status)
	}
}

// The log has the reason why a job is refused, once, and the audit has the job's name.
func TestJobsRefused(t *testing.T) {
	f := newFake(t)
	h := newHub(t, f, "ci:\n  - {issuer: "+f.URL+"/, claims: {repository: acme/platform, ref: main}, role: viewer}\n")
	good := map[string]any{"iss": f.URL, "aud": Audience, "sub": "repo:acme/\x1b[31mplatform", "repository": "acme/platform", "ref": "main", "exp": clock.Add(10 * time.Minute).Unix()}
	ask := func(token string) error {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		_, err = h.people.Identify(r)
		return err
	}
	if err := ask(f.sign(good)); err != nil {
		t.Errorf("an issuer with a slash at its end: %v", err)
	}
	if got := len(h.audit()); got != 1 {
		t.Errorf("the audit has %q", h.audit())
	}
	job := "(job repo:acme/ [31mplatform of " + strings.TrimPrefix(f.URL, "http://") + ")"
	of := ": a token of the issuer " + f.URL + ": "
	for _, c := range []struct {
		token, want string
		audited     bool
	}{
		{f.sign(with(good, map[string]any{"aud": []string{"sigstore", "\x1bother"}})), job + of + "the audience is sigstore,  other, and must be kalypso-hub", true},
		{f.sign(with(good, map[string]any{"exp": clock.Add(-time.Hour).Unix()})), job + of + "it has expired: get one where it is used", true},
		{f.sign(with(good, map[string]any{"ref": "dev\x1b"})), job + of + "no rule fits: entry 1 of ci wants ref main, and it is dev ", true},
		{f.sign(with(good, map[string]any{"ref": nil})), job + of + "no rule fits: entry 1 of ci wants ref main, and it has none", true},
		{f.sign(with(good, map[string]any{"iss": "https://evil.example"})), ": a token: no rule is about its issuer, https://evil.example", false},
		{signed(t, keys(t)[1], jose.RS256, "one", good), of + "it cannot be verified: failed to verify signature", false},
		{"", ": a token: it is none of an issuer of OpenID Connect, nor of this hub", false},
	} {
		h.problems = nil
		audited := len(h.audit())
		for range 3 {
			if err := ask(c.token); !errors.Is(err, access.ErrUnknown) || err.Error() != access.ErrUnknown.Error() {
				t.Errorf("%s: %v", c.want, err)
			}
		}
		if len(h.problems) != 1 || !strings.HasPrefix(h.problems[0], "a CI job is refused") || !strings.Contains(h.problems[0], c.want) {
			t.Errorf("the log has %q, not %q", h.problems, c.want)
		}
		if got := len(h.audit()) - audited; got == 1 != c.audited || got > 1 {
			t.Errorf("%s: the audit has %d more", c.want, got)
		}
	}
	// Tokens of unknown issuers do not fill the log.
	h.problems = nil
	for i := range 100 {
		_ = ask(f.sign(with(good, map[string]any{"iss": fmt.Sprint("https://evil.example/", i)})))
	}
	if n := len(h.problems); n == 0 || n > sayAtOnce {
		t.Errorf("the log has %d lines", n)
	}
}

// Tokens that cannot be verified make the hub ask the issuer only so often.
func TestJobsLimit(t *testing.T) {
	f := newFake(t)
	h := newHub(t, f, "ci:\n  - {issuer: "+f.URL+", claims: {sub: a}, role: viewer}\n")
	other := keys(t)[1]
	token := signed(t, other, jose.RS256, "two", map[string]any{"iss": f.URL})
	limited := 0
	for range newAtOnce + 50 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		if _, err := h.people.Identify(r); err != nil && strings.Contains(err.Error(), "too often") {
			limited++
		}
	}
	if limited != 50 || f.asked > newAtOnce+1 {
		t.Errorf("%d were refused, and the issuer was asked %d times", limited, f.asked)
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"":           "there is no rule, and nobody would get in: give groups, ci, or both",
		"groups: []": "there is no rule, and nobody would get in: give groups, ci, or both",
		"---\ngroups: [{group: a, role: viewer}]\n": "",
		"# nothing": "there is no rule, and nobody would get in: give groups, ci, or both",
		"groups: [{group: a, role: viewer}]\n---\nci: []":                          "there is more after the first document of YAML: write one document, without ---",
		"ci: [{issuer: 'https://gitlab.com/', claims: {ref: main}, role: viewer}]": "ci: entry 1: its claims do not say whose jobs it lets in, and everybody has jobs at https://gitlab.com: add one of [project_path project_id namespace_path namespace_id sub]",
		`{"groups": [{"group": "a", "role": "admin"}]}`:                            "",
		"groups: [{group: a, role: viewer, env: b}]":                               "yaml: unmarshal errors:\n  line 1: field env not found",
		"groups: [{group: a, role: root}]":                                         `groups: a: there is no role "root" for people and CI: there are viewer, operator and admin`,
		"groups: [{group: a, role: cluster}]":                                      `groups: a: there is no role "cluster" for people and CI: there are viewer, operator and admin`,
		"groups: [{role: viewer}]":                                                 "groups: entry 1 names no group",
		"groups: {a: viewer}":                                                      "yaml: unmarshal errors:\n  line 1: cannot unmarshal !!map",
		"ci: [{issuer: 'http://a.example', claims: {a: b}, role: viewer}]":         "ci: entry 1: the issuer http://a.example: anybody on the way could give keys: use https",
		"ci: [{issuer: 'a', claims: {a: b}, role: viewer}]":                        `ci: entry 1: "a" is no address of an issuer, such as https://login.example.com`,
		"ci: [{issuer: 'https://a.example', role: viewer}]":                        "ci: entry 1: it has no claims, and would let in every job of https://a.example",
		"ci: [{issuer: 'https://token.actions.githubusercontent.com', claims: {ref: refs/heads/main}, role: viewer}]":      "ci: entry 1: its claims do not say whose jobs it lets in, and everybody has jobs at https://token.actions.githubusercontent.com: add one of [repository repository_id repository_owner repository_owner_id sub]",
		"ci: [{issuer: 'https://token.actions.githubusercontent.com', claims: {repository: acme/platform}, role: viewer}]": "",
	} {
		_, err := Parse([]byte(text))
		if got := messageOf(err); got != want {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
	}
}

// Invalid rules do not replace the former ones, and the log reports this once.
func TestRulesOfBefore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "roles.yaml")
	var said []string
	at := clock
	write := func(text string) {
		t.Helper()
		at = at.Add(time.Second)
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	write("groups: [{group: a, role: viewer, environment: prdo}]")
	f, err := Open(path, func(err error) { said = append(said, err.Error()) })
	if err != nil {
		t.Fatal(err)
	}
	holds := func(what, group string, words ...string) {
		t.Helper()
		for range 2 {
			if got := f.Rules().Groups[0].Group; got != group {
				t.Errorf("%s: the rule is about %s", what, got)
			}
		}
		if !slices.EqualFunc(said, words, strings.Contains) {
			t.Errorf("%s: the log has %q", what, said)
		}
		said = nil
	}
	holds("at first", "a")
	write("")
	holds("an empty file", "a", "the rules of before hold: "+path+": there is no rule")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	holds("moved away", "a", "the rules of before hold: stat "+path+": no such file")
	write("groups: [{group: b, role: viewer, environment: prod}]\n---\n")
	holds("two documents", "a", "more after the first document")
	write("groups: [{group: b, role: viewer, environment: prod}]\n")
	holds("well again", "b")
	write("{")
	holds("broken", "b", "the rules of before hold")

	rules := &Rules{Groups: []Group{{Environment: "prdo"}, {}}, CI: []CI{{Environment: "prod"}}}
	for range 2 {
		f.warn(rules, nil)
		f.warn(rules, []string{"dev", "prod"})
	}
	if len(said) != 1 || said[0] != path+": warning: the platform has no environment prdo, or its branch was not read yet: there are dev, prod" {
		t.Errorf("the log has %q", said)
	}
}

func messageOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// All hubs of a database use the key that the first one has created.
func TestSlowPostgres(t *testing.T) {
	isolated.Slow(t, "needs PostgreSQL")
	name := hubtest.Postgres(t)()
	for _, otherwise := range []string{"first", "second"} {
		if key, err := hubtest.Open(t, name).Secret(t.Context(), "session", otherwise); key != "first" || err != nil {
			t.Errorf("the key is %q, %v", key, err)
		}
	}
}
