// Package people identifies people in a browser and CI jobs, by OpenID Connect. People sign in at
// an issuer, and have a session in a cookie. A job sends the token of its CI system. A file of
// rules assigns their roles.
package people

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/hub/access"
	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/store"
	"github.com/kalypso-io/kalypso/internal/terminal"
)

// Options configure People.
type Options struct {
	Store *store.Store
	Rules *File
	// URL is the hub's own address, as browsers use it. Issuer is where people sign in, with this
	// client id and secret. If Issuer is "", people cannot sign in, and the hub identifies only CI
	// jobs.
	URL                            string
	Issuer, ClientID, ClientSecret string
	GroupsClaim                    string        // the claim with a person's groups
	Session                        time.Duration // how long a session is valid
	// Key encrypts sessions; "" means a key that all hubs of the database share.
	Key     string
	Now     func() time.Time
	Problem func(error)
}

// People identifies the senders of requests. Any number of goroutines may use it.
type People struct {
	Options
	jar    *jar
	issuer *issuer // of people; nil if people cannot sign in
	jobs   *jobs
	ended  *endedSessions
	cross  *http.CrossOriginProtection
}

// New returns People. It does not contact an issuer yet.
func New(ctx context.Context, o Options) (*People, error) {
	p := &People{Options: o, cross: http.NewCrossOriginProtection(),
		ended: &endedSessions{store: o.Store, now: o.Now}}
	client := newClient()
	p.jobs = newJobs(o, client)
	if o.Issuer == "" {
		return p, nil
	}
	if err := checkIssuer(o.Issuer); err != nil {
		return nil, err
	}
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.Path != "" &&
		u.Path != "/" || u.RawQuery != "" || u.User != nil {
		return nil, fmt.Errorf("%q is no address of this hub, such as https://hub.example.com", o.URL)
	}
	if o.ClientID == "" {
		return nil, errors.New("people sign in as users of a client of the issuer, and its id is missing")
	}
	if err := p.cross.AddTrustedOrigin(u.Scheme + "://" + u.Host); err != nil {
		return nil, err
	}
	p.URL = u.Scheme + "://" + u.Host
	p.issuer = &issuer{address: o.Issuer, client: client, now: o.Now, problem: o.Problem}
	if p.Key == "" {
		if p.Key, err = o.Store.Secret(ctx, "session", rand.Text()+rand.Text()); err != nil {
			return nil, err
		}
	}
	p.jar = newJar(p.Key, o.Issuer+"\x00"+o.ClientID, u.Scheme == "https", o.Now)
	return p, nil
}

// Reach contacts the issuers, so that a problem with one of them is known early.
func (p *People) Reach(ctx context.Context) {
	if p.issuer != nil {
		_, _ = p.issuer.get(ctx) // it reports the error itself
	}
	for address := range p.jobs.addresses() {
		_, _ = p.jobs.issuer(address).get(ctx)
	}
}

// The cookies.
const (
	sessionCookie = "kalypso-session"
	signInCookie  = "kalypso-sign-in"
)

// session is a signed-in person. Groups has only the groups that the rules name.
type session struct {
	ID     string    `json:"i"`
	Until  time.Time `json:"u"`
	Name   string    `json:"n"`
	Groups []string  `json:"g"`
}

// session returns the session of a request, or nil if the request has no valid session.
func (p *People) session(r *http.Request) (*session, error) {
	s := &session{}
	if p.issuer == nil || !p.jar.get(r, sessionCookie, s) || s.ID == "" {
		return nil, nil
	}
	ended, err := p.ended.has(r.Context(), s.ID)
	if ended || err != nil {
		return nil, err
	}
	return s, nil
}

// Identify returns the sender of a request, from its session or from the token of a CI job. It
// returns nil if the sender is not known. The role follows from the current rules.
func (p *People) Identify(r *http.Request) (*access.Identity, error) {
	if token, is := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); is {
		return p.jobs.identify(r.Context(), strings.TrimSpace(token))
	}
	s, err := p.session(r)
	if s == nil {
		return nil, err
	}
	if p.cross.Check(r) != nil { // another site's page sent it, not the person with the session
		return nil, nil
	}
	return p.Rules.Rules().identityOf(s.Name, s.Groups), nil
}

// audit adds an action of a person to the audit.
func (p *People) audit(ctx context.Context, who, action, subject, detail string) error {
	return audit(ctx, p.Store, p.Now(), who, action, subject, detail)
}

func audit(ctx context.Context, in *store.Store, at time.Time, who, action, subject,
	detail string) error {
	return in.Audit(ctx, api.Event{At: at, Who: who, Action: action, Subject: line(subject, 200),
		Detail: line(detail, 200)})
}

// line returns foreign text as one line with a limited number of bytes.
func line(text string, most int) string {
	text = terminal.Line(text)
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}
