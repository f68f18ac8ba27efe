package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/net/netutil"
	"golang.org/x/time/rate"

	"github.com/kalypso-io/kalypso/hub"
	"github.com/kalypso-io/kalypso/hub/access"
	"github.com/kalypso-io/kalypso/hub/follow"
	"github.com/kalypso-io/kalypso/hub/pages"
	"github.com/kalypso-io/kalypso/hub/server"
	"github.com/kalypso-io/kalypso/hub/store"
	"github.com/kalypso-io/kalypso/view"
)

// serveOptions are the flags of serve.
type serveOptions struct {
	platform
	database    string
	listen      string
	local       bool
	staleAfter  time.Duration
	keep        days
	poll        time.Duration
	certificate certificate
	secrets     []string
	url         string
	people      peopleOptions
	notify      notifyOptions
	perWorkload bool
}

// databaseEnv names the database, whose address may have a password in it.
const databaseEnv = "KALYPSO_HUB_DATABASE"

func databaseFlag(cmd *cobra.Command, into *string) {
	cmd.Flags().StringVar(into, "database", "", "the database: a `FILE` for SQLite, or the address "+
		"of a PostgreSQL; an address with a password is better given as "+databaseEnv+
		" (default: hub.db)")
}

func databaseName(given string) string { return cmp.Or(given, os.Getenv(databaseEnv), "hub.db") }

// isNew reports whether the database is a file that does not exist yet.
func isNew(name string) bool {
	_, err := os.Stat(name)
	return !store.IsPostgres(name) && errors.Is(err, fs.ErrNotExist)
}

func openStore(ctx context.Context, given string) (*store.Store, error) {
	name := databaseName(given)
	if err := checkDatabase(name); err != nil {
		return nil, err
	}
	db, err := store.Open(ctx, name)
	if err != nil && !store.IsPostgres(name) { // the address of a PostgreSQL may have a password
		return nil, fmt.Errorf("%w; the file is %s, and --database or %s names another one", err, name,
			databaseEnv)
	}
	return db, err
}

// checkDatabase refuses an address of a database unless it is a PostgreSQL address in the
// documented form. Such a text does not mean a file, and it may contain a password.
func checkDatabase(name string) error {
	if !store.IsPostgres(name) && (strings.Contains(name, "://") || addressWord.MatchString(name)) {
		return fmt.Errorf("the database is a FILE, or the address of a PostgreSQL, "+
			"postgres://USER@HOST/NAME: what --database or %s has is neither", databaseEnv)
	}
	return nil
}

// addressWord matches a part of an address in the form of PostgreSQL's own programs.
var addressWord = regexp.MustCompile(
	`(?i)(^|\s)(host|hostaddr|port|user|password|dbname|service)\s*=`)

func newServe() *cobra.Command {
	o := &serveOptions{keep: days(180 * 24 * time.Hour)}
	cmd := &cobra.Command{
		Use: "serve", Short: "Serve the hub",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("serve takes flags alone, and not %s: --repo names the platform", args[0])
			}
			return nil
		},
		Long: `serve reads what the platform's GitOps branches want, takes reports of what clusters run, and
answers over HTTP: an API, described at /openapi.json, and pages.

With --local, everybody on this machine may do everything, and it listens on the loopback
interface alone. Without it, everybody needs a token: kalypso-hub token makes the first one. With
--oidc-issuer, people sign in, and --oidc-roles says which CI jobs get in by their own tokens.`,
		Example: `  kalypso-hub serve --local --repo ../platform
  kalypso-hub serve --repo https://github.com/acme/platform --listen :8443 --tls-cert tls.crt --tls-key tls.key`,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.flags(cmd)
	databaseFlag(cmd, &o.database)
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:8080", "the `ADDRESS` to listen on")
	f.BoolVar(&o.local, "local", false, "let everybody on this machine do everything")
	f.DurationVar(&o.staleAfter, "stale-after", 5*time.Minute, "how old the news of a cluster may "+
		"be, where the platform does not say")
	f.Var(&o.keep, "keep", "for how many `DAYS` history is kept, as 180d; 0d for always")
	f.DurationVar(&o.poll, "poll", 30*time.Second,
		"how often to look whether a GitOps branch has moved")
	f.StringVar(&o.certificate.cert, "tls-cert", "",
		"the certificate, a `FILE`; it is read again when it changes")
	f.StringVar(&o.certificate.key, "tls-key", "", "its key, a `FILE`")
	f.StringArrayVar(&o.secrets, "webhook-key", nil, "the key that signs webhooks of "+
		alternatives(server.Senders(), "")+", as `KIND=FILE`; again for more, also of one kind")
	f.StringVar(&o.url, "url", "",
		"this hub's own address, as people have it, a `URL` such as https://hub.example.com")
	o.people.flags(cmd)
	o.notify.flags(cmd)
	f.BoolVar(&o.perWorkload, "metrics-per-workload", false, "give metrics of assignments a label "+
		"with the workload: Prometheus keeps a series for each, by ring and state")
	return cmd
}

