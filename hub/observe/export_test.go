package observe

import "context"

// Bound sets the time limit of each API server, by its context.
func (c *Clusters) Bound(bound func(ctx context.Context, name string) (context.Context, context.CancelFunc)) {
	c.bound = bound
}
