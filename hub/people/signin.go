package people

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// signIn is a sign-in in progress. It is valid for a while, and only once.
type signIn struct {
	State    string `json:"s"`
	Nonce    string `json:"n"`
	Verifier string `json:"v"` // of PKCE
	To       string `json:"t"` // the requested page
}

const signInLife = 10 * time.Minute

// Handler handles the paths below /sign-in/.
func (p *People) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /sign-in/{$}", p.begin)
	mux.HandleFunc("GET /sign-in/callback", p.end)
	mux.HandleFunc("GET /sign-in/out", p.ask)
	mux.HandleFunc("POST /sign-in/out", p.signOut)
	return mux
}

// config returns the client of the issuer.
func (p *People) config(provider *oidc.Provider) *oauth2.Config {
	scopes := []string{oidc.ScopeOpenID, "profile", "email"}
	var says struct {
		Scopes []string `json:"scopes_supported"`
	}
	if provider.Claims(&says) == nil && slices.Contains(says.Scopes, "groups") {
		scopes = append(scopes, "groups")
	}
	return &oauth2.Config{ClientID: p.ClientID, ClientSecret: p.ClientSecret,
		Endpoint: provider.Endpoint(), RedirectURL: p.URL + "/sign-in/callback", Scopes: scopes}
}

// begin redirects a person to the issuer.
func (p *People) begin(w http.ResponseWriter, r *http.Request) {
	provider, err := p.issuer.get(r.Context())
	if err != nil {
		p.unreachable(w)
		return
	}
	s := signIn{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(),
		To: inside(r.URL.Query().Get("to"))}
	if err := p.jar.set(w, signInCookie, s, signInLife); err != nil {
		p.failed(w, err)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, p.config(provider).AuthCodeURL(s.State, oidc.Nonce(s.Nonce),
		oauth2.S256ChallengeOption(s.Verifier)), http.StatusSeeOther)
}

// inside returns a path of this hub. It returns / for any other address, such as the address of
// another server.
func inside(to string) string {
	u, err := url.Parse(to)
	if err != nil || len(to) > 1000 || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") ||
		strings.ContainsAny(to, "\\\r\n\t") ||
		u.IsAbs() || u.Host != "" || u.User != nil || strings.HasPrefix(u.Path, "//") ||
		strings.HasPrefix(u.Path, "/sign-in/") {
		return "/"
	}
	return to
}

// end receives a person from the issuer.
func (p *People) end(w http.ResponseWriter, r *http.Request) {
	var s signIn
	begun := p.jar.get(r, signInCookie, &s)
	p.jar.clear(w, signInCookie)
	q := r.URL.Query()
	if !begun || subtle.ConstantTimeCompare([]byte(s.State), []byte(q.Get("state"))) == 0 {
		p.answerExpired(w)
		return
	}
	again := "/sign-in/?" + url.Values{"to": {s.To}}.Encode()
	if code := q.Get("error"); code != "" {
		p.page(w, http.StatusForbidden, "Not signed in", fmt.Sprintf("%s says: %s", p.Issuer,
			line(code+" "+q.Get("error_description"), 300)), again, "Sign in")
		return
	}
	who, groups, subject, err := p.exchange(r.Context(), q.Get("code"), &s)
	if unreachable := (*unreachableError)(nil); errors.As(err, &unreachable) {
		p.unreachable(w)
		return
	}
	if err != nil {
		p.Problem(fmt.Errorf("a sign-in failed: %w", err))
		p.page(w, http.StatusForbidden, "Not signed in",
			"The answer of "+p.Issuer+" cannot be trusted. The hub's log has the reason.", again, "Sign in")
		return
	}
	// Somebody may have kept the cookie, and have a second code. The database is written only now,
	// so that only people from the issuer can make the hub write.
	first, err := p.ended.end(r.Context(), s.State, p.Now().Add(signInLife))
	if err != nil {
		p.failed(w, err)
		return
	}
	if !first {
		p.answerExpired(w)
		return
	}
	rules := p.Rules.Rules()
	groups = rules.namedGroups(groups)
	identity := rules.identityOf(who, groups)
	if identity == nil {
		if err := p.audit(r.Context(), who, "sign-in refused", subject,
			"no group has a role"); err != nil {
			p.failed(w, err)
			return
		}
		p.page(w, http.StatusForbidden, "No role",
			fmt.Sprintf("You are %s, and none of your groups has a role here. Ask the people who "+
				"run this hub.", strings.TrimPrefix(who, person)), again, "Sign in again")
		return
	}
	if err := errors.Join(p.audit(r.Context(), who, "sign in", subject, identity.Roles()),
		p.jar.set(w, sessionCookie, session{rand.Text(), p.Now().Add(p.Session), who, groups},
			p.Session)); err != nil {
		p.failed(w, err)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, inside(s.To), http.StatusSeeOther)
}

