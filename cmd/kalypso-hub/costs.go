package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kalypso-io/kalypso/compiler/supervisor"
	"github.com/kalypso-io/kalypso/internal/again"
)

// costs bound what the processes may cost that read and compile the platform, of which there
// may be several at once.
type costs struct {
	cpu    time.Duration
	memory string
}

func (c *costs) flags(flags *pflag.FlagSet) {
	flags.DurationVar(&c.cpu, "evaluation-cpu", 0, "how much `TIME` of processors reading and "+
		"compiling an environment may take (else what the base says, or 5m)")
	flags.StringVar(&c.memory, "evaluation-memory", "", "how much memory each process may have that "+
		"reads or compiles the platform, as a `SIZE` such as 4Gi (default: 2Gi, or a quarter of the machine's)")
}

// bounds returns the bounds. That of memory is not left to the platform.
func (c *costs) bounds() (supervisor.Bounds, error) {
	const megabyte = 1 << 20
	b := supervisor.Bounds{CPU: c.cpu, Memory: min(2<<30, supervisor.Available()/4) / megabyte * megabyte}
	if c.cpu < 0 {
		return b, fmt.Errorf("--evaluation-cpu %s: it is more than nothing, such as 10m", c.cpu)
	}
	if c.memory == "" {
		return b, nil
	}
	q, err := resource.ParseQuantity(c.memory)
	if b.Memory = q.Value(); err != nil || b.Memory <= 0 {
		return b, fmt.Errorf("--evaluation-memory %s: write a size such as 4Gi", c.memory)
	}
	return b, nil
}

// args hands the flags over to a process.
func (c *costs) args() []string {
	return []string{"--evaluation-cpu", c.cpu.String(), "--evaluation-memory", c.memory}
}

// mostAgain is how many trips a process begins again with: its environment has room for them.
const mostAgain = 100

// supervise bounds this process. What is beyond a bound while CUE is evaluated or records are
// read makes it begin again without that. Whatever else takes memory ends it; what names that.
func (c *costs) supervise(what string) (*supervisor.Supervisor, error) {
	bounds, err := c.bounds()
	if err != nil {
		return nil, err
	}
	end := func(err error) {
		fmt.Fprintln(os.Stderr, "kalypso-hub:", err)
		os.Exit(1)
	}
	o := supervisor.Options{Bounds: bounds, Otherwise: what, Fail: func(t supervisor.Trip) { end(&t) },
		Again: func(s supervisor.State) {
			end(fmt.Errorf("cannot begin again: %w", again.With(s)))
		}, Guard: again.Guard}
	// The collector works harder before the system gives no more.
	soft := bounds.Memory / 8 * 7
	debug.SetMemoryLimit(soft)
	o.Ceiling = func(most int64) { debug.SetMemoryLimit(min(most, soft)) }
	if err := again.Begin(&o.State); err != nil {
		return nil, err
	}
	if n := len(o.State.Trips); n > mostAgain {
		end(fmt.Errorf("%d parts of the platform are beyond bounds: %w", n, &o.State.Trips[n-1]))
	}
	return supervisor.New(o), nil
}
