package ledger

import (
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/promotion/forge"
)

func TestCourse(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 3, 2, 9, minute, 0, 0, time.UTC) }
	statuses := func(minute int, state forge.State, text string) forge.Status {
		return forge.Status{Name: "kalypso/dev", State: state, Description: text, At: at(minute)}
	}
	for _, c := range []struct {
		name string
		said []forge.Status
		want Course
	}{
		{"a rollout", []forge.Status{statuses(1, forge.Pending, "as a"), statuses(2, forge.Success, "ok")}, Course{at(1), forge.Success, at(2), "ok"}},
		{"a failure that mended", []forge.Status{statuses(1, forge.Pending, "as a"), statuses(2, forge.Failure, "no"), statuses(3, forge.Success, "ok")}, Course{at(1), forge.Success, at(3), "ok"}},
		{"a runner that is late", []forge.Status{statuses(1, forge.Pending, "as a"), statuses(2, forge.Success, "ok"), statuses(3, forge.Pending, "as a")}, Course{at(1), forge.Success, at(2), "ok"}},
		{"another stay", []forge.Status{statuses(1, forge.Pending, "as a"), statuses(2, forge.Success, "ok"), statuses(3, forge.Pending, "as b")}, Course{at(3), forge.Pending, at(3), "as b"}},
		{"another stay, of one that nobody reported", []forge.Status{statuses(1, forge.Pending, "as a"), statuses(3, forge.Pending, "as b")}, Course{at(3), forge.Pending, at(3), "as b"}},
	} {
		if got, found := CourseOf(c.said, "dev", nil); got != c.want || !found {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}
