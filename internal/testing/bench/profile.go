//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/cache"
)

// collectAt is the setting of the kalypso command if GOGC is not set. With it, the profiles have
// the right share of the collector.
const collectAt = 400

// profileBuilds profiles builds of a job's platform as a git commit: cold, without changes, and
// with another value of one config. They run in this process, each with the caches of the one
// before.
func profileBuilds(j job) error {
	debug.SetGCPercent(collectAt)
	b := &bench{job: j}
	repository := filepath.Join(j.Dir, "profiled.git")
	if _, err := output(git(j.Dir, "init", "-q", "--bare", repository)); err != nil {
		return err
	}
	for _, name := range []string{"cold", "idle", "value"} {
		if name == "value" {
			c := &change{Config: j.Config}
			if err := c.find(j.configs()); err != nil {
				return err
			}
			if err := c.write(0); err != nil {
				return err
			}
		}
		path := fmt.Sprintf("%s-%d-%s", j.Profile, j.Assignments, name)
		if err := profiled(path, func() error { return buildOnce(j, repository) }); err != nil {
			return err
		}
	}
	return b.remove(repository)
}

// buildOnce is `kalypso build --git`.
func buildOnce(j job, repository string) (err error) {
	c, err := cache.Open(cache.Options{Mode: cache.On, Dir: filepath.Join(j.Dir, "cache-profiled")})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	built, _, err := compiler.Write(context.Background(), compiler.Request{Dir: j.platform(), Cache: c},
		compiler.Output{Git: repository, Branch: branch})
	if err != nil {
		return err
	}
	if built.Failed() {
		return fmt.Errorf("the platform has errors, the first of which is: %s", built.Diagnostics[0].Message)
	}
	return nil
}

// profiled runs a function and writes its CPU profile and the profile of its allocations, next to
// each other.
func profiled(path string, f func() error) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	cpu, err := os.Create(path + ".cpu")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cpu.Close()) }()
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return err
	}
	err = f()
	pprof.StopCPUProfile()
	memory, createErr := os.Create(path + ".memory")
	if createErr != nil {
		return errors.Join(err, createErr)
	}
	runtime.GC() // the profile is as of the last collection
	return errors.Join(err, pprof.Lookup("allocs").WriteTo(memory, 0), memory.Close())
}
