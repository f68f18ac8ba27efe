package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/kalypso-io/kalypso/hub/api"
)

// step is a part of the story: a text, the commands to run, and the state to wait for.
type step struct {
	say  string
	runs []command
	// The ring to wait for, and the numbers of ok and failed assignments on its clusters then.
	// environment is "" if the step does not wait. An environment without rings has a ring "".
	environment, ring string
	ok, failed        int
	noted             bool // the hub has noted that the ring's release is complete, too
}

// command is one with the exit code that it has to have.
type command struct {
	text string
	exit int
}

// The exit codes of kalypso promote that are used.
const (
	done    = 0
	pending = 6
	blocked = 5
)

// before and after are the story until the release is broken, and from then on.
var (
	before = []step{
		{say: "200 clusters run nothing yet. The first release comes to dev.",
			runs: []command{{"kalypso promote --all", pending}}, environment: "dev", ok: 52},
		{say: "The clusters have pulled it, and reported.",
			runs: []command{{"kalypso hub status", done}}},
		{say: "So it comes to prod: first to the kiosks.", runs: []command{{"kalypso promote --all",
			pending}}, environment: "prod", ring: "canary", ok: 160},
		{say: "Then to the stores.", runs: []command{{"kalypso promote --all", pending}},
			environment: "prod", ring: "stores", ok: 300},
		{runs: []command{{"kalypso promote --all", done},
			{"kalypso hub status prod --by ring,workload", done}}},
		{
			say: "Version 2 of the checkout.",
			runs: []command{
				{`perl -pi -e 's/"1.4.0"/"2.0.0"/' workloads.cue`, done},
				{`git commit -q -a -m "Checkout 2.0.0" && git push -q origin main`, done},
				{"kalypso promote --all", pending},
			},
			environment: "dev", ok: 52,
		},
		{say: "It runs in dev, and on the kiosks.", runs: []command{{"kalypso promote --all", pending}},
			environment: "prod", ring: "canary", ok: 160},
		{runs: []command{{"kalypso promote --all", pending}}, environment: "prod", ring: "stores",
			ok: 273, failed: 27},
	}
	after = []step{
		{say: "It has broken some. How many?",
			runs: []command{{"kalypso hub status prod --ring stores", done}}},
		{say: "Which are the 27, since when, and why?",
			runs: []command{{"kalypso hub status prod --workload checkout --state failed", done}}},
		{say: "The message names a printer. How many sites have it?",
			runs: []command{{"kalypso get clusters prod -l printer=rp80 | tail -n +2 | wc -l | tr -d ' '",
				done}}},
		{say: "The promotion counts the same way.", runs: []command{
			{"kalypso promote --all", blocked},
			{"kalypso promote status --env prod", done},
		}},
		{
			say:         "Back.",
			runs:        []command{{`kalypso rollback prod --ring stores --reason "the checkout does not know old printers"`, done}},
			environment: "prod", ring: "stores", ok: 300, noted: true,
		},
		{runs: []command{
			{"kalypso hub status prod --by ring,workload,version", done},
			{"kalypso promote status --env prod", done},
		}},
		{say: "What has happened at one of the 27?", runs: []command{
			{"kalypso hub history prod --cluster store-005 --workload checkout", done},
			{"kalypso hub cluster store-005", done},
		}},
		{say: "What was released, and how did it go?", runs: []command{{"kalypso hub releases", done}}},
	}
)

func (d *demo) story(ctx context.Context) error {
	fmt.Fprintln(d.out, "$ export KALYPSO_HUB="+d.hub.address)
	err := d.await(ctx, "the hub has read the platform",
		func(all *api.Environments) bool { return len(all.Environments) == 2 })
	if err != nil {
		return err
	}
	if err := d.play(ctx, before); err != nil {
		return err
	}
	if d.broken != nil {
		d.broken(d.hub.address)
	}
	return d.play(ctx, after)
}

func (d *demo) play(ctx context.Context, steps []step) error {
	for _, s := range steps {
		if s.say != "" {
			fmt.Fprintf(d.out, "\n# %s\n", s.say)
		}
		for _, c := range s.runs {
			if err := d.command(ctx, c); err != nil {
				return err
			}
		}
		select {
		case <-d.pushed:
			if err := d.deliver(ctx); err != nil {
				return err
			}
		default:
		}
		if s.environment != "" {
			if err := d.rollout(ctx, &s); err != nil {
				return err
			}
		}
	}
	return nil
}

// command runs a command in the platform's folder, and prints it with its output.
func (d *demo) command(ctx context.Context, c command) error {
	fmt.Fprintln(d.out, "$ "+c.text)
	cmd := exec.CommandContext(ctx, "sh", "-c", c.text)
	cmd.Dir, cmd.Env = d.path("platform"), d.env
	out, err := cmd.CombinedOutput()
	for line := range strings.Lines(string(out)) {
		fmt.Fprintln(d.out, strings.TrimRight(line, " \n"))
	}
	exit := (*exec.ExitError)(nil)
	if err != nil && (!errors.As(err, &exit) || ctx.Err() != nil) {
		return err
	}
	if code := cmd.ProcessState.ExitCode(); code != c.exit {
		return fmt.Errorf("%s: exit code %d, and not %d\n%s", c.text, code, c.exit, d.hub.last())
	}
	return nil
}
