package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/cache/oci"
)

// The environment's words for what the flags of the remote cache say. A flag that
// is given, also as empty, holds.
const (
	remoteEnv         = "KALYPSO_REMOTE_CACHE"
	remoteReadOnlyEnv = "KALYPSO_REMOTE_CACHE_READ_ONLY"
)

// caching are the options about the cache.
type caching struct {
	mode           string
	remote         string
	remoteReadOnly bool
	given          *pflag.FlagSet
}

func (c *caching) flags(flags *pflag.FlagSet) {
	c.given = flags
	flags.StringVar(&c.mode, "cache", string(cache.On), "how to use the cache: on, off, or verify, "+
		"which computes everything and fails if the cache was wrong")
	flags.StringVar(&c.remote, "remote-cache", "", "share the cache through `oci://HOST/REPOSITORY` (else $"+remoteEnv+")")
	flags.BoolVar(&c.remoteReadOnly, "remote-cache-read-only", false, "only read from the remote "+
		"cache (else $"+remoteReadOnlyEnv+"=1)")
}

// withCache calls a function with the open cache. One that cannot be used is no
// failure: the work only takes longer.
func (g *global) withCache(use func(*cache.Cache) error) error {
	o := cache.Options{Mode: cache.Mode(g.caching.mode)}
	switch o.Mode {
	case cache.On, cache.Off, cache.Verify:
	default:
		return usagef("--cache %s: there are on, off and verify", g.caching.mode)
	}
	remote, err := g.caching.openRemote()
	switch usage := (usageError{}); {
	case errors.As(err, &usage):
		return err
	case err != nil:
		fmt.Fprintf(g.err, "kalypso: warning: no remote cache: %v\n", err)
	case remote != nil:
		o.Remote = remote // a nil *oci.Remote would be no nil cache.Remote
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

// openRemote returns the remote cache, nil for none. What the flags or the
// environment say wrongly is a usageError.
func (c *caching) openRemote() (*oci.Remote, error) {
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

// compile compiles environments and calls a function with them.
func (g *global) compile(ctx context.Context, environments []string, use func(*compiler.Build) error) error {
	return g.withCache(func(c *cache.Cache) error {
		r := g.request(environments, c)
		stop := g.showProgress(ctx, &r)
		b, err := compiler.Compile(ctx, r)
		stop()
		if err != nil {
			return err
		}
		return errors.Join(use(b), b.Close())
	})
}
