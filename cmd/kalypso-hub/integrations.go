package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/hub"
	"github.com/kalypso-io/kalypso/hub/notify"
	"github.com/kalypso-io/kalypso/hub/people"
	"github.com/kalypso-io/kalypso/hub/store"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/forges"
)

// peopleOptions are the flags for access of people and CI jobs without tokens of the hub.
type peopleOptions struct {
	issuer, client, secret, groups, rules, key string
	session                                    time.Duration
}

func (o *peopleOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.issuer, "oidc-issuer", "", "where people sign in by OpenID Connect, a `URL`; it "+
		"needs --url, --oidc-client-id and --oidc-roles")
	f.StringVar(&o.client, "oidc-client-id", "", "the hub's `ID` at that issuer")
	f.StringVar(&o.secret, "oidc-client-secret-file", "", "the `FILE` of the hub's secret at that "+
		"issuer (default: none, which issuers allow for public clients)")
	f.StringVar(&o.groups, "oidc-groups-claim", "groups", "the `CLAIM` that has a person's groups; "+
		"realm_access.roles is one in another")
	f.StringVar(&o.rules, "oidc-roles", "", "a `FILE` that says which groups and which CI jobs have "+
		"which role; it is read again when it changes")
	f.DurationVar(&o.session, "oidc-session", time.Hour, "how long a sign-in holds; then the issuer "+
		"is asked again, also for groups")
	f.StringVar(&o.key, "session-key", "", "the `FILE` of a key that encrypts sessions, of at least "+
		"32 characters (default: one that is kept in the database)")
}

func (o *peopleOptions) check(local bool, url string) error {
	switch {
	case o.issuer == "" && o.rules == "":
		if o.client != "" || o.secret != "" || o.key != "" {
			return errors.New(
				"--oidc-client-id, --oidc-client-secret-file and --session-key go with --oidc-issuer")
		}
	case local:
		return errors.New(
			"with --local, everybody on this machine gets in: leave it out, or --oidc-issuer and " +
				"--oidc-roles")
	case o.rules == "":
		return errors.New(
			"--oidc-issuer needs --oidc-roles: without a role, nobody who signs in may do anything")
	case o.issuer != "" && o.client == "":
		return errors.New("--oidc-issuer needs --oidc-client-id")
	case o.issuer != "" && url == "":
		return errors.New(
			"--oidc-issuer needs --url, this hub's own address: the issuer sends people back to it")
	case o.session < time.Minute || o.session > 24*time.Hour:
		return fmt.Errorf("--oidc-session %s: a sign-in holds between a minute and a day, so that "+
			"groups are asked for again", o.session)
	}
	return nil
}

// open returns the object that authenticates people and CI jobs. It returns nil if no rules are
// configured.
func (o *peopleOptions) open(ctx context.Context, db *store.Store, url string,
	problem func(error)) (*people.People, error) {
	if o.rules == "" {
		return nil, nil
	}
	rules, err := people.Open(o.rules, problem)
	if err != nil {
		return nil, fmt.Errorf("--oidc-roles: %w", err)
	}
	secret, err := secretIn(o.secret, "--oidc-client-secret-file", 1)
	if err != nil {
		return nil, err
	}
	key, err := secretIn(o.key, "--session-key", 32)
	if err != nil {
		return nil, err
	}
	p, err := people.New(ctx, people.Options{
		Store: db, Rules: rules, URL: url, Issuer: o.issuer, ClientID: o.client, ClientSecret: secret,
		GroupsClaim: o.groups,
		Session:     o.session, Key: key, Now: time.Now, Problem: problem,
	})
	if err == nil {
		go rules.Follow(ctx, db.Environments)
	}
	return p, err
}

// secretIn returns the contents of the file that a flag names, without surrounding space. It
// returns "" if no file is given, and an error if the text has fewer than least characters.
func secretIn(file, flag string, least int) (string, error) {
	if file == "" {
		return "", nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("%s: %w", flag, err)
	}
	text := strings.TrimSpace(string(data))
	if len(text) < least {
		return "", fmt.Errorf("%s %s: it has %d characters, and needs %d", flag, file, len(text), least)
	}
	return text, nil
}

// notifyOptions are the flags for the hub's notifications.
type notifyOptions struct {
	file     string
	statuses bool
	targets  []*notify.Target
}

func (o *notifyOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.file, "notify", "", "a `FILE` that lists webhooks and chats to tell of "+
		"promotions, failures, drift and stale clusters")
	f.BoolVar(&o.statuses, "forge-status", false, "show rollouts on the forge, as statuses of "+
		"commits and as a comment on their change requests; it needs the token of kalypso promote")
}

// check reads the file.
func (o *notifyOptions) check() error {
	if o.file == "" {
		return nil
	}
	data, err := os.ReadFile(o.file)
	if err != nil {
		return fmt.Errorf("--notify: %w", err)
	}
	if o.targets, err = notify.Parse(data); err != nil {
		return fmt.Errorf("--notify %s: %w", o.file, err)
	}
	return nil
}

// start sends notifications until the context ends.
func (o *notifyOptions) start(ctx context.Context, h *hub.Hub, url, kind string,
	problem func(error)) {
	if len(o.targets) > 0 {
		go notify.New(h, o.targets, url, problem).Run(ctx)
	}
	if o.statuses {
		open := func(ctx context.Context, repository string) (forge.Forge, error) {
			return forges.Open(ctx, repository, kind)
		}
		go notify.NewStatuses(h, open, url, problem).Run(ctx)
	}
}
