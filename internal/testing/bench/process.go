//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cost is the cost of a process.
type cost struct {
	CPU    float64 `json:"cpuSeconds"` // including System, the time of the kernel
	System float64 `json:"systemSeconds"`
	Wall   float64 `json:"wallSeconds"`
	Memory int64   `json:"peakBytes"` // resident, at its peak
	// Own is Memory without the pages of the program's file. It equals Memory if the system does
	// not report them.
	Own int64 `json:"ownPeakBytes"`
}

// costOf runs a command. It returns the cost, including child processes that the command waited
// for, and the output, even if the command ends with an error.
func costOf(cmd *exec.Cmd) (c cost, printed []byte, err error) {
	begin := time.Now()
	own := func() int64 { return 0 }
	printed, err = outputWhile(cmd, func(p *os.Process) { own = ownMemory(p) })
	c.Own = own()
	if cmd.ProcessState == nil {
		return c, printed, err
	}
	c.Wall = time.Since(begin).Seconds()
	state := cmd.ProcessState
	c.System = state.SystemTime().Seconds()
	c.CPU = state.UserTime().Seconds() + c.System
	usage, ok := state.SysUsage().(*syscall.Rusage)
	if !ok {
		return c, nil, fmt.Errorf("no resource usage on %s", runtime.GOOS)
	}
	c.Memory = int64(usage.Maxrss)
	if runtime.GOOS != "darwin" { // which counts bytes; the others count KiB
		c.Memory *= 1024
	}
	if c.Own == 0 {
		c.Own = c.Memory
	}
	return c, printed, err
}

// ownMemory looks at a process every few milliseconds, until the caller calls the returned
// function. That function returns the most memory that the process had for itself; 0 if the
// system is not Linux. The pages of its program do not count. They belong to the file. The kernel
// shares them between all processes, and frees them as it likes.
func ownMemory(p *os.Process) func() int64 {
	done, most := make(chan struct{}), make(chan int64)
	go func() {
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		var peak int64
		for {
			select {
			case <-done:
				most <- peak
				return
			case <-tick.C:
				status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Pid))
				_, rest, _ := strings.Cut(string(status), "\nRssAnon:")
				kibibytes, _ := strconv.ParseInt(strings.TrimSpace(strings.SplitN(rest, "kB", 2)[0]), 10, 64)
				peak = max(peak, kibibytes<<10)
			}
		}
	}()
	return func() int64 { close(done); return <-most }
}

// best runs a command several times, and returns the cost of the run with the least CPU time.
func best(runs int, command func() (*exec.Cmd, error)) (least cost, err error) {
	for run := range runs {
		cmd, err := command()
		if err != nil {
			return least, err
		}
		c, _, err := costOf(cmd)
		if err != nil {
			return least, err
		}
		if run == 0 || c.CPU < least.CPU {
			least = c
		}
	}
	return least, nil
}

// cleanEnvironment returns the environment without the variables that change the behavior of
// kalypso or git.
func cleanEnvironment() []string {
	var out []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "KALYPSO_") && !strings.HasPrefix(v, "GIT_") && !strings.HasPrefix(v, "CUE_") {
			out = append(out, v)
		}
	}
	return append(out, "CUE_REGISTRY=none", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
}

// kalypso is the binary that is measured.
type kalypso struct {
	binary  string
	modules string // CUE's cache, which has the schema after the first command
	sample  string // the sample platform
}

// buildKalypso builds the binary from the module that this program is of.
func buildKalypso(work string) (*kalypso, error) {
	const module = "github.com/kalypso-io/kalypso"
	k := &kalypso{binary: filepath.Join(work, "kalypso"), modules: filepath.Join(work, "modules")}
	root, err := output(exec.Command("go", "list", "-f", "{{.Dir}}", module))
	if err != nil {
		return nil, err
	}
	k.sample = filepath.Join(strings.TrimSpace(string(root)), "testdata", "platform")
	if _, err := output(exec.Command("go", "build", "-o", k.binary, module+"/cmd/kalypso")); err != nil {
		return nil, err
	}
	_, err = output(k.command(filepath.Join(work, "nothing"), "version"))
	return k, err
}

// fetched returns the folder for the objects that a command line with a cache fetches.
func fetched(cache string) string { return cache + "-git" }

// command is a command line of kalypso with a cache.
func (k *kalypso) command(cache string, args ...string) *exec.Cmd {
	cmd := exec.Command(k.binary, append([]string{"--progress", "none"}, args...)...)
	cmd.Env = append(cleanEnvironment(), "KALYPSO_CACHE_DIR="+cache, "KALYPSO_GIT_DIR="+fetched(cache),
		"CUE_CACHE_DIR="+k.modules)
	return cmd
}

// git is a command line of git in a folder.
func git(dir string, args ...string) *exec.Cmd {
	cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
	cmd.Env = append(cleanEnvironment(), "GIT_AUTHOR_NAME=bench", "GIT_AUTHOR_EMAIL=bench@example.com",
		"GIT_COMMITTER_NAME=bench", "GIT_COMMITTER_EMAIL=bench@example.com")
	return cmd
}
