package window

import (
	"archive/zip"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func parse(t *testing.T, from, to, tz string) Window {
	t.Helper()
	w, err := Parse(from, to, tz)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	out, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestNext(t *testing.T) {
	const weekend, freeze = "fri 16:00 mon 06:00", "2026-12-20T00:00 2027-01-02T12:30"
	for _, c := range []struct {
		window, tz, at, from, to string // may be ""
	}{
		{weekend, "UTC", "2026-11-25T12:00:00Z", "2026-11-27T16:00:00Z", "2026-11-30T06:00:00Z"},
		{weekend, "UTC", "2026-11-27T16:00:00Z", "2026-11-27T16:00:00Z", "2026-11-30T06:00:00Z"},
		{weekend, "UTC", "2026-11-30T05:59:59Z", "2026-11-27T16:00:00Z", "2026-11-30T06:00:00Z"},
		{weekend, "UTC", "2026-11-30T06:00:00Z", "2026-12-04T16:00:00Z", "2026-12-07T06:00:00Z"},
		{weekend, "America/New_York", "2026-11-27T20:59:59Z", "2026-11-27T21:00:00Z", "2026-11-30T11:00:00Z"},
		{weekend, "Pacific/Kiritimati", "2026-11-26T12:00:00Z", "2026-11-27T02:00:00Z", "2026-11-29T16:00:00Z"},
		{weekend, "UTC", "1969-12-31T12:00:00Z", "1970-01-02T16:00:00Z", "1970-01-05T06:00:00Z"},
		// Clocks are put back on the Sunday, and put forward.
		{weekend, "Europe/Berlin", "2026-10-24T00:00:00Z", "2026-10-23T14:00:00Z", "2026-10-26T05:00:00Z"},
		{weekend, "Europe/Berlin", "2026-03-28T00:00:00Z", "2026-03-27T15:00:00Z", "2026-03-30T04:00:00Z"},
		{freeze, "UTC", "2026-01-01T00:00:00Z", "2026-12-20T00:00:00Z", "2027-01-02T12:30:00Z"},
		{freeze, "Asia/Kathmandu", "2027-01-02T06:44:59Z", "2026-12-19T18:15:00Z", "2027-01-02T06:45:00Z"},
		{freeze, "Asia/Kathmandu", "2027-01-02T06:45:00Z", "", ""},
		// 02:00 to 03:00 does not exist on that day, and is there twice.
		{"sun 02:30 sun 04:00", "Europe/Berlin", "2026-03-29T00:00:00Z", "2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"},
		{"sun 02:10 sun 02:50", "Europe/Berlin", "2026-03-29T00:00:00Z", "2026-04-05T00:10:00Z", "2026-04-05T00:50:00Z"},
		{"sun 02:10 sun 02:50", "Europe/Berlin", "2026-10-25T00:00:00Z", "2026-10-25T00:10:00Z", "2026-10-25T00:50:00Z"},
		{"sun 02:10 sun 02:50", "Europe/Berlin", "2026-10-25T00:50:00Z", "2026-10-25T01:10:00Z", "2026-10-25T01:50:00Z"},
		{"sun 02:50 sun 02:10", "Europe/Berlin", "2026-10-25T00:50:00Z", "2026-10-25T00:50:00Z", "2026-10-25T01:10:00Z"},
		{"2026-10-25T02:10 2026-10-25T02:50", "Europe/Berlin", "2026-10-25T00:50:00Z", "2026-10-25T01:10:00Z", "2026-10-25T01:50:00Z"},
		// Samoa went without 30 December 2011.
		{"fri 08:00 sat 08:00", "Pacific/Apia", "2011-12-30T00:00:00Z", "2011-12-30T10:00:00Z", "2011-12-30T18:00:00Z"},
	} {
		moments := strings.Split(c.window, " ")
		half := len(moments) / 2
		w := parse(t, strings.Join(moments[:half], " "), strings.Join(moments[half:], " "), c.tz)
		from, to := w.Next(at(t, c.at))
		if c.from == "" {
			if !from.IsZero() || !to.IsZero() {
				t.Errorf("%s %s: after %s comes %s to %s", c.window, c.tz, c.at, from, to)
			}
			continue
		}
		if !from.Equal(at(t, c.from)) || !to.Equal(at(t, c.to)) {
			t.Errorf("%s %s: after %s comes %s to %s", c.window, c.tz, c.at, from.UTC(), to.UTC())
		}
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ from, to, tz, field, why string }{
		{"fri 16:00", "fri 16:00", "UTC", "to", "ends when it begins"},
		{"2026-12-20T00:00", "2026-12-20T00:00", "UTC", "to", "ends when it begins"},
		{"2026-12-20T00:00", "2026-12-19T00:00", "UTC", "to", "ends before it begins"},
		{"2026-12-20T00:00", "sun 00:00", "UTC", "to", "one of from and to"},
		{"sun 00:00", "2026-12-20T00:00", "UTC", "to", "one of from and to"},
		{"2026-02-30T00:00", "2026-03-30T00:00", "UTC", "from", "2026-02-30"},
		{"fri 16:00", "fri 24:00", "UTC", "to", "fri 24:00"},
		{"freitag 16:00", "mon 06:00", "UTC", "from", "freitag"},
		{"fri 6:00", "mon 06:00", "UTC", "from", "fri 6:00"},
		{"fri 16:00", "mon 06:00", "Europe/Berlim", "tz", "Europe/Berlim"},
		{"fri 16:00", "mon 06:00", "Local", "tz", "Local"},
		{"fri 16:00", "mon 06:00", "", "tz", `""`},
		{"2026-03-29T02:10", "2026-03-29T02:40", "Europe/Berlin", "to", "skip"},
	} {
		_, err := Parse(c.from, c.to, c.tz)
		var e *Error
		if !errors.As(err, &e) || e.Field != c.field || !strings.Contains(e.Why, c.why) {
			t.Errorf("%s to %s in %s: %v", c.from, c.to, c.tz, err)
		}
	}
}

// TestMinutes compares windows with clocks that are checked minute by minute, over days on
// which the clocks change.
func TestMinutes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct{ tz, set string }{
		{"UTC", "2026-06-01T00:00:00Z"},
		{"Europe/Berlin", "2026-03-29T01:00:00Z"},
		{"Europe/Berlin", "2026-10-25T01:00:00Z"},
		{"America/New_York", "2026-03-08T07:00:00Z"},
		{"America/New_York", "2026-11-01T06:00:00Z"},
		{"Australia/Lord_Howe", "2026-04-04T15:00:00Z"}, // by half an hour
		{"Australia/Lord_Howe", "2026-10-03T15:30:00Z"},
		{"Africa/Casablanca", "2026-02-15T02:00:00Z"}, // back, and forward after a month
		{"Asia/Kathmandu", "2026-06-01T00:00:00Z"},
		{"Pacific/Apia", "2011-12-30T10:00:00Z"},      // forward by a day
		{"America/Caracas", "2016-05-01T07:00:00Z"},   // for good
		{"Pacific/Kwajalein", "1993-08-21T12:00:00Z"}, // forward by a day
	} {
		zone, err := time.LoadLocation(c.tz)
		if err != nil {
			t.Fatal(err)
		}
		set := at(t, c.set)
		for range 6 {
			from, to := momentNear(random, set.In(zone)), momentNear(random, set.In(zone))
			if from == to {
				continue
			}
			w := parse(t, from, to, c.tz)
			watch(t, w, zone, from, to, set, 9*24*time.Hour)
		}
	}
}

// TestEveryZone watches windows wherever clocks are set in a year.
func TestEveryZone(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	zones, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer zones.Close()
	begin, seen := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), map[string]bool{}
	for _, f := range zones.File {
		zone, err := time.LoadLocation(f.Name)
		if err != nil || strings.HasSuffix(f.Name, "/") {
			continue
		}
		for at := begin.In(zone); ; {
			_, set := at.ZoneBounds()
			if set.IsZero() || set.After(begin.AddDate(1, 0, 0)) {
				break
			}
			_, before := at.Zone()
			_, after := set.In(zone).Zone()
			change := fmt.Sprint(set.UTC(), before, after) // many zones set their clocks alike
			for range 3 {
				if seen[change] {
					break
				}
				if from, to := momentNear(random, set.In(zone)), momentNear(random, set.In(zone)); from != to {
					watch(t, parse(t, from, to, f.Name), zone, from, to, set, 5*time.Hour)
				}
			}
			seen[change], at = true, set.In(zone)
		}
	}
	if len(seen) < 20 {
		t.Errorf("clocks were set in %d ways only", len(seen))
	}
}

