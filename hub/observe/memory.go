package observe

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kalypso-io/kalypso/promotion/rollout"
	"github.com/kalypso-io/kalypso/promotion/rollout/reconcilers"
)

// memory has how the objects of an API server failed when they were last read. While a commit that
// failed is applied again, its object does not say all of that, or nothing.
type memory struct{ was, is map[string]failure }

// failure is how an object failed to apply a commit.
type failure struct {
	commit     string
	generation int64
	message    string
	since      time.Time
}

// recall makes a failure of a judgement that is about one more attempt at what failed. There may be no
// memory.
func (m *memory) recall(title string, o *unstructured.Unstructured, j *reconcilers.Judgement) {
	if m == nil {
		return
	}
	key, commit := title+" "+string(o.GetUID()), first(j.At)
	switch was, there := m.was[key]; {
	case commit == "":
	case j.State == rollout.Failed && !j.Again:
		m.is[key] = failure{commit, o.GetGeneration(), j.Message, j.Since}
	case j.Again && there && was.commit == commit && was.generation == o.GetGeneration():
		if j.Since.IsZero() {
			j.Since = was.since
		}
		j.State, j.Message, m.is[key] = rollout.Failed, was.message, was
	}
}
