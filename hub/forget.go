package hub

import (
	"context"
	"fmt"
	"strings"

	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/hub/store"
	"github.com/kalypso-io/kalypso/internal/terminal"
)

// ListedError is a cluster that cannot be forgotten: the platform lists it.
type ListedError struct {
	Cluster      string
	Environments []string
}

// Error names the environments, and says what to do.
func (e *ListedError) Error() string {
	return fmt.Sprintf("the platform lists cluster %s, in %s: take it out of the platform",
		terminal.Line(e.Cluster), strings.Join(e.Environments, ", "))
}

// Forget forgets a cluster that the platform does not list, until it reports again; false where there
// is none.
func (h *Hub) Forget(ctx context.Context, cluster string) (there bool, err error) {
	var listed []string
	forget := func(ctx context.Context, tx *store.Tx) (changes *state.Changes, err error) {
		if changes, listed = h.fleet.Load().Forget(cluster); changes == nil {
			return nil, nil
		}
		there = true
		// for other hubs: without a time it is forgotten
		return changes, tx.Clusters(ctx, []store.Cluster{{Cluster: cluster}})
	}
	err = h.ask(ctx, &request{cluster: cluster, do: forget})
	if len(listed) > 0 {
		return false, &ListedError{cluster, listed}
	}
	return there, err
}
