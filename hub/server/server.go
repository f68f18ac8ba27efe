// Package server answers requests to a hub. It serves the API, described as OpenAPI 3.1 at
// /openapi.json, the webhooks of reconcilers, and the pages of its options.
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/kalypso-io/kalypso/hub"
	"github.com/kalypso-io/kalypso/hub/access"
	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/metrics"
	"github.com/kalypso-io/kalypso/hub/state"
)

// Options configure a server.
type Options struct {
	Hub *hub.Hub
	// Tokens decides which actions a client may perform. If it is nil, every client may perform all
	// actions, and the server accepts only requests from this machine.
	Tokens *access.Tokens
	// People identifies the sender of a browser's or a CI system's request without a token of the
	// hub. It is nil if people cannot sign in. It returns nil if it does not know the sender.
	People func(*http.Request) (*access.Identity, error)
	// Pages serves people. SignIn handles the paths below /sign-in/. Both may be nil.
	Pages, SignIn http.Handler
	// Secrets are the keys of webhooks, by sender: flux, argocd, forge.
	Secrets map[string][]string
	// The server calls Moved when a forge reports that a branch has moved.
	Moved func()
	// Problem explains why the wanted state of an environment may be out of date. For "" it
	// explains this for all environments. It returns "" if there is no reason.
	Problem func(environment string) string
	Version string
	// WantedAt returns when the wanted state was last read. It is nil if that time is not known.
	WantedAt func() time.Time
	// Beat is how long a stream of events may stay silent before it sends a comment; 0 means 30
	// seconds.
	Beat time.Duration
	// MetricsPerWorkload adds a workload label to the metrics of assignments.
	MetricsPerWorkload bool
}

type server struct {
	Options
	api    huma.API
	meters *metrics.Metrics
	load   *load
}

// New returns the handler of a server.
func New(o Options) http.Handler {
	s := &server{Options: o, load: newLoad()}
	if s.Problem == nil {
		s.Problem = func(string) string { return "" }
	}
	s.Beat = cmp.Or(s.Beat, 30*time.Second)
	s.meters = metrics.New(o.Hub, o.WantedAt, o.MetricsPerWorkload)
	mux := http.NewServeMux()
	s.describe(mux)
	mux.HandleFunc("GET /healthz",
		func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", s.ready)
	mux.HandleFunc("GET /metrics", s.metrics)
	if o.SignIn != nil {
		mux.Handle("/sign-in/", o.SignIn)
	}
	if o.Pages != nil {
		mux.Handle("/", o.Pages)
	}
	return s.guard(s.described(mux))
}

// describe registers the API.
func (s *server) describe(mux *http.ServeMux) {
	config := huma.DefaultConfig("Kalypso hub", s.Version)
	config.DocsPath, config.SchemasPath = "", ""
	config.CreateHooks = nil // no links to schemas in answers
	config.Transformers = append(config.Transformers, shortErrors)
	config.Info.Description = "What is wanted of clusters, and what was observed of them."
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{"token": {Type: "http",
		Scheme: "bearer"}}
	config.Security = []map[string][]string{{"token": {}}}
	s.api = humago.New(mux, config)
	s.observed()
	s.questions()
	s.performance()
	administration{s}.register()
	s.streams(mux)
	receiver{s}.register(mux)
}

// maxEcho limits the bytes of a value that an error repeats.
const maxEcho = 200

// shortErrors removes long values from errors, so that the hub does not echo megabytes.
func shortErrors(_ huma.Context, _ string, v any) (any, error) {
	if e, is := v.(*huma.ErrorModel); is {
		for _, d := range e.Errors {
			if text, is := d.Value.(string); !is || len(text) > maxEcho {
				d.Value = nil
			}
		}
	}
	return v, nil
}

// OpenAPI returns the description of the API, as YAML.
func OpenAPI(version string) ([]byte, error) {
	s := &server{Options: Options{Version: version}}
	s.describe(http.NewServeMux())
	return s.api.OpenAPI().YAML()
}

// who returns the identity of the caller, or nil if it is not known.
func who(ctx context.Context) *access.Identity { return access.From(ctx) }

// maxBody limits a request's body.
const maxBody = 10 << 20

// open reports whether a request needs no identity: signed reports, webhooks, the sign-in, checks
// of health, and the description of the API.
func open(r *http.Request) bool {
	path := r.URL.Path
	return path == "/v1/reports" && r.Header.Get(api.SignatureHeader) != "" || path == "/healthz" ||
		path == "/readyz" || strings.HasPrefix(path, "/v1/ingest/") ||
		strings.HasPrefix(path, "/sign-in/") || path == "/openapi.json" || path == "/openapi.yaml"
}

// guard identifies the caller, and sets the headers of all answers.
func (s *server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("X-Frame-Options", "DENY")
		if r.TLS != nil {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		identity, err := s.identify(r)
		elsewhere := (*notLocalError)(nil)
		switch {
		case errors.As(err, &elsewhere):
			problem(w, http.StatusForbidden, err.Error())
			return
		case errors.Is(err, access.ErrTooMany):
			h.Set("Retry-After", "1")
			problem(w, http.StatusTooManyRequests, err.Error())
			return
		case errors.Is(err, access.ErrUnknown):
			h.Set("WWW-Authenticate", "Bearer")
			problem(w, http.StatusUnauthorized, err.Error())
			return
		case err != nil:
			problem(w, http.StatusServiceUnavailable, "who asks cannot be found out now")
			return
		case identity == nil && !open(r):
			s.refuse(w, r)
			return
		}
		if identity == nil {
			body := &webhook{ReadCloser: http.MaxBytesReader(w, r.Body, maxWebhook), load: s.load}
			defer body.done()
			r.Body = body
			next.ServeHTTP(w, r)
			return
		}
		most, bytes := maxRequests, r.ContentLength
		if identity.Cluster != "" {
			most = maxClusterRequests
		}
		if bytes < 0 || bytes > maxBody {
			bytes = maxBody
		}
		done, ok := s.load.begin(identity.Name, most, bytes)
		if !ok {
			h.Set("Retry-After", "5")
			problem(w, http.StatusTooManyRequests,
				"too many requests, or too large ones, are under way at once")
			return
		}
		defer done()
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		next.ServeHTTP(w, r.WithContext(access.With(r.Context(), identity)))
	})
}

