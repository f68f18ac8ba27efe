//go:build unix

// Bench measures kalypso on generated platforms, prints the results and the budgets, and writes
// them into a page:
//
//	go run ./internal/testing/bench [-sizes 5000,20000,100000] [-files 100000] [-environments 20]
//		[-rows 1000000] [-runs 3] [-disk DIR] [-quick] [-json] [-doc PAGE] [-profile DIR]
//
// It builds the real binary and runs it as users do. Each command has a process and a cache of
// its own. The kernel's counts for the process, such as the CPU time and the peak memory, are
// therefore the costs of one command. If a machine does other things too, the wall time changes
// and the CPU time hardly does. Ratios, growth and budgets therefore use CPU time.
//
// Files are in memory if there is room, so that the results do not depend on the disk and its
// other work. The work with budgets is measured on a disk too, in the folder of -disk. With
// "-dir ." everything is on a disk, and nothing is measured twice.
package main

import (
	"encoding/json"
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

// options are the values of the command line's flags.
type options struct {
	sizes, compositions []int
	files               int   // of the branch that is promoted into, or 0
	changes             []int // numbers of files that commits change
	local               int   // how many of them a commit changes between folders
	environments        int   // of a fleet, and of a chain, or 0
	rows                int   // of the largest inventory, or 0
	runs                int
	seed                uint64
	dir, disk           string // disk is "" to measure in dir only
	profiles, page      string
	json                bool
}

// run runs the program. If stepVariable is set, it runs one of its child processes.
func run(args []string, out io.Writer) error {
	if step := os.Getenv(stepVariable); step != "" {
		return runStep(step)
	}
	o, err := parse(args)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp(o.dir, "kalypso-bench-")
	disk := ""
	if err == nil && o.disk != "" {
		disk, err = os.MkdirTemp(o.disk, "kalypso-bench-")
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(work))
	}
	talk := out
	if o.json {
		talk = os.Stderr
	}
	r, err := measureAll(o, work, disk, talk)
	if err = errors.Join(err, os.RemoveAll(work), os.RemoveAll(disk)); err != nil {
		return err
	}
	if o.json {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		if err := e.Encode(r); err != nil {
			return err
		}
	}
	if o.page != "" {
		return writePage(o.page, r)
	}
	return nil
}

func parse(args []string) (o options, err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	sizes := flags.String("sizes", "5000,20000,100000", "numbers of assignments of the platforms; none: \"\"")
	compositions := flags.String("cue", "200,1000", "numbers of assignments to compose with CUE too; none: \"\"")
	flags.IntVar(&o.files, "files", 100_000, "`number` of files of a branch to promote into; 0 for none")
	flags.IntVar(&o.local, "local", 1000, "how many of them change between repositories in folders")
	changes := flags.String("changes", "10,1000,10000", "how many of them change")
	flags.IntVar(&o.environments, "environments", 20, "`number` of environments to ask for the status of; 0 for none")
	flags.IntVar(&o.rows, "rows", 1_000_000, "`number` of rows of the largest inventory; 0 for none")
	quick := flags.Bool("quick", false, "small platforms, and each command once: -sizes 1000,5000 "+
		"-cue 200 -files 4000 -changes 10,1000 -environments 5 -rows 20000 -runs 1")
	flags.IntVar(&o.runs, "runs", 3, "how often to run what changes little; the best counts")
	flags.Uint64Var(&o.seed, "seed", 1, "seed of the generated platforms")
	flags.StringVar(&o.dir, "dir", "", "`folder` to work in, for its file system; default: memory, if there is room")
	flags.StringVar(&o.disk, "disk", "", "`folder` on a disk, to measure there too what has "+
		"budgets; none: \"\"; default: the user's cache folder, if -dir is in memory and there is room")
	flags.StringVar(&o.profiles, "profile", "", "`folder` for CPU and memory profiles of builds, for go tool pprof")
	flags.StringVar(&o.page, "doc", "", "`page` to write the tables into, between its markers")
	flags.BoolVar(&o.json, "json", false, "print the measurements as JSON, and the tables on stderr")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if *quick {
		*sizes, *compositions, o.runs = "1000,5000", "200", 1
		o.files, *changes, o.environments, o.rows = 4000, "10,1000", 5, 20_000
	}
	if *sizes != "" {
		if o.sizes, err = parseSizes("-sizes", *sizes, leastAssignments); err != nil {
			return o, err
		}
	}
	if o.changes, err = parseSizes("-changes", *changes, 1); err != nil {
		return o, err
	}
	if *compositions != "" {
		if o.compositions, err = parseSizes("-cue", *compositions, leastAssignments); err != nil {
			return o, err
		}
	}
	for _, n := range []struct {
		name        string
		is, atLeast int
	}{{"-runs", o.runs, 1}, {"-files", o.files, 0}, {"-environments", o.environments, 0}, {"-rows", o.rows, 0}} {
		if n.is < n.atLeast {
			return o, fmt.Errorf("%s: %d is less than %d", n.name, n.is, n.atLeast)
		}
	}
	if o.dir == "" {
		o.dir = workFolder(append(o.sizes, o.files/filesEach))
	}
	if o.dir, err = filepath.Abs(o.dir); err != nil {
		return o, err
	}
	saysDisk := false
	flags.Visit(func(f *flag.Flag) { saysDisk = saysDisk || f.Name == "disk" })
	if !saysDisk {
		o.disk = diskFolder(o.dir, o.sizes)
	}
	for _, path := range []*string{&o.disk, &o.profiles} {
		if *path != "" {
			if *path, err = filepath.Abs(*path); err != nil {
				return o, err
			}
		}
	}
	return o, nil
}

