package kubernetes

import (
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// mostStarts is how many starts of a schedule are looked at: more than those of a week at one
// a minute, and several years at one a day.
const mostStarts = 12_000

// Overlapping returns the CronJobs of a projection whose runs may add up without an end, as
// "Kind name", in the order of the objects: they allow several runs at once, and nobody knows
// how many start before the first has to end.
func Overlapping(p *model.Projection) []string {
	var out []string
	for _, o := range Items(p.Objects) {
		if isCronJob(o.Value) && overlap(o.Value) == 0 {
			out = append(out, "CronJob "+text(o.Value, "metadata", "name"))
		}
	}
	return out
}

func isCronJob(v model.Value) bool {
	return text(v, "kind") == "CronJob" && group(text(v, "apiVersion")) == "batch"
}

// overlap returns how many runs of a CronJob there are at once, where each starts in time; 0
// where nobody knows. Kubernetes allows several where the CronJob does not say otherwise, and ends
// each after the activeDeadlineSeconds of its Job, whatever its pods do.
func overlap(cronJob model.Value) int64 {
	var spec batchv1.CronJobSpec
	if v, found := cronJob.Lookup("spec"); found && !decode(v, &spec) {
		return 0
	}
	if spec.ConcurrencyPolicy == batchv1.ForbidConcurrent || spec.ConcurrencyPolicy == batchv1.ReplaceConcurrent {
		return 1
	}
	schedule, err := cron.ParseStandard(spec.Schedule) // which Kubernetes reads it with
	deadline := spec.JobTemplate.Spec.ActiveDeadlineSeconds
	if err != nil || deadline == nil {
		return 0
	}
	return starts(schedule, time.Duration(*deadline)*time.Second)
}

// starts returns the most starts of a schedule within a time; 0 where they are more than are
// looked at.
func starts(schedule cron.Schedule, within time.Duration) int64 {
	most := int64(1)
	var recent []time.Time // those within the time before the next one
	next := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	for range mostStarts {
		if next = schedule.Next(next); next.IsZero() { // such as on 30 February
			return most
		}
		for len(recent) > 0 && next.Sub(recent[0]) >= within {
			recent = recent[1:]
		}
		recent = append(recent, next)
		most = max(most, int64(len(recent)))
	}
	if most >= mostStarts {
		return 0
	}
	return most
}