// exchange returns the person that the issuer names.
func (p *People) exchange(ctx context.Context, code string, s *signIn) (who string, groups []string,
	subject string, err error) {
	provider, err := p.issuer.get(ctx)
	if err != nil {
		return "", nil, "", &unreachableError{err}
	}
	ctx = p.issuer.requestContext(ctx)
	token, err := p.config(provider).Exchange(ctx, code, oauth2.VerifierOption(s.Verifier))
	if err != nil {
		// The rest of the issuer's answer may contain secrets.
		if refused := (*oauth2.RetrieveError)(nil); errors.As(err, &refused) {
			err = fmt.Errorf("%s %s", refused.Response.Status, line(refused.ErrorCode, 100))
		} else {
			err = short(err)
		}
		return "", nil, "", fmt.Errorf("the issuer gives no token: %w", err)
	}
	raw, is := token.Extra("id_token").(string)
	if !is {
		return "", nil, "", errors.New("the issuer gave no ID token")
	}
	verified, claims, err := p.issuer.verify(ctx, raw, p.ClientID)
	if err != nil {
		return "", nil, "", err
	}
	if subtle.ConstantTimeCompare([]byte(verified.Nonce), []byte(s.Nonce)) == 0 {
		return "", nil, "", errors.New("the ID token is for another sign-in: its nonce differs")
	}
	if verified.Subject == "" {
		return "", nil, "", errors.New("the ID token names nobody: it has no sub")
	}
	if find(claims, p.GroupsClaim) == nil && provider.UserInfoEndpoint() != "" {
		more, err := provider.UserInfo(ctx, oauth2.StaticTokenSource(token))
		if err != nil {
			return "", nil, "", fmt.Errorf("the ID token has no claim %s, and the issuer does not say "+
				"more: %w", p.GroupsClaim, short(err))
		}
		if more.Subject != verified.Subject {
			return "", nil, "",
				errors.New("the issuer answers about somebody else than it gave the token to")
		}
		if err := more.Claims(&claims); err != nil {
			return "", nil, "", err
		}
	}
	return nameOf(claims, verified.Subject), valuesOf(find(claims, p.GroupsClaim)), verified.Subject,
		nil
}

// person is the prefix of people's names, so that they differ from the names of tokens and jobs.
const person = "person "

// nameOf returns the name of a person in the audit. Anybody can enter an address that was not
// verified, so it counts no more than a name.
func nameOf(claims map[string]any, subject string) string {
	for _, name := range []string{"email", "preferred_username"} {
		if text, is := claims[name].(string); is && text != "" &&
			(name != "email" || claims["email_verified"] != false) {
			return person + line(text, 100)
		}
	}
	return person + line(subject, 100)
}

// find returns the claim with a name, or with a path with dots, as realm_access.roles.
func find(claims map[string]any, name string) any {
	if claim := claims[name]; claim != nil {
		return claim
	}
	first, rest, nested := strings.Cut(name, ".")
	if inner, is := claims[first].(map[string]any); is && nested {
		return find(inner, rest)
	}
	return nil
}