// refuse answers callers without an identity. It sends people to the sign-in.
func (s *server) refuse(w http.ResponseWriter, r *http.Request) {
	signIn := "/sign-in/"
	if r.Method == http.MethodGet {
		signIn += "?" + url.Values{"to": {r.URL.RequestURI()}}.Encode()
	}
	switch {
	case s.SignIn == nil || strings.HasPrefix(r.URL.Path, "/v1/"):
	case r.Header.Get("HX-Request") != "": // a script of the page asks, and htmx follows this header
		w.Header().Set("HX-Redirect", signIn)
	case strings.Contains(r.Header.Get("Accept"), "text/html"):
		http.Redirect(w, r, signIn, http.StatusSeeOther)
		return
	}
	w.Header().Set("WWW-Authenticate", "Bearer")
	problem(w, http.StatusUnauthorized,
		"say who you are, by a token: Authorization: Bearer kalypso_...")
}

func (s *server) identify(r *http.Request) (*access.Identity, error) {
	if s.Tokens == nil {
		if why := notLocal(r); why != "" {
			if open(r) {
				return nil, nil
			}
			return nil, &notLocalError{why}
		}
		return access.Local(), nil
	}
	if text, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok &&
		strings.HasPrefix(text, "kalypso_") {
		return s.Tokens.Identify(r.Context(), strings.TrimSpace(text))
	}
	if s.People != nil {
		return s.People(r)
	}
	return nil, nil
}

// notLocalError is the error for a request that does not come from a user of this machine.
type notLocalError struct{ why string }

// Error returns the reason of the refusal.
func (e *notLocalError) Error() string {
	return "this hub runs with --local, for who sits at its machine alone: " + e.why +
		"; without --local, it takes tokens from anywhere"
}

// notLocal explains why a request is not from this machine, or was not meant for it. It returns ""
// if the request is local. A page on another host may resolve its name to this machine, and a proxy
// on this machine sends the requests of others.
func notLocal(r *http.Request) string {
	from, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil || !net.ParseIP(from).IsLoopback() {
		return "the request comes from another one"
	}
	for name := range r.Header {
		if name == "Forwarded" || name == "Via" || name == "X-Real-Ip" ||
			strings.HasPrefix(name, "X-Forwarded-") {
			return "the request comes through a proxy, as its header " + name + " says"
		}
	}
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	if host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return "the request is for another name than localhost and 127.0.0.1"
	}
	if cross.Check(r) != nil {
		return "a page of another site has sent the request"
	}
	return ""
}

// cross refuses requests from pages of another origin, even from another port of this machine.
var cross http.CrossOriginProtection

