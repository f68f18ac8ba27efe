package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/cache/oci"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/supervisor"
	"github.com/kalypso-io/kalypso/internal/again"
)

// The environment variables for the flags of the remote cache. If a flag is set, even to an empty
// value, it overrides the variable.
const (
	remoteEnv         = "KALYPSO_REMOTE_CACHE"
	remoteReadOnlyEnv = "KALYPSO_REMOTE_CACHE_READ_ONLY"
)

// cacheFlags are the options about the cache.
type cacheFlags struct {
	mode           string
	remote         string
	remoteReadOnly bool
	given          *pflag.FlagSet
}

func (c *cacheFlags) flags(flags *pflag.FlagSet) {
	c.given = flags
	flags.StringVar(&c.mode, "cache", string(cache.On), "how to use the cache: on, off, or verify, "+
		"which computes everything and fails if the cache was wrong")
	flags.StringVar(&c.remote, "remote-cache", "",
		"share the cache through `oci://HOST/REPOSITORY` (else $"+remoteEnv+")")
	flags.BoolVar(&c.remoteReadOnly, "remote-cache-read-only", false, "only read from the remote "+
		"cache (else $"+remoteReadOnlyEnv+"=1)")
}

// withCache calls a function with the open cache. If the cache cannot be used, withCache prints a
// warning and calls the function anyway. The work then only takes longer.
func (g *platform) withCache(use func(*cache.Cache) error) error {
	o := cache.Options{Mode: cache.Mode(g.cacheFlags.mode)}
	switch o.Mode {
	case cache.On, cache.Off, cache.Verify:
	default:
		return usagef("--cache %s: there are on, off and verify", g.cacheFlags.mode)
	}
	remote, err := g.cacheFlags.openRemote()
	switch usage := (usageError{}); {
	case errors.As(err, &usage):
		return err
	case err != nil:
		fmt.Fprintf(g.err, "kalypso: warning: no remote cache: %v\n", err)
	case remote != nil:
		o.Remote = remote // a nil *oci.Remote would become a cache.Remote that is not nil
	}
	c, err := cache.Open(o)
	if err != nil {
		fmt.Fprintf(g.err, "kalypso: warning: %v\n", err)
	}
	err = use(c)
	if closing := c.Close(); closing != nil {
		fmt.Fprintf(g.err, "kalypso: warning: the cache: %v\n", closing)
	}
	if failure := c.RemoteErr(); failure != nil {
		fmt.Fprintf(g.err, "kalypso: warning: %v\n", failure)
	}
	if lies := c.Lies(); len(lies) > 0 {
		for _, lie := range lies {
			fmt.Fprintf(g.err, "kalypso: the cache was wrong about %s\n", lie)
		}
		fmt.Fprintln(g.err, "kalypso: nothing of that was used, and the cache is corrected; if nobody "+
			"changed its files, please report it")
		if err == nil {
			err = errDifference
		}
	}
	return err
}

// openRemote returns the remote cache. It returns nil if none is configured, and a usageError if
// the flags or the environment variables are wrong.
func (c *cacheFlags) openRemote() (*oci.Remote, error) {
	reference, readOnly := c.remote, c.remoteReadOnly
	if !c.given.Changed("remote-cache") {
		reference = os.Getenv(remoteEnv)
	}
	if text := os.Getenv(remoteReadOnlyEnv); text != "" && !c.given.Changed("remote-cache-read-only") {
		var err error
		if readOnly, err = strconv.ParseBool(text); err != nil {
			return nil, usagef("%s=%s: it is 1 or 0", remoteReadOnlyEnv, text)
		}
	}
	if reference == "" || cache.Mode(c.mode) == cache.Off {
		return nil, nil
	}
	remote, err := oci.Open(reference, oci.Options{ReadOnly: readOnly})
	if wrong := (*oci.ReferenceError)(nil); errors.As(err, &wrong) {
		return nil, usageError{err}
	}
	return remote, err
}

// compileRequest compiles, and shows progress meanwhile.
func (g *platform) compileRequest(ctx context.Context, r compiler.Request) (*compiler.Build,
	error) {
	stop := g.showProgress(ctx, &r)
	defer stop()
	return compiler.Compile(ctx, r)
}

// compile compiles environments and calls a function with them.
func (g *platform) compile(ctx context.Context, environments []string,
	use func(*compiler.Build) error) error {
	return g.withCache(func(c *cache.Cache) error {
		r := g.request(environments, c)
		b, err := g.compileRequest(ctx, r)
		if err != nil {
			return err
		}
		return errors.Join(use(b), b.Close())
	})
}

// boundFlags are the limits for the evaluation of CUE.
type boundFlags struct {
	cpu    time.Duration
	memory string
	given  *pflag.FlagSet
}

func (c *boundFlags) flags(flags *pflag.FlagSet) {
	c.given = flags
	flags.DurationVar(&c.cpu, "evaluation-cpu", 0, "how much `TIME` of processors the evaluation of "+
		"an environment's CUE may take (else what the base says, or 5m)")
	flags.StringVar(&c.memory, "evaluation-memory", "", "how much memory the process may have "+
		"meanwhile, as a `SIZE` such as 8Gi (else what the base says, or 4Gi, or 3/4 of the machine's)")
}

// bounds returns the bounds that the flags set; zero if they set none.
func (c *boundFlags) bounds() (supervisor.Bounds, error) {
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

// supervise starts to limit the cost of evaluations. It continues with the state from before the
// program started again.
func (g *platform) supervise() error {
	bounds, err := g.bounds.bounds()
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
	if s := o.State; len(s.Trips)+len(s.Sought) > maxAgain {
		g.endOf(append(s.Trips, s.Sought...)...)
	}
	g.supervisor = supervisor.New(o)
	return nil
}

// maxAgain is the largest number of trips when the program starts again. More do not fit into a
// variable on every system. The program then ends with them.
const maxAgain = 100

// beginAgain makes the program begin again with a state. It does not return.
func (g *platform) beginAgain(s supervisor.State) {
	g.stopProgress()
	err := again.With(s)
	fmt.Fprintf(g.err, "kalypso: cannot begin again: %v\n", err)
	os.Exit(int(exitFailure))
}

// endOf ends the program because of trips, if it cannot start again.
func (g *platform) endOf(trips ...supervisor.Trip) {
	g.stopProgress()
	var ds []diag.Diagnostic
	for _, t := range trips {
		ds = append(ds, t.Diagnostic())
	}
	_ = g.report(g.err, ds)
	os.Exit(int(exitPlatform))
}

// resultWriter gets the result of a command. After the command has written a part of it, the
// program must not start again.
type resultWriter struct {
	io.Writer
	g *platform
}

// Write writes a part of the result.
func (p resultWriter) Write(b []byte) (int, error) {
	p.g.supervisor.MayBeginAgain(false)
	return p.Writer.Write(b)
}
