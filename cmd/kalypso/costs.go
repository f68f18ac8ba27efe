package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/supervisor"
	"github.com/kalypso-io/kalypso/internal/again"
)

// costs are the options about what the evaluation of CUE may cost.
type costs struct {
	cpu    time.Duration
	memory string
	given  *pflag.FlagSet
}

func (c *costs) flags(flags *pflag.FlagSet) {
	c.given = flags
	flags.DurationVar(&c.cpu, "evaluation-cpu", 0, "how much `TIME` of processors the evaluation of "+
		"an environment's CUE may take (else what the base says, or 5m)")
	flags.StringVar(&c.memory, "evaluation-memory", "", "how much memory the process may have "+
		"meanwhile, as a `SIZE` such as 8Gi (else what the base says, or 4Gi, or 3/4 of the machine's)")
}

// bounds returns the bounds that the flags give; zero for none.
func (c *costs) bounds() (supervisor.Bounds, error) {
	b := supervisor.Bounds{CPU: c.cpu}
	if c.given.Changed("evaluation-cpu") && c.cpu <= 0 {
		return b, usagef("--evaluation-cpu %s: it is more than nothing, such as 10m", c.cpu)
	}
	if !c.given.Changed("evaluation-memory") {
		return b, nil
	}
	q, err := resource.ParseQuantity(c.memory)
	if b.Memory = q.Value(); err != nil || b.Memory <= 0 {
		return b, usagef("--evaluation-memory %s: write a size such as 8Gi", c.memory)
	}
	return b, nil
}

// supervise begins to bound what evaluations cost, from where the program has begun again.
func (g *global) supervise() error {
	bounds, err := g.costs.bounds()
	if err != nil {
		return err
	}
	o := supervisor.Options{
		Bounds: bounds, Again: g.beginAgain, Fail: func(t supervisor.Trip) { g.endOf(t) },
		Ceiling: setMemoryCeiling, Guard: again.Guard,
	}
	if err := again.Begin(&o.State); err != nil {
		return err
	}
	if s := o.State; len(s.Trips)+len(s.Sought) > mostAgain {
		g.endOf(append(s.Trips, s.Sought...)...)
	}
	g.supervisor = supervisor.New(o)
	return nil
}

// mostAgain is how many trips the program begins again with. More do not fit into a variable
// everywhere: then it ends with them.
const mostAgain = 100

// beginAgain makes the program begin again with a state. It does not return.
func (g *global) beginAgain(s supervisor.State) {
	g.stopProgress()
	err := again.With(s)
	fmt.Fprintf(g.err, "kalypso: cannot begin again: %v\n", err)
	os.Exit(int(exitFailure))
}

// endOf ends the program because of trips, where it cannot begin again.
func (g *global) endOf(trips ...supervisor.Trip) {
	g.stopProgress()
	var ds []diag.Diagnostic
	for _, t := range trips {
		ds = append(ds, t.Diagnostic())
	}
	_ = g.report(g.err, ds)
	os.Exit(int(exitPlatform))
}

// printing is where a command prints its result. With a part of it out, the program must not
// begin again.
type printing struct {
	io.Writer
	g *global
}

// Write writes a part of the result.
func (p printing) Write(b []byte) (int, error) {
	p.g.supervisor.MayBeginAgain(false)
	return p.Writer.Write(b)
}
