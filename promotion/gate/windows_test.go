package gate

import (
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/compiler/model"
)

func TestWindows(t *testing.T) {
	deny := func(from, to, tz, why string) model.Window {
		return model.Window{Deny: true, From: from, To: to, TZ: tz, Why: why}
	}
	allow := func(from, to string) model.Window { return model.Window{From: from, To: to, TZ: "UTC"} }
	weekend := deny("fri 16:00", "mon 06:00", "Europe/Berlin", "nobody is there")
	const weekendText = "fri 16:00 to mon 06:00 Europe/Berlin (nobody is there)"
	friday := at("2026-11-20T15:00:00Z") // 16:00 in Berlin
	for name, c := range map[string]struct {
		now   time.Time
		gates [][]model.Window
		want  want
	}{
		"outside":          {friday.Add(-1), [][]model.Window{{weekend}}, want{Passed, "outside of " + weekendText, ""}},
		"begins":           {friday, [][]model.Window{{weekend}}, want{Pending, "no commits " + weekendText + "; open 2026-11-23T05:00:00Z", "2026-11-23T05:00:00Z"}},
		"ends":             {at("2026-11-23T05:00:00Z"), [][]model.Window{{weekend}}, want{Passed, "outside of " + weekendText, ""}},
		"just before":      {at("2026-11-23T04:59:59Z"), [][]model.Window{{weekend}}, want{Pending, "no commits " + weekendText + "; open 2026-11-23T05:00:00Z", "2026-11-23T05:00:00Z"}},
		"over summer time": {at("2026-03-28T12:00:00Z"), [][]model.Window{{weekend}}, want{Pending, "no commits " + weekendText + "; open 2026-03-30T04:00:00Z", "2026-03-30T04:00:00Z"}},
		"one after the other, of two gates": {
			friday, [][]model.Window{{deny("2026-11-23T05:00", "2026-11-24T00:00", "UTC", "")}, {weekend}},
			want{Pending, "no commits " + weekendText + "; open 2026-11-24T00:00:00Z", "2026-11-24T00:00:00Z"},
		},
		"both at once": {
			friday, [][]model.Window{{weekend, deny("2026-11-20T00:00", "2026-11-21T00:00", "UTC", "")}},
			want{Pending, "no commits " + weekendText + " and 2026-11-20T00:00 to 2026-11-21T00:00 UTC; open 2026-11-23T05:00:00Z", "2026-11-23T05:00:00Z"},
		},
		"within":                       {friday, [][]model.Window{{allow("fri 09:00", "fri 17:00")}}, want{Passed, "within fri 09:00 to fri 17:00 UTC", ""}},
		"not yet":                      {friday, [][]model.Window{{allow("tue 09:00", "tue 17:00"), allow("mon 09:00", "mon 17:00")}}, want{Pending, "commits only tue 09:00 to tue 17:00 UTC or mon 09:00 to mon 17:00 UTC; open 2026-11-23T09:00:00Z", "2026-11-23T09:00:00Z"}},
		"of two gates that never meet": {friday, [][]model.Window{{allow("mon 09:00", "mon 17:00")}, {allow("fri 09:00", "fri 17:00")}}, want{Pending, "commits only mon 09:00 to mon 17:00 UTC; no open time was found", ""}},
		"of two gates":                 {friday, [][]model.Window{{allow("mon 09:00", "fri 20:00")}, {allow("fri 09:00", "fri 17:00")}}, want{Passed, "within mon 09:00 to fri 20:00 UTC and fri 09:00 to fri 17:00 UTC", ""}},
		"allowed, but denied": {
			friday, [][]model.Window{{allow("fri 09:00", "fri 17:00"), weekend}},
			want{Pending, "no commits " + weekendText + "; open 2026-11-27T09:00:00Z", "2026-11-27T09:00:00Z"},
		},
		"opens within an allowed time": {
			friday, [][]model.Window{{allow("mon 00:00", "mon 17:00"), weekend}},
			want{Pending, "no commits " + weekendText + "; open 2026-11-23T05:00:00Z", "2026-11-23T05:00:00Z"},
		},
		"never again": {friday, [][]model.Window{{allow("2026-01-01T00:00", "2026-01-02T00:00")}}, want{Blocked, "commits only 2026-01-01T00:00 to 2026-01-02T00:00 UTC; none of the times comes again", ""}},
		"never": {
			friday, [][]model.Window{{allow("fri 09:00", "fri 17:00"), deny("fri 00:00", "sat 00:00", "UTC", "")}},
			want{Pending, "no commits fri 00:00 to sat 00:00 UTC; no open time was found", ""},
		},
		"always denied": {
			friday, [][]model.Window{{deny("mon 00:00", "fri 00:00", "UTC", ""), deny("fri 00:00", "mon 00:00", "UTC", "")}},
			want{Pending, "no commits fri 00:00 to mon 00:00 UTC; no open time was found", ""},
		},
		"no time": {time.Time{}, [][]model.Window{{weekend}}, want{Pending, "what time it is is not known", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			var p Policy
			for _, w := range c.gates {
				p.Gates = append(p.Gates, model.Gates{Windows: w})
			}
			f := facts()
			f.Now = c.now
			c.want.check(t, Commit(p, f, Skip{}))
		})
	}
	t.Run("unreadable", func(t *testing.T) {
		vs := Commit(gates(model.Gates{Windows: []model.Window{{From: "noon", To: "night", TZ: "UTC"}}}), facts(), Skip{})
		if len(vs) != 1 || vs[0].State != Blocked {
			t.Errorf("got %+v", vs)
		}
	})
}