// problem answers with an error in the format of RFC 9457.
func problem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "{\"title\":%q,\"status\":%d,\"detail\":%s}\n", http.StatusText(status),
		status, quote(detail))
}

func (s *server) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
	defer cancel()
	if err := s.Hub.Store().Ping(ctx); err != nil {
		problem(w, http.StatusServiceUnavailable, "the database does not answer")
		return
	}
	if err := s.Hub.Unwritable(); err != nil {
		problem(w, http.StatusServiceUnavailable,
			"nothing can be written, and reports are refused: "+err.Error())
		return
	}
	_, _ = fmt.Fprintln(w, "ok")
}

// audit adds an action of the caller to the audit.
func (s *server) audit(ctx context.Context, action, subject, detail string) error {
	name := "nobody"
	if i := who(ctx); i != nil {
		name = i.Name
	}
	return s.Hub.Store().Audit(ctx,
		api.Event{At: s.Hub.Now(), Who: name, Action: action, Subject: subject, Detail: detail})
}

// allow returns an error if the caller does not have a role.
func allow(ctx context.Context, role access.Role) (*access.Identity, error) {
	i := who(ctx)
	if i == nil {
		return nil, huma.Error401Unauthorized("say who you are")
	}
	if !i.May(role) {
		return nil, huma.Error403Forbidden(
			fmt.Sprintf("%s has the role %s, and this needs %s", i.Name, i.Roles(), role))
	}
	return i, nil
}

// sees is allow for a viewer of environments, with commas between their names. If the list is
// empty, sees returns the environments of the caller. If it has several names, each must exist.
func (s *server) sees(ctx context.Context, environments string) (state.Environments, error) {
	i, err := allow(ctx, access.Viewer)
	if err != nil {
		return nil, err
	}
	if environments == "" {
		return i.Scope(access.Viewer), nil
	}
	names := strings.Split(environments, ",")
	for _, name := range names {
		if !i.Sees(name) {
			return nil, huma.Error403Forbidden(fmt.Sprintf("%s may not see environment %s", i.Name, name))
		}
	}
	if len(names) > 1 {
		err = s.environment(ctx, environments)
	}
	return names, err
}

// The limits of simultaneous requests: their number for one caller, and the bytes of bodies, for
// one caller and for all. The decoded form of a body takes several times as much memory.
const (
	maxRequests        = 1000
	maxClusterRequests = 20 // of a token for one cluster
	maxBytes           = 16 << 20
	maxBytesOfAll      = 48 << 20
	// The sender of a webhook is not known until the whole body is read.
	maxWebhook      = 2 << 20
	maxWebhookBytes = 32 << 20
)

// load counts the requests in progress. Any number of goroutines may use it.
type load struct {
	mu       sync.Mutex
	requests map[string]int   // by the name of the caller
	bytes    map[string]int64 // of their bodies
	all      int64
	webhooks int64
}

func newLoad() *load { return &load{requests: map[string]int{}, bytes: map[string]int64{}} }

// begin begins a request with a body of so many bytes. done ends it. begin returns false if there
// are too many requests or bytes.
func (l *load) begin(who string, most int, bytes int64) (done func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.requests[who] >= most || bytes > 0 &&
		(l.bytes[who]+bytes > maxBytes || l.all+bytes > maxBytesOfAll) {
		return nil, false
	}
	l.requests[who]++
	l.bytes[who] += bytes
	l.all += bytes
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all -= bytes
		if l.bytes[who] -= bytes; l.bytes[who] == 0 {
			delete(l.bytes, who)
		}
		if l.requests[who]--; l.requests[who] == 0 {
			delete(l.requests, who)
		}
	}, true
}

var errWebhooks = errors.New("too many webhooks are sent at once")

// webhook reads the body of a webhook, whose sender is not known yet. The limit counts the bytes
// that have arrived, not the announced length. A sender without any data therefore does not block
// the others.
type webhook struct {
	io.ReadCloser
	load  *load
	taken int64
}

func (w *webhook) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	w.load.mu.Lock()
	defer w.load.mu.Unlock()
	if w.load.webhooks+int64(n) > maxWebhookBytes {
		return 0, errWebhooks
	}
	w.load.webhooks += int64(n)
	w.taken += int64(n)
	return n, err
}

func (w *webhook) done() {
	w.load.mu.Lock()
	defer w.load.mu.Unlock()
	w.load.webhooks -= w.taken
	w.taken = 0
}
