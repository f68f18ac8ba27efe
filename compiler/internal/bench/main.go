//go:build unix

// Bench builds generated platforms, cold, and prints what that costs:
//
//	go run ./compiler/internal/bench [-sizes 1000,5000,20000] [-seed 1] [-dir DIR] [-profile DIR]
//
// Every platform is built once by a process of its own into a folder that does
// not exist, so that the peak memory, which the kernel counts per process, is
// that of one build. A machine that does other things too changes the wall time
// and hardly the CPU time: compare by that. System is the part of the CPU time
// that the kernel took, most of it for files. Growth is the CPU time, or the
// memory, per assignment over that of the size before: 1.00 is linear.
//
// Files are kept in memory where they can be, so that the disk and what else it
// has to do are left out; -dir . takes them in.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run is the program, or, if the environment says so, one of its processes.
func run(args []string, out io.Writer) error {
	if step := os.Getenv(stepVariable); step != "" {
		return runStep(step, out)
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	sizes := flags.String("sizes", "1000,5000,20000", "numbers of assignments")
	seed := flags.Uint64("seed", 1, "seed of the generated platforms")
	dir := flags.String("dir", "", "`folder` to work in, for its file system; default: memory, if there is room")
	profiles := flags.String("profile", "", "`folder` for the profiles of the builds, for go tool pprof")
	if err := flags.Parse(args); err != nil {
		return err
	}
	numbers, err := parseSizes(*sizes)
	if err != nil {
		return err
	}
	if *dir == "" {
		*dir = workFolder(numbers)
	}
	work, err := os.MkdirTemp(*dir, "kalypso-bench-")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Cold builds of generated platforms into %s, on %d processors:\n\n", *dir, runtime.NumCPU())
	err = measureAll(out, numbers, *seed, work, *profiles)
	return errors.Join(err, os.RemoveAll(work))
}

func parseSizes(list string) ([]int, error) {
	var sizes []int
	for s := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil || n < 100 {
			return nil, fmt.Errorf("-sizes: %q is not a number from 100", s)
		}
		sizes = append(sizes, n)
	}
	return sizes, nil
}

// measureAll prints a line for each kind and size, as soon as it is known.
func measureAll(out io.Writer, sizes []int, seed uint64, work, profiles string) error {
	printHeader(out)
	for _, distinct := range []bool{false, true} {
		var before *cost
		for _, n := range sizes {
			job := job{Assignments: n, Distinct: distinct, Seed: seed, Dir: filepath.Join(work, fmt.Sprint(n, "-", distinct))}
			if profiles != "" {
				job.Profile = filepath.Join(profiles, fmt.Sprintf("%s-%d", job.kind(), n))
			}
			c, err := measure(job)
			if err != nil {
				return fmt.Errorf("%d assignments, %s: %w", n, job.kind(), err)
			}
			printLine(out, job, c, before)
			before = c
		}
	}
	return nil
}
