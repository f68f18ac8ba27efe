package observe

import "context"

// Bound sets what bounds the time of each API server, by its context.
func (c *Clusters) Bound(bound func(ctx context.Context, name string) (context.Context, context.CancelFunc)) {
	c.bound = bound
}