func (o *serveOptions) run(ctx context.Context) error {
	if err := o.check(); err != nil {
		return err
	}
	if err := o.locate(); err != nil {
		return err
	}
	if err := o.people.check(o.local, o.url); err != nil {
		return err
	}
	if err := o.notify.check(); err != nil {
		return err
	}
	secrets, err := o.keys()
	if err != nil {
		return err
	}
	if _, err := o.bounds.bounds(); err != nil {
		return err
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(hub.CollectorPercent)
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	db, err := openStore(ctx, o.database)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	problem := distinct(time.Minute, time.Now, func(err error) { log.Error(err.Error()) })
	db.OnProblem(problem)
	h, err := hub.Open(ctx, hub.Options{Store: db, StaleAfter: o.staleAfter,
		Grace: max(2*o.poll, leastGrace), Keep: time.Duration(o.keep), Now: time.Now, Problem: problem})
	if err != nil {
		return err
	}
	f := follow.New(follow.Options{Hub: h, Process: o.process, Repository: o.repository,
		Remote: o.remote, Every: o.poll, Problem: problem, Over: func(text string) { log.Info(text) }})
	source, feed := &pages.Source{Hub: h, Title: o.title(), Why: f.Why, Compiled: o.pool()},
		&view.Feed{}
	defer source.Compiled.Close()
	go source.Follow(ctx, feed)
	options := server.Options{Pages: view.ObserverHandler(feed, "/diagnostics", "/changes"), Hub: h,
		Secrets: secrets, Moved: f.Moved, Problem: f.Why, Version: version(), WantedAt: f.Looked,
		MetricsPerWorkload: o.perWorkload}
	if !o.local {
		options.Tokens = access.NewTokens(db, time.Now)
	}
	p, err := o.people.open(ctx, db, o.url, problem)
	if err != nil {
		return err
	}
	if p != nil {
		options.People = p.Identify
		if o.people.issuer != "" {
			options.SignIn = p.Handler()
		}
		go p.Reach(ctx)
	}
	o.notify.start(ctx, h, o.url, o.forge, problem)
	return o.serve(ctx, log, h, f, server.New(options))
}

// leastGrace is the shortest time in which clusters may report a commit before the hub has read
// it.
const leastGrace = time.Minute

// title returns the name of the hub's platform on its pages.
func (o *serveOptions) title() string {
	return strings.TrimSuffix(path.Base(filepath.ToSlash(o.repository)), ".git")
}

func (o *serveOptions) check() error {
	host, _, err := net.SplitHostPort(o.listen)
	if err != nil {
		return fmt.Errorf("--listen %s: %w: write a host and a port, as 127.0.0.1:8080", o.listen, err)
	}
	ip := net.ParseIP(host)
	loopback := host == "localhost" || ip != nil && ip.IsLoopback()
	switch {
	case o.local && !loopback:
		return fmt.Errorf("--local lets everybody in, and --listen %s is open to other machines: "+
			"listen on 127.0.0.1, or leave out --local", o.listen)
	case (o.certificate.cert == "") != (o.certificate.key == ""):
		return errors.New("--tls-cert and --tls-key go together")
	case o.poll < time.Second:
		return fmt.Errorf("--poll %s: look at most once a second", o.poll)
	case o.staleAfter < time.Second:
		return fmt.Errorf("--stale-after %s: news of a cluster is at least a second old", o.staleAfter)
	case o.url != "" && !isAddress(o.url):
		return fmt.Errorf("--url %s: write this hub's own address, as https://hub.example.com", o.url)
	case !loopback && o.certificate.cert == "":
		return fmt.Errorf("--listen %s is open to other machines, which would send their tokens "+
			"unencrypted: give --tls-cert and --tls-key, or listen on 127.0.0.1 behind something that "+
			"ends TLS", o.listen)
	}
	if o.certificate.cert != "" {
		if _, err := o.certificate.get(nil); err != nil {
			return fmt.Errorf("--tls-cert and --tls-key: %w", err)
		}
	}
	return nil
}

// isAddress reports whether a text is the address of a server, without a path.
func isAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" &&
		u.User == nil && strings.Trim(u.Path, "/") == "" && u.RawQuery == "" && u.Fragment == ""
}

// alternatives lists names for people, each with an ending: a, b or c.
func alternatives(names []string, ending string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ending+", ") + ending + " or " + names[last] + ending
}

func (o *serveOptions) keys() (map[string][]string, error) {
	out := map[string][]string{}
	for _, s := range o.secrets {
		kind, file, found := strings.Cut(s, "=")
		if kinds := server.Senders(); !found || !slices.Contains(kinds, kind) {
			return nil, fmt.Errorf("--webhook-key %s: write %s", s, alternatives(kinds, "=FILE"))
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("--webhook-key: %w", err)
		}
		key := strings.TrimSpace(string(data))
		if len(key) < 16 {
			return nil, fmt.Errorf("--webhook-key %s: a key of fewer than 16 characters can be guessed", s)
		}
		out[kind] = append(out[kind], key)
	}
	return out, nil
}

