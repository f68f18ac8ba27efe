package access_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub/access"
	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/hub/store"
	"github.com/kalypso-io/kalypso/internal/testing/hubtest"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

func TestMain(m *testing.M) { isolated.Main(m) }

var cases = []struct {
	name string
	test func(t *testing.T, database func() string)
}{{"expiry", expiry}, {"revoked elsewhere", revokedElsewhere}, {"rotation", rotation}, {"secrets", secrets}, {"used", used}, {"closed", closed}, {"audit", audit}}

func TestSQLite(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.test(t, hubtest.SQLite(t)) })
	}
}

func TestSlowPostgres(t *testing.T) {
	isolated.Slow(t, "needs PostgreSQL")
	database := hubtest.Postgres(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.test(t, database) })
	}
}

// clock is a clock that tests set.
type clock struct{ ns atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.ns.Store(hubtest.Start().UnixNano())
	return c
}

func (c *clock) now() time.Time       { return time.Unix(0, c.ns.Load()).UTC() }
func (c *clock) pass(d time.Duration) { c.ns.Add(int64(d)) }

func newToken(t *testing.T, tokens *access.Tokens, of api.Token) (text, id string) {
	t.Helper()
	made, err := tokens.Make(context.Background(), of)
	if err != nil {
		t.Fatal(err)
	}
	return made.Secret, made.ID
}

func expect(t *testing.T, tokens *access.Tokens, text string, want error) {
	t.Helper()
	i, err := tokens.Identify(context.Background(), text)
	if !errors.Is(err, want) || (i == nil) != (want != nil) {
		t.Errorf("%.20s...: %v, %v, and should be %v", text, i, err, want)
	}
}

// TestRoles checks the permissions of each role.
func TestRoles(t *testing.T) {
	all := []access.Role{access.Cluster, access.Enroll, access.Viewer, access.Operator, access.Admin}
	for role, may := range map[access.Role][]access.Role{
		access.Cluster: {access.Cluster}, access.Enroll: {access.Enroll}, access.Viewer: {access.Viewer},
		access.Operator: {access.Viewer, access.Operator}, access.Admin: {access.Viewer, access.Operator, access.Admin}, "": nil,
	} {
		i := &access.Identity{Grants: []access.Grant{{Role: role}}}
		for _, other := range all {
			want := false
			for _, m := range may {
				want = want || m == other
			}
			if got := i.May(other); got != want {
				t.Errorf("%q may do what %q may: %t, and should be %t", role, other, got, want)
			}
		}
		if scoped := (&access.Identity{Grants: []access.Grant{{Role: role, Environment: "dev"}}}); scoped.Sees("prod") || scoped.Sees("dev") != i.May(access.Viewer) || scoped.Sees("") {
			t.Errorf("%q of dev sees what it should not", role)
		}
	}
}

// TestGrants checks that grants add up by environment.
func TestGrants(t *testing.T) {
	type grants = []access.Grant
	for _, c := range []struct {
		grants          grants
		sees, reports   state.Environments
		roles           string
		audits, mayMake bool
	}{
		{nil, state.Environments{}, state.Environments{}, "", false, false},
		{grants{{access.Viewer, "prod"}, {access.Operator, "dev"}}, state.Environments{"dev", "prod"}, state.Environments{"dev"}, "viewer of prod, operator of dev", false, false},
		{grants{{access.Operator, "dev"}, {access.Viewer, ""}}, nil, state.Environments{"dev"}, "operator of dev, viewer", false, false},
		{grants{{access.Viewer, "dev"}, {access.Operator, "dev"}}, state.Environments{"dev"}, state.Environments{"dev"}, "viewer of dev, operator of dev", false, false},
		{grants{{access.Admin, "dev"}, {access.Viewer, ""}}, nil, state.Environments{"dev"}, "admin of dev, viewer", false, true},
		{grants{{access.Admin, ""}, {access.Viewer, "dev"}}, nil, nil, "admin, viewer of dev", true, true},
		{grants{{access.Cluster, ""}}, state.Environments{}, state.Environments{}, "cluster", false, false},
	} {
		i := &access.Identity{Grants: c.grants}
		if sees, reports := i.Scope(access.Viewer), i.Scope(access.Operator); !reflect.DeepEqual(sees, c.sees) || !reflect.DeepEqual(reports, c.reports) {
			t.Errorf("%v sees %v and reports about %v", c.grants, sees, reports)
		}
		if i.Roles() != c.roles || i.Audits() != c.audits || i.MayIn(access.Admin, "dev") != c.mayMake {
			t.Errorf("%v is %s; it audits: %t", c.grants, i.Roles(), i.Audits())
		}
	}
}

