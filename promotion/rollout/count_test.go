package rollout_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/promotion/rollout"
)

var now = time.Date(2026, 1, 2, 15, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return now.Add(-d) }

// said returns a report of assignment "a".
func said(cluster string, s rollout.State, age time.Duration) rollout.Report {
	return rollout.Report{Assignment: "a", Cluster: cluster, State: s, At: ago(age), Since: ago(age), Message: string(s) + " on " + cluster}
}

func TestCount(t *testing.T) {
	const h = time.Hour
	block := rollout.Options{Now: now, StaleAfter: h}
	exclude := rollout.Options{Now: now, StaleAfter: h, Unreachable: rollout.Exclude}
	for name, c := range map[string]struct {
		clusters []string
		reports  []rollout.Report
		options  rollout.Options
		want     string
		state    rollout.State
		cluster  string
	}{
		"nobody":                    {[]string{"x", "y"}, nil, block, "0/2 ok, 2 unknown", rollout.Unknown, "x"},
		"nobody, not listed":        {nil, nil, block, "0/1 ok, 1 unknown", rollout.Unknown, ""},
		"all":                       {[]string{"x", "y"}, []rollout.Report{said("x", rollout.Healthy, 0), said("y", rollout.Healthy, 0)}, block, "2/2 ok", rollout.Healthy, "x"},
		"one is missing":            {[]string{"x", "y"}, []rollout.Report{said("x", rollout.Healthy, 0)}, block, "1/2 ok, 1 unknown", rollout.Unknown, "y"},
		"one failed":                {[]string{"x", "y"}, []rollout.Report{said("x", rollout.Healthy, 0), said("y", rollout.Failed, 0)}, block, "1/2 ok, 1 failed", rollout.Failed, "y"},
		"the newest counts":         {[]string{"x"}, []rollout.Report{said("x", rollout.Failed, 2*time.Minute), said("x", rollout.Healthy, time.Minute)}, block, "1/1 ok", rollout.Healthy, "x"},
		"the worst of equally new":  {[]string{"x"}, []rollout.Report{said("x", rollout.Failed, 0), said("x", rollout.Healthy, 0)}, block, "0/1 ok, 1 failed", rollout.Failed, "x"},
		"no evidence yet":           {[]string{"x"}, []rollout.Report{said("x", rollout.Healthy, -h)}, block, "0/1 ok, 1 unknown", rollout.Unknown, "x"},
		"evidence before that":      {[]string{"x"}, []rollout.Report{said("x", rollout.Healthy, h), said("x", rollout.Failed, 2*h), said("x", rollout.Healthy, -h)}, block, "1/1 ok", rollout.Healthy, "x"},
		"a failure of the future":   {[]string{"x"}, []rollout.Report{said("x", rollout.Failed, -h), said("x", rollout.Healthy, h)}, block, "0/1 ok, 1 failed", rollout.Failed, "x"},
		"the future is now":         {[]string{"x"}, []rollout.Report{said("x", rollout.Failed, 0), said("x", rollout.Healthy, -h)}, block, "0/1 ok, 1 failed", rollout.Failed, "x"},
		"stale":                     {[]string{"x", "y"}, []rollout.Report{said("x", rollout.Healthy, 0), said("y", rollout.Healthy, 2*h)}, block, "1/2 ok, 1 stale", rollout.Stale, "y"},
		"stale is excluded":         {[]string{"x", "y"}, []rollout.Report{said("x", rollout.Healthy, 0), said("y", rollout.Healthy, 2*h)}, exclude, "1/2 ok, 1 stale (1 excluded)", rollout.Healthy, "x"},
		"exactly as old as allowed": {[]string{"x"}, []rollout.Report{said("x", rollout.Healthy, h)}, block, "1/1 ok", rollout.Healthy, "x"},
		"failures do not get stale": {[]string{"x"}, []rollout.Report{said("x", rollout.Failed, 20*h)}, exclude, "0/1 ok, 1 failed", rollout.Failed, "x"},
		"stale, by the source":      {[]string{"x", "y"}, []rollout.Report{said("x", rollout.Healthy, 0), said("y", rollout.Stale, 0)}, exclude, "1/2 ok, 1 stale (1 excluded)", rollout.Healthy, "x"},
		"stale, after the clock":    {[]string{"x"}, []rollout.Report{said("x", rollout.Stale, -h)}, block, "0/1 ok, 1 stale", rollout.Stale, "x"},
		"without a time":            {[]string{"x"}, []rollout.Report{{Assignment: "a", Cluster: "x", State: rollout.Healthy}}, block, "0/1 ok, 1 stale", rollout.Stale, "x"},
		"any age":                   {[]string{"x"}, []rollout.Report{{Assignment: "a", Cluster: "x", State: rollout.Healthy}}, rollout.Options{Now: now}, "1/1 ok", rollout.Healthy, "x"},
		"unknown is not excluded":   {[]string{"x", "y"}, []rollout.Report{said("x", rollout.Healthy, 0)}, exclude, "1/2 ok, 1 unknown", rollout.Unknown, "y"},
		"a name nobody knows":       {[]string{"x", "y"}, []rollout.Report{said("0c9c2e41", rollout.Healthy, 0)}, block, "0/2 ok, 2 unknown", rollout.Unknown, "x"},
		"a failure that may be it":  {[]string{"x", "y"}, []rollout.Report{said("x", rollout.Healthy, 0), said("0c9c2e41", rollout.Failed, 0)}, block, "1/2 ok, 1 failed", rollout.Failed, "y"},
		"one failure is of one":     {[]string{"x", "y"}, []rollout.Report{said("0c9c2e41", rollout.Failed, 0)}, block, "0/2 ok, 1 failed, 1 unknown", rollout.Failed, "x"},
		"a failure of nobody":       {[]string{"x"}, []rollout.Report{said("x", rollout.Healthy, 0), said("gone", rollout.Failed, 0)}, block, "1/1 ok", rollout.Healthy, "x"},
		"no name, one cluster":      {[]string{"x"}, []rollout.Report{said("", rollout.Healthy, 0)}, block, "1/1 ok", rollout.Healthy, "x"},
		"no name, and newer":        {[]string{"x"}, []rollout.Report{said("x", rollout.Healthy, time.Minute), said("", rollout.Failed, 0)}, block, "0/1 ok, 1 failed", rollout.Failed, "x"},
		"no name, two clusters":     {[]string{"x", "y"}, []rollout.Report{said("", rollout.Healthy, 0)}, block, "0/2 ok, 2 unknown", rollout.Unknown, "x"},
		"not listed: one is enough": {nil, []rollout.Report{said("x", rollout.Healthy, 0)}, block, "1/1 ok", rollout.Healthy, "x"},
		"not listed: the worst":     {nil, []rollout.Report{said("x", rollout.Healthy, 0), said("y", rollout.Progressing, 0)}, block, "0/1 ok, 1 progressing", rollout.Progressing, "y"},
		"not listed: silence":       {nil, []rollout.Report{said("x", rollout.Healthy, 0), said("y", rollout.Healthy, 2*h)}, block, "0/1 ok, 1 stale", rollout.Stale, "y"},
		"not listed: left out":      {nil, []rollout.Report{said("x", rollout.Healthy, 0), said("y", rollout.Healthy, 2*h)}, exclude, "1/1 ok", rollout.Healthy, "x"},
		"not listed: all silent":    {nil, []rollout.Report{said("x", rollout.Healthy, 2*h)}, exclude, "0/1 ok, 1 stale (1 excluded)", rollout.Stale, "x"},
		"a state that is none":      {[]string{"x"}, []rollout.Report{said("x", "great", 0)}, block, "0/1 ok, 1 progressing", rollout.Progressing, "x"},
		"of another assignment":     {[]string{"x"}, []rollout.Report{{Assignment: "b", Cluster: "x", State: rollout.Healthy, At: now}}, block, "0/1 ok, 1 unknown", rollout.Unknown, "x"},
		"listed twice":              {[]string{"x", "x"}, []rollout.Report{said("x", rollout.Healthy, 0)}, block, "1/1 ok", rollout.Healthy, "x"},
	} {
		counts := rollout.Count(&rollout.DesiredState{Assignments: []rollout.Assignment{{ID: "a", Clusters: c.clusters}}}, c.reports, c.options)
		if got := counts.String(); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
		if a := counts.Assignments[0]; a.State != c.state || a.Cluster != c.cluster {
			t.Errorf("%s: got %s on %q, want %s on %q", name, a.State, a.Cluster, c.state, c.cluster)
		}
	}
}