// leastAssignments is how small platforms can be.
const leastAssignments = 100

// parseSizes reads numbers, ascending.
func parseSizes(name, list string, least int) ([]int, error) {
	var sizes []int
	for s := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil || n < least {
			return nil, fmt.Errorf("%s: %q is not a number from %d", name, s, least)
		}
		if len(sizes) > 0 && n <= sizes[len(sizes)-1] {
			return nil, fmt.Errorf("%s: %d does not ascend", name, n)
		}
		sizes = append(sizes, n)
	}
	return sizes, nil
}

// measureAll measures everything, and prints each part as soon as it is known.
func measureAll(o options, work, disk string, out io.Writer) (*report, error) {
	k, err := buildKalypso(work)
	if err != nil {
		return nil, err
	}
	r := &report{Processors: runtime.NumCPU(), Load: load(), Go: runtime.Version(), Folder: o.dir, Disk: o.disk}
	printStart(out, r)
	for _, distinct := range []bool{false, true} {
		var smallest *measured
		for _, n := range o.sizes {
			name := fmt.Sprint(n, "-", distinct)
			j := job{Assignments: n, Distinct: distinct, Seed: o.seed, Dir: filepath.Join(work, name)}
			m, err := measurePlatform(k, j, o)
			if err != nil {
				return nil, fmt.Errorf("%d assignments, %s: %w", n, kindOf(distinct), err)
			}
			if smallest == nil {
				smallest = m
			}
			printPlatform(out, m, smallest)
			r.Platforms = append(r.Platforms, m)
			if disk == "" {
				continue
			}
			j.Dir = filepath.Join(disk, name)
			if m, err = measureOnDisk(k, j, o); err != nil {
				return nil, fmt.Errorf("%d assignments, %s, on a disk: %w", n, kindOf(distinct), err)
			}
			r.OnDisk = append(r.OnDisk, m)
		}
	}
	for _, distinct := range []bool{false, true} {
		for _, n := range o.compositions {
			dir := filepath.Join(work, fmt.Sprint("cue-", n, "-", distinct))
			c, err := measureComposition(k, job{Assignments: n, Distinct: distinct, Seed: o.seed, Dir: dir}, o.runs)
			if err != nil {
				return nil, fmt.Errorf("%d assignments, %s, composed by CUE: %w", n, kindOf(distinct), err)
			}
			r.Compositions = append(r.Compositions, c)
		}
	}
	if err := measureAllPromotions(k, r, o, work, out); err != nil {
		return nil, err
	}
	if o.rows > 0 {
		if r.Inventories, err = measureInventories(k, o, work); err != nil {
			return nil, fmt.Errorf("inventories: %w", err)
		}
		printInventories(out, r.Inventories)
	}
	if r.Vet, err = measureVet(k, work, o.runs); err != nil {
		return nil, err
	}
	if r.Application, err = measureApplication(k, work); err != nil {
		return nil, fmt.Errorf("an application: %w", err)
	}
	if r.Bombs, err = measureBombs(k, work); err != nil {
		return nil, err
	}
	r.LoadAtEnd = load()
	printCompositions(out, r.Compositions)
	printRatios(out, r.Platforms)
	printBudgets(out, r)
	return r, nil
}

// measureAllPromotions measures the work with servers of git.
func measureAllPromotions(k *kalypso, r *report, o options, work string, out io.Writer) (err error) {
	if o.files > 0 {
		if r.Promotions, err = measurePromotions(k,
			job{Seed: o.seed, Dir: filepath.Join(work, "promotions")}, o); err != nil {
			return fmt.Errorf("promotions: %w", err)
		}
		printPromotions(out, r.Promotions)
	}
	if o.environments > 0 {
		if r.Fleet, err = measureFleet(k, job{Seed: o.seed, Dir: filepath.Join(work, "fleet")}, o); err != nil {
			return fmt.Errorf("a fleet: %w", err)
		}
		printFleet(out, r.Fleet)
	}
	if o.files+o.environments > 0 {
		if r.Local, err = measureLocal(k, job{Seed: o.seed, Dir: filepath.Join(work, "local")}, o); err != nil {
			return fmt.Errorf("local promotions: %w", err)
		}
		printLocal(out, r.Local)
	}
	return nil
}

func kindOf(distinct bool) string {
	if distinct {
		return "distinct"
	}
	return "shared"
}
