package reconcilers_test

import (
	"testing"

	"github.com/kalypso-io/kalypso/backends/all"
	"github.com/kalypso-io/kalypso/promotion/rollout/reconcilers"
)

// Each API group that a backend names has a kind whose status can be read.
func TestInGroups(t *testing.T) {
	for _, b := range all.List() {
		for _, group := range b.Traits().Groups {
			if len(reconcilers.InGroups([]string{group})) == 0 {
				t.Errorf("%s applies assignments by objects of %s, whose status nothing reads", b.Name(), group)
			}
		}
	}
}
