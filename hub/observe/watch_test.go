package observe_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/observe"
	"github.com/kalypso-io/kalypso/internal/apiserver"
)

func (c *consumers) client() *api.Client {
	c.Helper()
	client, err := api.NewClient(c.url, os.Getenv("KALYPSO_HUB_TOKEN"))
	if err != nil {
		c.Fatal(err)
	}
	return client
}

// watch reports the state again and again, as kalypso observe --every does, and queries the hub
// after each report. end stops this. It returns the states, commits and messages in the hub's
// answers about each workload, without repetitions.
func (c *consumers) watch(account string) (end func() map[string][]string) {
	c.Helper()
	servers, err := apiserver.Open(account, nil)
	if err != nil {
		c.Fatal(err)
	}
	hub := c.client()
	ctx, cancel := context.WithCancel(context.Background())
	c.Cleanup(cancel)
	said, done := map[string][]string{}, make(chan error, 1)
	clusters, sender := observe.NewClusters(servers, func(string) string { return "e1" }, time.Now), observe.NewSender(hub)
	once := func() error {
		reports, err := clusters.Reports(ctx)
		if err != nil {
			return err
		}
		if sent, err := sender.Send(ctx, reports); err != nil || sent.Err() != nil {
			return fmt.Errorf("%w, %w", err, sent.Err())
		}
		answer, err := hub.Assignments(ctx, api.Query{}, "", 10)
		if err != nil {
			return err
		}
		for _, row := range answer.Assignments {
			is, before := fmt.Sprintf("%s %.7s %s", row.State, row.Commit, row.Message), said[row.Workload]
			if len(before) == 0 || before[len(before)-1] != is {
				said[row.Workload] = append(before, is)
			}
		}
		return nil
	}
	tick := time.NewTicker(50 * time.Millisecond)
	go func() {
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				done <- nil
				return
			case <-tick.C:
			}
			if err := once(); err != nil && ctx.Err() == nil {
				done <- err
				return
			}
		}
	}()
	return func() map[string][]string {
		c.Helper()
		cancel()
		if err := <-done; err != nil {
			c.Error(err)
		}
		return said
	}
}
