package promotion

import (
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/promotion/forge"
)

func TestCourse(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 3, 2, 9, minute, 0, 0, time.UTC) }
	said := func(minute int, state forge.State, text string) forge.Status {
		return forge.Status{Name: "kalypso/dev", State: state, Description: text, At: at(minute)}
	}
	for _, c := range []struct {
		name string
		said []forge.Status
		want course
	}{
		{"a rollout", []forge.Status{said(1, forge.Pending, "as a"), said(2, forge.Success, "ok")}, course{at(1), forge.Success, at(2), "ok"}},
		{"a failure that mended", []forge.Status{said(1, forge.Pending, "as a"), said(2, forge.Failure, "no"), said(3, forge.Success, "ok")}, course{at(1), forge.Success, at(3), "ok"}},
		{"a runner that is late", []forge.Status{said(1, forge.Pending, "as a"), said(2, forge.Success, "ok"), said(3, forge.Pending, "as a")}, course{at(1), forge.Success, at(2), "ok"}},
		{"another stay", []forge.Status{said(1, forge.Pending, "as a"), said(2, forge.Success, "ok"), said(3, forge.Pending, "as b")}, course{at(3), forge.Pending, at(3), "as b"}},
		{"another stay, of one that nobody reported", []forge.Status{said(1, forge.Pending, "as a"), said(3, forge.Pending, "as b")}, course{at(3), forge.Pending, at(3), "as b"}},
	} {
		if got, found := courseOf(c.said, "dev", nil); got != c.want || !found {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}
