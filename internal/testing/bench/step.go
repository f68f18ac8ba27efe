//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	cuecmd "cuelang.org/go/cmd/cue/cmd"

	"github.com/kalypso-io/kalypso/internal/testing/generate"
)

// stepVariable has the step for a process of this program, and jobVariable its input.
//
// Such processes do all work that needs memory. On Linux the peak memory of a process is at least
// the memory of its parent at the time of the start. The kernel keeps the larger of the two over
// exec. This process therefore must stay small.
const (
	stepVariable = "KALYPSO_BENCH_STEP"
	jobVariable  = "KALYPSO_BENCH_JOB"
)

// job is a platform to work on.
type job struct {
	Assignments int
	Distinct    bool
	Seed        uint64
	Dir         string // for the platform and everything made from it
	Profile     string // the path of profiles, without their extension
	Config      string // to change, for a profile
	Changes     []int  // numbers of files that commits change, for promotions
}

func (j job) platform() string { return filepath.Join(j.Dir, "repository", "platform") }
func (j job) configs() string  { return filepath.Join(j.platform(), "environments", "dev") }

// step returns the command of a step.
func step(name string, j job, args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(cleanEnvironment(), stepVariable+"="+name, jobVariable+"="+string(text))
	return cmd, nil
}

// runStepOf runs a step to its end.
func runStepOf(name string, j job) error {
	cmd, err := step(name, j)
	if err != nil {
		return err
	}
	_, err = output(cmd)
	return err
}

// output runs a command and returns its stdout. Its error contains the stderr of the command.
func output(cmd *exec.Cmd) ([]byte, error) {
	return outputWhile(cmd, func(*os.Process) {})
}

// outputWhile is output, and calls a function with the process as soon as it runs.
func outputWhile(cmd *exec.Cmd, runs func(*os.Process)) ([]byte, error) {
	var printed, talk bytes.Buffer
	cmd.Stdout, cmd.Stderr = &printed, &talk
	err := cmd.Start()
	if err == nil {
		runs(cmd.Process)
		err = cmd.Wait()
	}
	if err != nil {
		return printed.Bytes(), fmt.Errorf("%s: %w\n%s", cmd, err, &talk)
	}
	return printed.Bytes(), nil
}

// runStep runs the step of such a process.
func runStep(name string) error {
	if name == "cue" {
		os.Exit(cuecmd.Main())
	}
	var j job
	if err := json.Unmarshal([]byte(os.Getenv(jobVariable)), &j); err != nil {
		return err
	}
	switch name {
	case "generate":
		size := generate.ForAssignments(j.Assignments)
		size.DistinctTuples = j.Distinct
		_, err := generate.Write(j.platform(), j.Seed, size)
		return err
	case "changing":
		return writeChangings(j)
	case "comprehension":
		return writeComprehensions(j)
	case "compare":
		return compareValues(j)
	case "profile":
		return profileBuilds(j)
	}
	return fmt.Errorf("unknown step %q", name)
}