// ask asks a person to confirm the sign-out, because a link on another site must not sign anybody
// out.
func (p *People) ask(w http.ResponseWriter, r *http.Request) {
	s, err := p.session(r)
	if err != nil {
		p.failed(w, err)
		return
	}
	if s == nil {
		p.page(w, http.StatusOK, "Signed out", "You are not signed in.", "/sign-in/", "Sign in")
		return
	}
	p.write(w, http.StatusOK,
		content{"Sign out", "You are " + strings.TrimPrefix(s.Name, person) + ".",
			"/sign-in/out", "Sign out", true})
}

// signOut ends a session, for this browser and for all copies of its cookie.
func (p *People) signOut(w http.ResponseWriter, r *http.Request) {
	if p.cross.Check(r) != nil {
		p.page(w, http.StatusForbidden, "Not signed out", "Another site's page asked for it.",
			"/sign-in/out", "Sign out")
		return
	}
	s, err := p.session(r)
	if s != nil {
		_, err = p.ended.end(r.Context(), s.ID, s.Until)
		err = errors.Join(err, p.audit(r.Context(), s.Name, "sign out", "", ""))
	}
	if err != nil {
		p.failed(w, err)
		return
	}
	p.jar.clear(w, sessionCookie)
	p.page(w, http.StatusOK, "Signed out",
		"You are signed out of this hub. "+p.Issuer+" may still know you.", "/sign-in/", "Sign in")
}

// style is the style sheet of the pages, with the colors of all pages. It is inline, because only a
// signed-in person may load other files.
const style = `:root{color-scheme:light dark}body{background:#fff;color:#17202b;font:1rem/1.5 system-ui,sans-serif;max-width:36rem;margin:15vh auto;padding:0 1rem;overflow-wrap:anywhere}` +
	`a{color:#0b57b5}a,button{font:inherit}@media (prefers-color-scheme:dark){body{background:#12171d;color:#e8edf3}a{color:#86b7ff}}`

var document = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Title}}</title>
<style>` + style + `</style>
</head>
<body>
<main>
<h1>{{.Title}}</h1>
<p>{{.Text}}</p>
{{if .Form}}<form method="post" action="{{.Link}}"><button>{{.Label}}</button></form>
<p><a href="/">Back</a></p>{{else}}<p><a href="{{.Link}}">{{.Label}}</a></p>{{end}}
</main>
</body>
</html>
`))

// policy allows a page to use its style, and to send its form to this hub.
var policy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
}()

type content struct {
	Title, Text, Link, Label string
	Form                     bool
}

// page answers with a text and a link.
func (p *People) page(w http.ResponseWriter, status int, title, text, link, label string) {
	p.write(w, status, content{title, text, link, label, false})
}

func (p *People) write(w http.ResponseWriter, status int, c content) {
	var b bytes.Buffer
	if err := document.Execute(&b, c); err != nil {
		p.failed(w, err)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy)
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes())
}

// answerExpired answers that a sign-in is no longer valid, or was used before.
func (p *People) answerExpired(w http.ResponseWriter) {
	const text = "This sign-in was not begun in this browser, or took more than ten minutes, or was " +
		"done before."
	p.page(w, http.StatusBadRequest, "Not signed in", text, "/sign-in/", "Sign in")
}

// unreachable answers that the issuer does not answer.
func (p *People) unreachable(w http.ResponseWriter) {
	p.page(w, http.StatusServiceUnavailable, "Nobody can sign in now",
		p.Issuer+" does not answer as it should. The hub's log has the reason.", "/sign-in/", "Try again")
}

// failed answers that the hub itself has failed.
func (p *People) failed(w http.ResponseWriter, err error) {
	p.Problem(fmt.Errorf("a sign-in failed: %w", err))
	http.Error(w, "the sign-in could not be kept: try again", http.StatusServiceUnavailable)
}