// answerLimit is the longest time that an answer may take. A slow reader cannot use resources for
// longer. A stream ends at this limit too, so that its reader has to authenticate again.
const answerLimit = 10 * time.Minute

// grace is the time that requests have to end.
const grace = 10 * time.Second

func (o *serveOptions) serve(ctx context.Context, log *slog.Logger, h *hub.Hub, f *follow.Follower,
	handler http.Handler) error {
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return fmt.Errorf("%w; --listen names another address, as 127.0.0.1:8081", err)
	}
	s := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute,
		WriteTimeout: answerLimit, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	listener = bounded(s, listener, connections(maxFiles()), func(err error) { log.Warn(err.Error()) })
	scheme := "http"
	if o.certificate.cert != "" {
		scheme = "https"
		listener = tls.NewListener(listener, &tls.Config{MinVersion: tls.VersionTLS12,
			NextProtos: []string{"h2", "http/1.1"}, GetCertificate: o.certificate.get})
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	done := make(chan struct{})
	go func() { h.Run(running); close(done) }()
	go f.Run(ctx)
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(listener) }()
	log.Info("listening", "address", scheme+"://"+listener.Addr().String())
	select {
	case err = <-failed:
	case <-ctx.Done():
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		err = s.Shutdown(end)
	}
	stop()
	<-done // reports that were received are stored
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// certificate reads a certificate again when one of its files changes. If the new files cannot be
// used, it serves the previous certificate.
type certificate struct {
	cert, key string
	// problem is called once for each problem, and solved when the problem is gone.
	problem func(error)
	solved  func(text string)

	mu      sync.Mutex
	changed [2]time.Time // of the files
	is      *tls.Certificate
	said    string // the problem that is known
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.read()
	switch {
	case c.is == nil:
		return nil, err
	case err == nil && c.said != "":
		c.said = ""
		c.solved("the certificate of " + c.cert + " can be used again")
	case err != nil && err.Error() != c.said:
		c.said = err.Error()
		c.problem(fmt.Errorf("--tls-cert and --tls-key: the certificate of before is served: %w", err))
	}
	return c.is, nil
}

// read reads the files if they have changed. It reads files that cannot be used again each time,
// because another process may be writing them.
func (c *certificate) read() error {
	var changed [2]time.Time
	for i, name := range []string{c.cert, c.key} {
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		changed[i] = info.ModTime()
	}
	if c.is != nil && changed == c.changed && c.said == "" {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("%s and %s: %w", c.cert, c.key, err)
	}
	c.is, c.changed = &pair, changed
	return nil
}

// maxConnections is the largest number of open connections of a hub. kalypso observe closes its
// own after each report. Connections that others keep open, for 100,000 clusters at most, take 20
// kB each.
const maxConnections = 120_000

// connections returns the largest number of connections for a program that may have files open
// files. It leaves an eighth of them for the database, and for git.
func connections(files uint64) int { return int(min(maxConnections, files-files/8)) }

// bounded limits the number of open connections. Further connections wait until one ends, and the
// timeouts of the server end idle ones. It calls full when connections start to wait, once a
// minute at most.
func bounded(s *http.Server, listener net.Listener, most int, full func(error)) net.Listener {
	var open atomic.Int64
	warning := rate.Sometimes{Interval: time.Minute}
	s.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			if open.Add(1) >= int64(most) {
				warning.Do(func() {
					full(fmt.Errorf("%d connections are open, and others wait: is there who opens them and says "+
						"nothing? ulimit -n bounds them, to seven eighths and %d at most", most, maxConnections))
				})
			}
		case http.StateClosed, http.StateHijacked:
			open.Add(-1)
		}
	}
	return netutil.LimitListener(listener, most)
}

// days is a flag with a number of days, as 180d.
type days time.Duration

const aDay = 24 * time.Hour

func (d *days) String() string { return fmt.Sprintf("%dd", time.Duration(*d)/aDay) }

func (*days) Type() string { return "days" }

func (d *days) Set(text string) error {
	const most = 36_500
	n, err := strconv.Atoi(strings.TrimSuffix(text, "d"))
	if err != nil || n < 0 || n > most || !strings.HasSuffix(text, "d") {
		return fmt.Errorf("write a number of days up to %d, as 180d", most)
	}
	*d = days(time.Duration(n) * aDay)
	return nil
}

// maxDistinct is the largest number of known errors.
const maxDistinct = 1000

// distinct returns log without errors that it got before, of the same text, within a time: a
// database that does not answer fails each request.
func distinct(every time.Duration, now func() time.Time, log func(error)) func(error) {
	var mu sync.Mutex
	last := map[string]time.Time{}
	return func(err error) {
		mu.Lock()
		defer mu.Unlock()
		text, at := err.Error(), now()
		if since := at.Sub(last[text]); since >= 0 && since < every {
			return
		}
		if len(last) >= maxDistinct {
			clear(last)
		}
		last[text] = at
		log(err)
	}
}
