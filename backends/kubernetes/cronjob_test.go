package kubernetes

import (
	"slices"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// A CronJob that allows several runs at once counts as many runs as start within the time of
// one run. If that time is not known, it has no bound.
func TestOverlap(t *testing.T) {
	for spec, want := range map[string]int64{
		`{"schedule": "*/5 * * * *", "concurrencyPolicy": "Forbid", "jobTemplate": {}}`:                                     1,
		`{"schedule": "*/5 * * * *", "concurrencyPolicy": "Replace", "jobTemplate": {}}`:                                    1,
		`{"schedule": "*/5 * * * *", "concurrencyPolicy": "Allow", "jobTemplate": {}}`:                                      0,
		`{"schedule": "*/5 * * * *", "jobTemplate": {}}`:                                                                    0,
		`{"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": {"spec": {"activeDeadlineSeconds": 60}}}}}`:       0, // of each pod
		`{"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"activeDeadlineSeconds": 300}}}`:                              1,
		`{"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"activeDeadlineSeconds": 301}}}`:                              2,
		`{"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"activeDeadlineSeconds": 3600}}}`:                             12,
		`{"schedule": "0,1 * * * *", "jobTemplate": {"spec": {"activeDeadlineSeconds": 3600}}}`:                             2,
		`{"schedule": "* 3 1 1 *", "concurrencyPolicy": "Allow", "jobTemplate": {"spec": {"activeDeadlineSeconds": 7200}}}`: 60,
		`{"schedule": "@every 10s", "jobTemplate": {"spec": {"activeDeadlineSeconds": 60}}}`:                                6,
		`{"schedule": "@daily", "jobTemplate": {"spec": {"activeDeadlineSeconds": 60}}}`:                                    1,
		`{"schedule": "0 0 30 2 *", "jobTemplate": {"spec": {"activeDeadlineSeconds": 60}}}`:                                1,
		`{"schedule": "* * * * *", "jobTemplate": {"spec": {"activeDeadlineSeconds": 100000000}}}`:                          0,
		`{"schedule": "often", "jobTemplate": {"spec": {"activeDeadlineSeconds": 60}}}`:                                     0,
		`{"schedule": "* * * * *", "jobTemplate": {"spec": {"activeDeadlineSeconds": "60"}}}`:                               0,
	} {
		object := value(t, `{"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "a"}, "spec": `+spec+`}`)
		if got := overlap(object); got != want {
			t.Errorf("%s: %d, want %d", spec, got, want)
		}
		endless := Overlapping(&model.Projection{Objects: []model.Projected{{Value: object}}})
		if (want == 0) != slices.Equal(endless, []string{"CronJob a"}) {
			t.Errorf("%s: %q", spec, endless)
		}
	}
}
