//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"syscall"
	"time"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/internal/generate"
)

// stepVariable tells a process of this program what to do, and jobVariable with
// what.
const (
	stepVariable = "KALYPSO_BENCH_STEP"
	jobVariable  = "KALYPSO_BENCH_JOB"
)

// job is one build to measure.
type job struct {
	Assignments int
	Distinct    bool
	Seed        uint64
	Dir         string // for the platform and its output
	Profile     string // where the profiles go, without their extension; "" for none
}

func (j job) kind() string {
	if j.Distinct {
		return "distinct"
	}
	return "shared"
}

func (j job) platform() string { return filepath.Join(j.Dir, "platform") }

// result is what a build made.
type result struct{ Assignments, Tuples, Files int }

// cost is what a build made, and what it took.
type cost struct {
	result
	cpu    time.Duration // of which the kernel took system
	system time.Duration
	wall   time.Duration
	memory int64 // at its peak, in bytes
}

// measure generates a job's platform and builds it. Both stay where they are: to
// remove files makes it slow to create others (see workFolder).
//
// Generating is a process of its own too: on Linux the peak memory of a process
// is at least that of the one that started it, at that time (the kernel keeps
// the larger of the two over exec), so that this one must stay small.
func measure(j job) (*cost, error) {
	if _, err := start("generate", j, nil); err != nil {
		return nil, err
	}
	c := &cost{}
	begin := time.Now()
	state, err := start("build", j, &c.result)
	if err != nil {
		return nil, err
	}
	c.wall = time.Since(begin)
	c.system = state.SystemTime()
	c.cpu = state.UserTime() + c.system
	usage, ok := state.SysUsage().(*syscall.Rusage)
	if !ok {
		return nil, fmt.Errorf("no resource usage on %s", runtime.GOOS)
	}
	c.memory = int64(usage.Maxrss)
	if runtime.GOOS != "darwin" { // which counts bytes; the others count KiB
		c.memory *= 1024
	}
	return c, nil
}

// start runs a step in a process of its own, and reads what it prints into out.
func start(step string, j job, out any) (*os.ProcessState, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	var printed bytes.Buffer
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), stepVariable+"="+step, jobVariable+"="+string(text))
	cmd.Stdout, cmd.Stderr = &printed, os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w", step, err)
	}
	if out != nil {
		err = json.Unmarshal(printed.Bytes(), out)
	}
	return cmd.ProcessState, err
}

// runStep is what such a process does.
func runStep(step string, out io.Writer) error {
	var j job
	if err := json.Unmarshal([]byte(os.Getenv(jobVariable)), &j); err != nil {
		return err
	}
	switch step {
	case "generate":
		size := generate.ForAssignments(j.Assignments)
		size.DistinctTuples = j.Distinct
		_, err := generate.Write(j.platform(), j.Seed, size)
		return err
	case "build":
		var b *compiler.Build
		err := profiled(j.Profile, func() (err error) {
			b, err = build(j, out)
			return err
		})
		runtime.KeepAlive(b) // it is in the profile
		return err
	}
	return fmt.Errorf("unknown step %q", step)
}

// build is `kalypso build --to`.
func build(j job, out io.Writer) (*compiler.Build, error) {
	b, written, err := compiler.Write(context.Background(), compiler.Request{Dir: j.platform()},
		compiler.Output{Dir: filepath.Join(j.Dir, "out")})
	if err != nil {
		return nil, err
	}
	if b.Failed() {
		return nil, fmt.Errorf("the platform has errors, the first of which is: %s", b.Diagnostics[0].Message)
	}
	var r result
	for _, e := range b.Environments {
		r.Assignments += e.Summary.Assignments
		r.Tuples += len(e.Plan.Tuples)
		r.Files += len(written.Changes[e.Name].Written)
	}
	return b, json.NewEncoder(out).Encode(r)
}

// profiled runs a function and writes, beside each other, its CPU profile and
// that of the memory: what it allocated, and what of that it has kept.
func profiled(path string, f func() error) (err error) {
	if path == "" {
		return f()
	}
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
	runtime.GC() // what is kept is as of the last collection
	return errors.Join(err, pprof.Lookup("allocs").WriteTo(memory, 0), memory.Close())
}