func expiry(t *testing.T, database func() string) {
	c := newClock()
	tokens := access.NewTokens(hubtest.Open(t, database()), c.now)
	text, _ := newToken(t, tokens, api.Token{Role: "viewer", Expires: c.now().Add(time.Hour)})
	expect(t, tokens, text, nil)
	c.pass(time.Hour)
	expect(t, tokens, text, nil)
	c.pass(time.Millisecond)
	expect(t, tokens, text, access.ErrUnknown)
	forever, _ := newToken(t, tokens, api.Token{Role: "viewer"})
	c.pass(10 * 365 * 24 * time.Hour)
	expect(t, tokens, forever, nil)
	for _, wrong := range []string{
		"", "kalypso_", forever + "x", forever[:len(forever)-1], "kalypso_" + strings.Repeat("0", 18) + "_" + forever[27:], "kalypso_\xff_\x00",
		strings.ToUpper(forever), strings.Repeat("k", 1<<20), "kalypso_' OR 1=1 --_x", strings.Replace(forever, "_", "-", 2),
	} {
		expect(t, tokens, wrong, access.ErrUnknown)
	}
	one, _ := newToken(t, tokens, api.Token{Role: "cluster", Cluster: "c1"})
	for range 1000 {
		expect(t, tokens, forever, nil) // a reporter for many clusters reports more often
		if _, err := tokens.Identify(context.Background(), one); err != nil {
			if !errors.Is(err, access.ErrTooMany) {
				t.Fatal(err)
			}
			c.pass(time.Second)
			expect(t, tokens, one, nil)
			return
		}
	}
	t.Error("a token can be used as often as one likes")
}

func revokedElsewhere(t *testing.T, database func() string) {
	c, name := newClock(), database()
	a, b := access.NewTokens(hubtest.Open(t, name), c.now), access.NewTokens(hubtest.Open(t, name), c.now)
	text, id := newToken(t, a, api.Token{Role: "admin"})
	other, _ := newToken(t, a, api.Token{Role: "admin"})
	expect(t, a, text, nil)
	expect(t, b, text, nil)
	if ended, err := b.Revoke(context.Background(), id); err != nil || !ended {
		t.Fatal(ended, err)
	}
	expect(t, b, text, access.ErrUnknown)
	c.pass(15 * time.Second)
	expect(t, a, text, access.ErrUnknown)
	expect(t, a, other, nil)
	if ended, err := a.Revoke(context.Background(), id); err != nil || ended {
		t.Error("it ends twice:", ended, err)
	}
}

func rotation(t *testing.T, database func() string) {
	c, name := newClock(), database()
	a, b := access.NewTokens(hubtest.Open(t, name), c.now), access.NewTokens(hubtest.Open(t, name), c.now)
	rotate := func(cluster, environment string) string {
		t.Helper()
		made, err := a.Rotate(context.Background(), api.Token{Cluster: cluster, Environment: environment})
		if err != nil {
			t.Fatal(err)
		}
		expect(t, b, made.Secret, nil)
		return made.Secret
	}
	first, elsewhere, other := rotate("c1", ""), rotate("c1", "dev"), rotate("c2", "")
	person, _ := newToken(t, a, api.Token{Role: "viewer"})
	expect(t, a, first, nil)
	second := rotate("c1", "")
	c.pass(15 * time.Second)
	for _, tokens := range []*access.Tokens{a, b} {
		expect(t, tokens, first, access.ErrUnknown)
		for _, text := range []string{second, elsewhere, other, person} {
			expect(t, tokens, text, nil)
		}
	}
	if i, err := b.Identify(context.Background(), second); err != nil || i.Roles() != "cluster" || i.Cluster != "c1" || i.Name != "cluster c1" {
		t.Errorf("%+v, %v", i, err)
	}
}