func TestCountSays(t *testing.T) {
	w := &rollout.DesiredState{Assignments: []rollout.Assignment{{ID: "b", Clusters: []string{"x", "y"}}, {ID: "a", Clusters: []string{"x", "y"}}}}
	counts := rollout.Count(w, []rollout.Report{said("y", rollout.Healthy, time.Minute), said("x", rollout.Healthy, time.Hour)}, rollout.Options{Now: now})
	if counts.Assignments[0].ID != "a" || !counts.Assignments[0].Since.Equal(ago(time.Minute)) {
		t.Errorf("all are healthy since the last one is: got %+v", counts.Assignments[0])
	}
	counts = rollout.Count(w, []rollout.Report{said("0c9c2e41", rollout.Healthy, 0)}, rollout.Options{Now: now})
	if got, want := counts.Assignments[0].Message, `"0c9c2e41" reports, which is none of its clusters`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	all := rollout.Tally{Wanted: 100, Healthy: 73, Failed: 2, Stale: 25}
	if got, want := all.String(), "73/100 ok, 2 failed, 25 stale"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestVerdict(t *testing.T) {
	tally := func(healthy, progressing, failed, stale, unknown, excluded int) rollout.Tally {
		return rollout.Tally{Wanted: healthy + progressing + failed + stale + unknown, Healthy: healthy, Progressing: progressing,
			Failed: failed, Stale: stale, Unknown: unknown, Excluded: excluded}
	}
	for name, c := range map[string]struct {
		tally   rollout.Tally
		policy  rollout.Policy
		verdict rollout.Verdict
		reason  string
	}{
		"nothing":             {tally(0, 0, 0, 0, 0, 0), rollout.Policy{}, rollout.Pending, rollout.Empty},
		"nothing, as allowed": {tally(0, 0, 0, 0, 0, 0), rollout.Policy{AllowEmpty: true}, rollout.Passed, "nothing to roll out"},
		"a share of nothing":  {tally(0, 0, 0, 0, 0, 0), rollout.Policy{Min: "0%"}, rollout.Pending, rollout.Empty},
		"all":                 {tally(3, 0, 0, 0, 0, 0), rollout.Policy{}, rollout.Passed, "3/3 ok"},
		"not all":             {tally(2, 1, 0, 0, 0, 0), rollout.Policy{}, rollout.Pending, "2/3 ok, 1 progressing; all must be ok"},
		"nobody":              {tally(0, 0, 0, 0, 3, 0), rollout.Policy{Min: "0%"}, rollout.Pending, "0/3 ok, 3 unknown; nobody has reported"},
		"nobody, min 0":       {tally(0, 0, 0, 0, 3, 0), rollout.Policy{Min: "0"}, rollout.Pending, "0/3 ok, 3 unknown; nobody has reported"},
		"failed":              {tally(2, 0, 1, 0, 0, 0), rollout.Policy{Min: "50%"}, rollout.Blocked, "2/3 ok, 1 failed; at most 0 may fail"},
		"failed, as allowed":  {tally(2, 0, 1, 0, 0, 0), rollout.Policy{Min: "50%", MaxFailed: 1}, rollout.Passed, "2/3 ok, 1 failed"},
		"less than nothing":   {tally(3, 0, 0, 0, 0, 0), rollout.Policy{MaxFailed: -1}, rollout.Passed, "3/3 ok"},
		"199 of 200":          {tally(199, 1, 0, 0, 0, 0), rollout.Policy{Min: "99.5%"}, rollout.Passed, "199/200 ok, 1 progressing"},
		"198 of 199":          {tally(198, 1, 0, 0, 0, 0), rollout.Policy{Min: "99.5%"}, rollout.Pending, "198/199 ok, 1 progressing; 99.5% must be ok"},
		"a third":             {tally(333333333, 666666667, 0, 0, 0, 0), rollout.Policy{Min: "33.3333334%"}, rollout.Pending, "333333333/1000000000 ok, 666666667 progressing; 33.3333334% must be ok"},
		"a number":            {tally(5, 5, 0, 0, 0, 0), rollout.Policy{Min: "5"}, rollout.Passed, "5/10 ok, 5 progressing"},
		"a higher number":     {tally(3, 0, 0, 0, 0, 0), rollout.Policy{Min: "4"}, rollout.Pending, "3/3 ok; 4 must be ok"},
		"stale":               {tally(73, 0, 2, 25, 0, 0), rollout.Policy{Min: "90%", MaxFailed: 2}, rollout.Pending, "73/100 ok, 2 failed, 25 stale; 90% must be ok"},
		"excluded":            {tally(73, 0, 2, 25, 0, 25), rollout.Policy{Min: "97%", MaxFailed: 2}, rollout.Passed, "73/100 ok, 2 failed, 25 stale (25 excluded)"},
		"all are excluded":    {tally(0, 0, 0, 2, 0, 2), rollout.Policy{Min: "0%"}, rollout.Pending, "0/2 ok, 2 stale (2 excluded); no cluster is reachable"},
		"excluded or unknown": {tally(0, 0, 0, 1, 1, 1), rollout.Policy{}, rollout.Pending, "0/2 ok, 1 stale, 1 unknown (1 excluded); all must be ok"},
		"more than all":       {tally(3, 0, 0, 0, 0, 0), rollout.Policy{Min: "100.1%"}, rollout.Blocked, `min "100.1%" is more than all`},
		"no number":           {tally(3, 0, 0, 0, 0, 0), rollout.Policy{Min: "1e3%"}, rollout.Blocked, `min "1e3%" is neither a percentage, such as 99.5%, nor a number`},
		"negative":            {tally(3, 0, 0, 0, 0, 0), rollout.Policy{Min: "-1"}, rollout.Blocked, `min "-1" is neither a percentage, such as 99.5%, nor a number`},
	} {
		verdict, reason := (&rollout.Counts{Tally: c.tally}).Verdict(c.policy)
		if verdict != c.verdict || reason != c.reason {
			t.Errorf("%s: got %s, %q, want %s, %q", name, verdict, reason, c.verdict, c.reason)
		}
	}
}

// random makes random wanted assignments and reports, with few names and times so that there are
// collisions of all kinds.
func random(r *rand.Rand) (*rollout.DesiredState, []rollout.Report, rollout.Options, rollout.Policy) {
	names := []string{"x", "y", "z", ""}
	states := []rollout.State{rollout.Healthy, rollout.Healthy, rollout.Progressing, rollout.Failed, "strange"}
	w := &rollout.DesiredState{}
	for i := range r.IntN(4) {
		w.Assignments = append(w.Assignments, rollout.Assignment{ID: fmt.Sprint(i), Clusters: names[:r.IntN(4)]})
	}
	var reports []rollout.Report
	for range r.IntN(12) {
		at := ago(time.Duration(r.IntN(5)-1) * time.Hour)
		if r.IntN(6) == 0 {
			at = time.Time{}
		}
		reports = append(reports, rollout.Report{
			Assignment: fmt.Sprint(r.IntN(4)), Cluster: names[r.IntN(4)], State: states[r.IntN(len(states))],
			Message: fmt.Sprint(r.IntN(3)), By: fmt.Sprint(r.IntN(2)), At: at, Since: at,
		})
	}
	o := rollout.Options{Now: now, StaleAfter: time.Duration(r.IntN(3)) * time.Hour}
	if r.IntN(2) == 0 {
		o.Unreachable = rollout.Exclude
	}
	mins := []string{"", "0%", "50%", "33.3%", "0", "1", "2"}
	return w, reports, o, rollout.Policy{Min: mins[r.IntN(len(mins))], MaxFailed: r.IntN(3)}
}

func TestCountProperties(t *testing.T) {
	for seed := range uint64(10_000) {
		r := rand.New(rand.NewPCG(seed, 0))
		w, reports, o, policy := random(r)
		counts := rollout.Count(w, reports, o)
		verdict, reason := counts.Verdict(policy)

		shuffled := slices.Clone(reports)
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if again := rollout.Count(w, append(shuffled, shuffled...), o); !reflect.DeepEqual(again, counts) {
			t.Fatalf("seed %d: the order of reports matters:\n%+v\n%+v", seed, counts, again)
		}
		c := counts.Tally
		if c.Wanted != c.Healthy+c.Progressing+c.Failed+c.Stale+c.Unknown || c.Excluded > c.Stale {
			t.Fatalf("seed %d: %+v does not add up", seed, c)
		}
		if v, _ := rollout.Count(w, nil, o).Verdict(policy); v == rollout.Passed && len(w.Assignments) > 0 {
			t.Fatalf("seed %d: passed without a report", seed)
		}
		if verdict == rollout.Passed && c.Failed > policy.MaxFailed {
			t.Fatalf("seed %d: passed with failures: %s", seed, reason)
		}
		failed := rollout.Report{Assignment: fmt.Sprint(r.IntN(4)), Cluster: []string{"x", "y", "z", "", "other"}[r.IntN(5)], State: rollout.Failed, At: ago(time.Duration(r.IntN(5)-1) * time.Hour)}
		worse, worseReason := rollout.Count(w, append(slices.Clone(reports), failed), o).Verdict(policy)
		if worse == rollout.Passed && verdict == rollout.Blocked {
			t.Fatalf("seed %d: a failure made %s passed: %s", seed, reason, worseReason)
		}
	}
}
