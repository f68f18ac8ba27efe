package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/hub"
	"github.com/kalypso-io/kalypso/hub/notify"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/forges"
)

// notifyOptions are the flags that say whom the hub tells what happens.
type notifyOptions struct {
	file     string
	statuses bool
	targets  []*notify.Target
}

func (o *notifyOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.file, "notify", "", "a `FILE` that lists webhooks and chats to tell of "+
		"promotions, failures, drift and stale clusters")
	f.BoolVar(&o.statuses, "forge-status", false, "show rollouts on the forge, as statuses of "+
		"commits and as a comment on their change requests; it needs the token of kalypso promote")
}

// check reads the file.
func (o *notifyOptions) check() error {
	if o.file == "" {
		return nil
	}
	data, err := os.ReadFile(o.file)
	if err != nil {
		return fmt.Errorf("--notify: %w", err)
	}
	if o.targets, err = notify.Parse(data); err != nil {
		return fmt.Errorf("--notify %s: %w", o.file, err)
	}
	return nil
}

// start tells until the context ends.
func (o *notifyOptions) start(ctx context.Context, h *hub.Hub, url, kind string, problem func(error)) {
	if len(o.targets) > 0 {
		go notify.New(h, o.targets, url, problem).Run(ctx)
	}
	if o.statuses {
		open := func(ctx context.Context, repository string) (forge.Forge, error) {
			return forges.Open(ctx, repository, kind)
		}
		go notify.NewStatuses(h, open, url, problem).Run(ctx)
	}
}