// secrets checks that no row of the token table contains a token's secret.
func secrets(t *testing.T, database func() string) {
	name := database()
	tokens := access.NewTokens(hubtest.Open(t, name), newClock().now)
	text, id := newToken(t, tokens, api.Token{Role: "viewer", Note: "ours"})
	rows, err := hubtest.SQL(t, name).Query("SELECT * FROM token")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	columns, _ := rows.Columns()
	found := false
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprint(values...)
		if found = found || strings.Contains(line, id); strings.Contains(line, text[len(text)-20:]) {
			t.Errorf("a secret is kept: %s", line)
		}
	}
	if err := rows.Err(); err != nil || !found {
		t.Error("the token is not there:", err)
	}
}

// used checks that the uses of tokens are recorded at intervals.
func used(t *testing.T, database func() string) {
	c := newClock()
	db := hubtest.Open(t, database())
	tokens := access.NewTokens(db, c.now)
	text, id := newToken(t, tokens, api.Token{Role: "viewer"})
	for range 3 {
		expect(t, tokens, text, nil)
		c.pass(10 * time.Second)
	}
	if is, _, err := db.Token(context.Background(), id); err != nil || is.Used.Before(hubtest.Start()) || is.Used.After(c.now()) {
		t.Errorf("used at %s, %v", is.Used, err)
	}
}

// closed checks a database that does not answer: known tokens are accepted for a short while, and
// unknown ones are refused.
func closed(t *testing.T, database func() string) {
	c := newClock()
	db := hubtest.Open(t, database())
	tokens := access.NewTokens(db, c.now)
	text, _ := newToken(t, tokens, api.Token{Role: "viewer"})
	other, _ := newToken(t, tokens, api.Token{Role: "viewer"})
	expect(t, tokens, text, nil)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	c.pass(10 * time.Second)
	expect(t, tokens, text, nil)
	if _, err := tokens.Identify(context.Background(), other); err == nil || errors.Is(err, access.ErrUnknown) {
		t.Errorf("a token that cannot be looked up: %v", err)
	}
	c.pass(5 * time.Second)
	if _, err := tokens.Identify(context.Background(), text); err == nil || errors.Is(err, access.ErrUnknown) {
		t.Errorf("a token that may have ended: %v", err)
	}
}

// audit writes the audit from several hubs at once.
func audit(t *testing.T, database func() string) {
	c, name := newClock(), database()
	var wg sync.WaitGroup
	stores := []*store.Store{hubtest.Open(t, name), hubtest.Open(t, name)}
	for i := range 8 {
		wg.Go(func() {
			for n := range 10 {
				if err := stores[i%2].Audit(context.Background(), api.Event{At: c.now(), Who: fmt.Sprint("w", i), Action: "test", Subject: fmt.Sprint(n)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	var before int64
	for range 10 {
		page, err := stores[0].Events(context.Background(), before, 9)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page {
			if before > 0 && e.Number >= before {
				t.Errorf("%d comes after %d", e.Number, before)
			}
			before = e.Number
			seen[e.Who+e.Subject] = true
		}
	}
	if len(seen) != 80 {
		t.Errorf("%d of 80 entries are there", len(seen))
	}
}

func TestAbsent(t *testing.T) {
	many := make([]string, 22)
	for i := range many {
		many[i] = fmt.Sprint("e", i)
	}
	for _, c := range []struct {
		environment string
		known       []string
		want        string
	}{
		{"", []string{"dev"}, ""}, {"dev", []string{"dev"}, ""}, {"dev", nil, ""},
		{"prd", []string{"prod"}, "the platform has no environment prd, or its branch was not read yet: there is prod"},
		{"prd", []string{"dev", "prod"}, "the platform has no environment prd, or its branch was not read yet: there are dev, prod"},
		{"prd", many, "the platform has no environment prd, or its branch was not read yet: there are " + strings.Join(many[:20], ", ") + " and 2 more"},
	} {
		if is := access.Absent(c.environment, c.known); is != c.want {
			t.Errorf("%s of %v: %s", c.environment, c.known, is)
		}
	}
}
