package cache

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// childEnv names the task of the test binary as a child of a test.
const childEnv = "KALYPSO_CACHE_TEST_CHILD"

func child(test string, env ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run=^"+test+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), env...)
	return cmd
}

// runChild runs one test of this binary in a process of its own.
func runChild(t *testing.T, test string, env ...string) {
	t.Helper()
	if out, err := child(test, env...).CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", test, err, out)
	}
}

// processResult returns a result for the process with a number.
func processResult(process, n int) (Key, string) {
	return key(process*10_000 + n), strings.Repeat(fmt.Sprint(process, n, " "), 1+n)
}

const processEntries = 200

// putInProcess stores the results of a process in a shared table and in one of its own. It flushes
// now and then, and reads the results of other processes.
func putInProcess(t *testing.T, dir string, process, processes int, progress func()) {
	c := open(t, Options{Dir: dir})
	for n := range processEntries {
		k, p := processResult(process, n)
		for _, table := range []*Table{c.Table(Tuple, "shared"), c.Table(Tuple, fmt.Sprint("own", process))} {
			table.Put(k, []byte(p))
			if n%50 == 25 {
				if err := table.Flush(); err != nil {
					t.Fatal(err)
				}
			}
		}
		c.Put(Model, k, []byte(p))
		c.Put(Model, key(-1), []byte("the same in all"))
		progress()
		wantEntry(t, c, Model, k, p)
		for other := range processes {
			k, p := processResult(other, n)
			if got, ok := c.Get(Model, k); ok && string(got) != p {
				t.Fatalf("entry %d of process %d is %.40q", n, other, got)
			}
			if got, ok := c.Table(Tuple, "shared").Get(k); ok && string(got) != p {
				t.Fatalf("%d of process %d is %.40q", n, other, got)
			}
		}
	}
	closeCache(t, c)
}

// Processes that use one folder at once lose none of the other processes' results.
func TestProcesses(t *testing.T) {
	const processes = 6
	if mine, err := strconv.Atoi(os.Getenv(childEnv)); err == nil {
		putInProcess(t, os.Getenv("KALYPSO_CACHE_DIR"), mine, processes, func() {})
		return
	}
	dir := t.TempDir()
	var wg sync.WaitGroup
	for process := range processes {
		wg.Go(func() {
			runChild(t, "TestProcesses", childEnv+"="+fmt.Sprint(process), "KALYPSO_CACHE_DIR="+dir)
		})
	}
	wg.Wait()
	c := open(t, Options{Dir: dir})
	lost := 0
	for process := range processes {
		for n := range processEntries {
			k, p := processResult(process, n)
			wantEntry(t, c, Model, k, p)
			wantTable(t, c.Table(Tuple, fmt.Sprint("own", process)), k, p)
			if _, ok := c.Table(Tuple, "shared").Get(k); !ok {
				lost++ // not used by the processes that wrote the table
				continue
			}
			wantTable(t, c.Table(Tuple, "shared"), k, p)
		}
	}
	if lost > processes*processEntries/10 {
		t.Errorf("%d of %d entries of the shared table are lost", lost, processes*processEntries)
	}
	closeCache(t, c)
	if bad, _, err := VerifyAll(dir); len(bad) > 0 || err != nil {
		t.Error(bad, err)
	}
}

// Two processes that flush one table at once keep the results of both.
func TestTwoFlushes(t *testing.T) {
	dir := t.TempDir()
	one, two := open(t, Options{Dir: dir}), open(t, Options{Dir: dir})
	wantTable(t, one.Table(Tuple, "t"), key(1), "")
	wantTable(t, two.Table(Tuple, "t"), key(1), "")
	one.Table(Tuple, "t").Put(key(1), []byte("one"))
	two.Table(Tuple, "t").Put(key(2), []byte("two"))
	closeCache(t, one)
	closeCache(t, two)
	c := open(t, Options{Dir: dir})
	wantTable(t, c.Table(Tuple, "t"), key(1), "one")
	wantTable(t, c.Table(Tuple, "t"), key(2), "two")
	closeCache(t, c)
}

// If a process is killed at any moment, others can use the cache.
func TestKill(t *testing.T) {
	const processes = 3
	if dir := os.Getenv("KALYPSO_CACHE_DIR"); os.Getenv(childEnv) != "" {
		for round := 0; ; round++ {
			putInProcess(t, dir, round%processes, processes, func() { fmt.Println("progress") })
		}
	}
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(1, 4))
	for range 8 {
		cmd := child("TestKill", childEnv+"=1", "KALYPSO_CACHE_DIR="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for range r.IntN(3 * processEntries) {
			lines.Scan()
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil {
			t.Error("the process ended by itself")
		}
		putInProcess(t, dir, 0, processes, func() {})
	}
	c := open(t, Options{Dir: dir})
	for n := range processEntries {
		k, p := processResult(0, n)
		wantEntry(t, c, Model, k, p)
		wantTable(t, c.Table(Tuple, "own0"), k, p)
	}
	closeCache(t, c)
	if bad, _, err := VerifyAll(dir); len(bad) > 0 || err != nil {
		t.Error(bad, err)
	}
}
