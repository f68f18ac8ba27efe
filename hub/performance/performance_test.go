package performance

import (
	"reflect"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub/api"
)

func TestOf(t *testing.T) {
	begin := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	at := func(hours int) time.Time { return begin.Add(time.Duration(hours) * time.Hour) }
	releases := []api.Release{ // the newest first
		{Environment: "prod", Ring: "b", At: at(400)},
		{Environment: "prod", Ring: "a", At: at(340), Completed: at(342)},
		{Environment: "prod", Ring: "a", At: at(50)}, // replaced before it ended
		{Environment: "prod", Ring: "b", At: at(30), Completed: at(40), Failed: at(31), Restored: at(40)},
		{Environment: "prod", Ring: "a", At: at(20), Failed: at(22), Restored: at(342)}, // restored after the period
		{Environment: "dev", At: at(10), Completed: at(11), Failed: at(12)},             // not restored yet
		{Environment: "prod", Ring: "a", At: at(10), Completed: at(11).Add(-400 * time.Millisecond)},
		{Environment: "prod", Ring: "a", At: at(-1), Completed: at(1)}, // before the time
	}
	for i := range releases {
		releases[i].Committed = releases[i].At
	}
	releases[6].Committed = at(9) // it was released an hour after
	releases[6].At = at(10)
	got := Of(releases, begin, at(336))
	want := []api.Performance{
		{Environment: "prod", Releases: 4, PerWeek: 2, Completed: 2, LeadMedian: 2 * 3600, LeadP90: 10 * 3600, Failed: 2, FailureRate: 2.0 / 3,
			Restored: 2, Restore: 9 * 3600},
		{Environment: "dev", Releases: 1, PerWeek: 0.5, Completed: 1, LeadMedian: 3600, LeadP90: 3600, Failed: 1, FailureRate: 1},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got := Of(nil, begin, begin); len(got) > 0 {
		t.Errorf("of nothing: %+v", got)
	}
}
