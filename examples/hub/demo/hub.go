package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/kalypso-io/kalypso/hub/api"
)

// hubProcess is the hub while it runs.
type hubProcess struct {
	address string
	cmd     *exec.Cmd
	ended   chan struct{}

	mu  sync.Mutex
	log []string // the last lines
}

// startHub starts the hub, and waits until it listens.
func (d *demo) startHub(ctx context.Context) (*hubProcess, error) {
	cmd := exec.CommandContext(ctx, d.path("bin", "kalypso-hub"), "serve", "--local", "--repo",
		platformURL,
		"--listen", "127.0.0.1:0", "--database", d.path("hub.db"), "--poll", "10m")
	cmd.Dir, cmd.Env = d.dir, d.env
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) },
		15*time.Second
	messages, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &hubProcess{cmd: cmd, ended: make(chan struct{})}
	listening := make(chan string, 1)
	go func() {
		defer close(p.ended)
		for lines := bufio.NewScanner(messages); lines.Scan(); {
			line := lines.Text()
			if _, address, found := strings.Cut(line, "msg=listening address="); found {
				listening <- address
			}
			p.mu.Lock()
			p.log = append(p.log, line)
			p.log = p.log[max(0, len(p.log)-20):]
			p.mu.Unlock()
		}
		_ = cmd.Wait()
	}()
	select {
	case p.address = <-listening:
		return p, nil
	case <-p.ended:
		return nil, p.problem()
	}
}

// problem is the error of a hub that has ended by itself.
func (p *hubProcess) problem() error {
	return errors.New("the hub has ended:\n" + p.last())
}

// last returns the last lines of the hub's log.
func (p *hubProcess) last() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.log, "\n")
}

// stop ends the hub.
func (p *hubProcess) stop() {
	if p.cmd.Process.Signal(os.Interrupt) != nil {
		_ = p.cmd.Process.Kill()
	}
	<-p.ended
}

// patience is the maximum time until the hub reports an awaited state.
const patience = 2 * time.Minute

// await waits until the hub's answer about all environments is as expected: it is asked once, and
// answers again when something has changed.
func (d *demo) await(ctx context.Context, what string, is func(*api.Environments) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience,
		fmt.Errorf("%s: this has not come for %s", what, patience))
	defer cancel()
	seen := &api.Environments{}
	for tag := ""; ; {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet,
			d.hub.address+"/v1/environments?wait=30", nil)
		if err != nil {
			return err
		}
		if tag != "" {
			r.Header.Set("If-None-Match", tag)
		}
		answer, err := http.DefaultClient.Do(r)
		if err == nil && answer.StatusCode == http.StatusOK {
			tag = answer.Header.Get("ETag")
			*seen = api.Environments{}
			err = json.NewDecoder(answer.Body).Decode(seen)
		} else if err == nil && answer.StatusCode != http.StatusNotModified {
			err = fmt.Errorf("the hub answers %s", answer.Status)
		}
		if answer != nil {
			_ = answer.Body.Close()
		}
		if err == nil && is(seen) {
			return nil
		}
		if err != nil {
			saw, _ := json.MarshalIndent(seen, "", "  ")
			return fmt.Errorf("%s: %w\nthe hub says last:\n%s\n%s\nreports: %w", what,
				errors.Join(err, context.Cause(ctx)), saw, d.hub.last(),
				errors.Join(errors.New("as follows"), d.fleet.problem()))
		}
	}
}

// rollout waits until a ring has the numbers of ok and failed assignments on clusters that a
// step expects.
func (d *demo) rollout(ctx context.Context, s *step) error {
	return d.await(ctx, fmt.Sprintf("%s/%s has %d ok, %d failed", s.environment, s.ring, s.ok,
		s.failed), func(all *api.Environments) bool {
		for _, e := range all.Environments {
			for _, r := range e.Rings {
				if e.Name == s.environment && r.Name == s.ring {
					return r.OK == s.ok && r.Failed == s.failed && r.Wanted == s.ok+s.failed &&
						(!s.noted || d.isComplete(ctx, s))
				}
			}
		}
		return false
	})
}

// isComplete reports whether the hub has noted that the newest release of a ring is complete.
func (d *demo) isComplete(ctx context.Context, s *step) bool {
	found, err := d.fleet.hub.Releases(ctx, s.environment, "", 100)
	if err != nil {
		return false
	}
	for _, r := range found.Releases {
		if r.Ring == s.ring {
			return !r.Completed.IsZero()
		}
	}
	return false
}

// deliver delivers a push as the webhooks of a forge do: first to the hub, then to the clusters.
func (d *demo) deliver(ctx context.Context) error {
	answer, err := http.Post(d.hub.address+"/v1/ingest/forge", "application/json",
		strings.NewReader("{}"))
	if err != nil {
		return err
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusAccepted {
		return fmt.Errorf("the hub answers a forge's webhook with %s", answer.Status)
	}
	heads, err := d.fleet.heads(ctx)
	if err != nil {
		return err
	}
	err = d.await(ctx, "the hub has read the newest commits", func(all *api.Environments) bool {
		for _, e := range all.Environments {
			if e.Commit != heads[e.Name] {
				return false
			}
		}
		return len(all.Environments) > 0
	})
	if err != nil {
		return err
	}
	return d.fleet.pull(ctx, heads)
}