// momentNear is a time of the week, more often than not near t.
func momentNear(random *rand.Rand, t time.Time) string {
	if random.IntN(3) > 0 {
		t = t.Add(time.Duration(random.IntN(6*60)-3*60) * time.Minute)
		return strings.ToLower(t.Format("Mon 15:04"))
	}
	return fmt.Sprintf("%s %02d:%02d", days[random.IntN(7)], random.IntN(24), random.IntN(60))
}

func watch(t *testing.T, w Window, zone *time.Location, from, to string, set time.Time, around time.Duration) {
	t.Helper()
	minutes := func(shows time.Time) int {
		day := (int(shows.Weekday()) + 6) % 7
		return day*24*60 + shows.Hour()*60 + shows.Minute()
	}
	moment := func(text string) int {
		var h, m int
		if _, err := fmt.Sscanf(text[4:], "%d:%d", &h, &m); err != nil {
			t.Fatal(err)
		}
		for day, name := range days {
			if name == text[:3] {
				return day*24*60 + h*60 + m
			}
		}
		panic(text)
	}
	begins, ends := moment(from), moment(to)
	var promised, over time.Time // when it begins, and ends
	in := true
	for at := set.Add(-around); at.Before(set.Add(around)); at = at.Add(time.Minute) {
		now := minutes(shown(at.In(zone)))
		want := begins <= now && now < ends || ends < begins && (now < ends || begins <= now)
		if got := w.Contains(at); got != want {
			t.Fatalf("%s to %s in %s: at %s it is %v", from, to, zone, at, got)
		}
		if want && !in && !promised.Equal(at) {
			t.Fatalf("%s to %s in %s: it begins at %s, and not at %s", from, to, zone, at, promised)
		}
		if !want && in && !over.IsZero() && !over.Equal(at) {
			t.Fatalf("%s to %s in %s: it ends at %s, and not at %s", from, to, zone, at, over)
		}
		switch {
		case want && !in:
			_, over = w.Next(at)
		case !want && (in || promised.IsZero()):
			promised, _ = w.Next(at)
		}
		in = want
	}
}
