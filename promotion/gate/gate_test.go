package gate

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/git"
)

var (
	// now is a Friday.
	now    = time.Date(2026, 11, 20, 12, 12, 0, 0, time.UTC)
	commit = git.Hash{0x4f, 0x2a, 0x9c, 0x1d}
	head   = git.Hash{1}
)

func ago(d time.Duration) time.Time { return now.Add(-d) }

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}

// facts returns the facts of a commit without any objections.
func facts(stays ...Stay) CommitFacts {
	return CommitFacts{Now: now, Commit: commit, Reachable: true, StatusesKnown: true, Stays: stays}
}

func gates(g ...model.Gates) Policy { return Policy{Environment: "prod", Gates: g} }

// want is a verdict as tests have it; until is "" if the verdict has no end.
type want struct {
	state         State
	reason, until string
}

func (w want) check(t *testing.T, vs []Verdict) {
	t.Helper()
	if len(vs) != 1 {
		t.Fatalf("got %d verdicts, want one: %+v", len(vs), vs)
	}
	v := vs[0]
	if v.State != w.state || v.Reason != w.reason {
		t.Errorf("got  %s: %s\nwant %s: %s", v.State, v.Reason, w.state, w.reason)
	}
	var until string
	if !v.Until.IsZero() {
		until = v.Until.Format(time.RFC3339)
	}
	if until != w.until {
		t.Errorf("until %q, want %q", until, w.until)
	}
}

func TestOrders(t *testing.T) {
	by := Freeze{Reason: "INC-42", By: "alice", At: ago(time.Hour)}
	until := by
	until.Until = now.Add(time.Hour)
	over := by
	over.Until = now
	const said = " by alice since 2026-11-20T11:12:00Z: INC-42"
	for name, c := range map[string]struct {
		facts CommitFacts
		want  want
	}{
		"rejected":             {CommitFacts{Rejected: &by}, want{Blocked, "4f2a9c1d0000 is rejected" + said, ""}},
		"rejected for a time":  {CommitFacts{Rejected: &over}, want{Blocked, "4f2a9c1d0000 is rejected" + said, ""}},
		"held":                 {CommitFacts{Hold: &by}, want{Blocked, "prod/eu is held" + said, ""}},
		"held for a time":      {CommitFacts{Hold: &until}, want{Pending, "prod/eu is held" + said + ", until 2026-11-20T13:12:00Z", "2026-11-20T13:12:00Z"}},
		"frozen":               {CommitFacts{Freeze: &by}, want{Blocked, "prod is frozen" + said, ""}},
		"frozen for a time":    {CommitFacts{Freeze: &until}, want{Pending, "prod is frozen" + said + ", until 2026-11-20T13:12:00Z", "2026-11-20T13:12:00Z"}},
		"frozen without words": {CommitFacts{Freeze: &Freeze{}}, want{Blocked, "prod is frozen", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			c.facts.Now, c.facts.Commit, c.facts.Reachable = now, commit, true
			c.want.check(t, Commit(Policy{Environment: "prod", Ring: "eu"}, c.facts, Skip{}))
		})
	}
	t.Run("over", func(t *testing.T) {
		f := facts()
		f.Freeze, f.Hold = &over, &over
		if vs := Commit(gates(), f, Skip{}); len(vs) != 0 {
			t.Errorf("orders that have ended say %+v", vs)
		}
	})
	t.Run("history", func(t *testing.T) {
		f := facts()
		f.Reachable = false
		want{Blocked, "rewritten history: the platform's branch does not have 4f2a9c1d0000 any more; name the commit that comes next, with --commit", ""}.check(t, Commit(gates(), f, Skip{}))
	})
}

func TestOverall(t *testing.T) {
	for text, want := range map[string]State{"": Passed, "passed": Passed, "passed pending": Pending, "pending blocked passed": Blocked} {
		var vs []Verdict
		for s := range strings.FieldsSeq(text) {
			vs = append(vs, Verdict{State: State(s)})
		}
		if got := Overall(vs); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}

func TestVerdictIsJSON(t *testing.T) {
	text, err := json.Marshal(Verdict{Gate: "soak", Name: "qa", State: Pending, Reason: "why", Until: now})
	const want = `{"gate":"soak","name":"qa","state":"pending","reason":"why","until":"2026-11-20T12:12:00Z"}`
	if err != nil || string(text) != want {
		t.Errorf("got %s, %v; want %s", text, err, want)
	}
}

func TestDigest(t *testing.T) {
	p := gates(model.Gates{Soak: &model.SoakGate{For: time.Hour, Environment: "qa"}})
	f := facts(ran("qa", "", 2*time.Hour))
	passed := Digest(Commit(p, f, Skip{}))
	f.Now = now.Add(time.Hour)
	if later := Digest(Commit(p, f, Skip{})); later != passed {
		t.Errorf("the digest was %s, and is %s an hour later", passed, later)
	}
	f.Now = ago(90 * time.Minute)
	pending := Digest(Commit(p, f, Skip{}))
	if pending == passed {
		t.Error("pending has the digest of passed")
	}
	p.Skippable = []string{"soak"}
	if skipped := Digest(Commit(p, f, Skip{Gates: []string{"soak"}, Reason: "INC-42"})); skipped == passed || skipped == pending {
		t.Error("a gate that was passed over has the digest of one that was not")
	}
	if !strings.HasPrefix(passed, "sha256:") || len(passed) != len("sha256:")+64 {
		t.Errorf("digest %s", passed)
	}
	if Digest(nil) != Digest([]Verdict{}) {
		t.Error("no verdicts have two digests")
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", time.Millisecond: "0s", 59 * time.Second: "59s", 90 * time.Second: "1m30s",
		192 * time.Minute: "3h12m", 24 * time.Hour: "24h", 36 * time.Hour: "36h", 7 * 24 * time.Hour: "7d",
		49*time.Hour + time.Minute: "2d1h1m", time.Hour + time.Second: "1h1s",
	} {
		if got := Span(d); got != want {
			t.Errorf("%v is %s, want %s", d, got, want)
		}
	}
}
