// Command gotest runs `go test` with its arguments. In addition to the output of `go test`, it
// prints the skipped tests with the reasons, and the processor time of the whole run. With -all a
// skipped test is a failure, because such a run has everything that the tests need. There are two
// exceptions: slow tests, which have a run of their own with KALYPSO_ALL, and the tests of make
// test-long, which sets KALYPSO_LONG.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

func main() {
	all := flag.Bool("all", false, "fail if a test is skipped")
	slow := flag.Int("slow", 0, "how many of the slowest tests to list")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: gotest [-all] [-slow N] -- ARGUMENTS OF go test")
		flag.PrintDefaults()
	}
	flag.Parse()
	os.Exit(run(*all, *slow, flag.Args()))
}

func run(all bool, slow int, args []string) int {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Env = environment(os.Environ())
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		return 2
	}
	r := report{out: os.Stdout, output: map[name]*strings.Builder{}}
	readErr := r.read(out)
	err = cmd.Wait()
	r.end(slow)
	fmt.Println(took(cmd.ProcessState.UserTime(), cmd.ProcessState.SystemTime()))
	switch exit := (*exec.ExitError)(nil); {
	case readErr != nil:
		fmt.Fprintln(os.Stderr, "gotest:", readErr)
		return 2
	case errors.As(err, &exit):
		return max(exit.ExitCode(), 1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "gotest:", err)
		return 2
	case all && r.lacks(os.Getenv("KALYPSO_ALL") != "", os.Getenv("KALYPSO_LONG") != ""):
		fmt.Fprintln(os.Stderr, "gotest: this run is to skip nothing")
		return 1
	}
	return 0
}

// environment makes the garbage collector run as seldom as it does for commands of kalypso,
// unless GOGC is set. Tests allocate much and keep little, so they need a third less processor
// time.
func environment(env []string) []string {
	if os.Getenv("GOGC") != "" {
		return env
	}
	return append(slices.Clone(env), "GOGC=400")
}

// event is a line of `go test -json` (`go doc test2json`).
type event struct {
	Action, Package, ImportPath, Test, Output, FailedBuild string
	Elapsed                                                float64
}

// name is a package with "", or a test of it.
type name struct{ pkg, test string }

func (n name) String() string { return strings.TrimSpace(n.pkg + " " + n.test) }

// report collects the results of the events so far.
type report struct {
	out     io.Writer
	output  map[name]*strings.Builder // of tests that run
	skipped []string
	lacking bool // a test was skipped that is not a slow one
	long    int  // how many were skipped that make test-long runs
	took    []timed
}

type timed struct {
	name
	seconds float64
}

// lacks reports whether a test was skipped although the run has everything that the test needs.
func (r *report) lacks(all, long bool) bool {
	return r.lacking || all && (len(r.skipped) > r.long || long && r.long > 0)
}

// read reads events until there are no more, and prints how each package and each
// failed test ended.
func (r *report) read(in io.Reader) error {
	events := json.NewDecoder(in)
	for {
		var e event
		switch err := events.Decode(&e); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("reading the output of go test -json: %w", err)
		}
		r.take(e)
	}
}

func (r *report) take(e event) {
	n := name{cmp.Or(e.Package, e.ImportPath), e.Test}
	switch e.Action {
	case "output", "build-output":
		if r.output[n] == nil {
			r.output[n] = &strings.Builder{}
		}
		r.output[n].WriteString(e.Output)
		return
	case "pass", "skip", "fail", "build-fail":
	default:
		return
	}
	text := ""
	if r.output[n] != nil {
		text = r.output[n].String()
		delete(r.output, n)
	}
	switch {
	case e.Action == "fail" || e.Action == "build-fail":
		fmt.Fprint(r.out, text)
	case e.Test == "":
		fmt.Fprint(r.out, lastLine(text))
	case e.Action == "skip":
		r.skipped = append(r.skipped, n.String()+": "+reason(text))
		slow := strings.HasPrefix(e.Test, "TestSlow")
		r.lacking = r.lacking || !slow
		if slow && strings.HasSuffix(reason(text), "; make test-long runs it") {
			r.long++
		}
	}
	if e.Test != "" && !strings.Contains(e.Test, "/") {
		r.took = append(r.took, timed{n, e.Elapsed})
	}
}

// end prints the skipped tests and the slowest tests. The times are wall time. If tests run in
// parallel, the time of each includes the time of the others.
func (r *report) end(slow int) {
	slices.Sort(r.skipped)
	for _, s := range r.skipped {
		fmt.Fprintln(r.out, "skipped", s)
	}
	slices.SortStableFunc(r.took, func(a, b timed) int { return cmp.Compare(b.seconds, a.seconds) })
	for _, t := range r.took[:min(slow, len(r.took))] {
		fmt.Fprintf(r.out, "%7.1f s  %s\n", t.seconds, t.name)
	}
}

// took describes the processor time of a run. On a busy machine, wall time would mean little. On
// Windows it is only the time of go. On other systems it includes all processes that go has
// started: compilers, linkers, tests and their child processes.
func took(user, system time.Duration) string {
	return fmt.Sprintf("%.0f s of processor time: %.0f user, %.0f system", (user + system).Seconds(),
		user.Seconds(), system.Seconds())
}

// lastLine is the line of a package that plain `go test` prints.
func lastLine(text string) string {
	lines := slices.Collect(strings.Lines(text))
	if len(lines) == 0 {
		return ""
	}
	return lines[len(lines)-1]
}

// reason returns the argument of t.Skip from the output: the indented lines, after the place.
func reason(text string) string {
	var out []string
	for line := range strings.Lines(text) {
		if s := strings.TrimSpace(line); strings.HasPrefix(line, " ") && s != "" && !strings.HasPrefix(s, "--- ") {
			out = append(out, s)
		}
	}
	return cmp.Or(strings.Join(out, " "), "without a reason")
}
