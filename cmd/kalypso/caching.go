package main

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/cache"
)

// caching are the options about the cache.
type caching struct {
	mode     string
	maxBytes int64
}

func (c *caching) flags(flags *pflag.FlagSet) {
	flags.StringVar(&c.mode, "cache", string(cache.On), "how to use the cache: on, off, or verify, which computes everything and fails if the cache was wrong")
}

// withCache calls a function with the open cache. One that cannot be used is no
// failure: the work only takes longer.
func (g *global) withCache(use func(*cache.Cache) error) error {
	switch cache.Mode(g.caching.mode) {
	case cache.On, cache.Off, cache.Verify:
	default:
		return usagef("--cache %s: there are on, off and verify", g.caching.mode)
	}
	c, err := cache.Open(cache.Options{Mode: cache.Mode(g.caching.mode), MaxBytes: g.caching.maxBytes})
	if err != nil {
		fmt.Fprintf(g.err, "kalypso: warning: %v\n", err)
	}
	err = use(c)
	if closing := c.Close(); closing != nil {
		fmt.Fprintf(g.err, "kalypso: warning: the cache: %v\n", closing)
	}
	if lies := c.Lies(); len(lies) > 0 {
		for _, lie := range lies {
			fmt.Fprintf(g.err, "kalypso: the cache was wrong about %s\n", lie)
		}
		fmt.Fprintln(g.err, "kalypso: nothing of that was used, and the cache is corrected; if nobody changed its files, please report it")
		if err == nil {
			err = errDifference
		}
	}
	return err
}

// compile compiles environments and calls a function with them.
func (g *global) compile(ctx context.Context, environments []string, use func(*compiler.Build) error) error {
	return g.withCache(func(c *cache.Cache) error {
		r := compiler.Request{Dir: g.dir, Environments: environments, Cache: c}
		stop := g.showProgress(ctx, &r)
		b, err := compiler.Compile(ctx, r)
		stop()
		if err != nil {
			return err
		}
		return use(b)
	})
}
