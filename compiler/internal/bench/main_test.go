//go:build unix

package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestMain lets the test binary be the processes that the program starts.
func TestMain(m *testing.M) {
	if os.Getenv(stepVariable) == "" {
		os.Exit(m.Run())
	}
	if err := run(nil, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func TestTable(t *testing.T) {
	dir := t.TempDir()
	var out strings.Builder
	if err := run([]string{"-sizes", "100,200", "-dir", dir}, &out); err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		if f := strings.Fields(line); len(f) > 4 && (f[1] == "shared" || f[1] == "distinct") {
			got = append(got, f[0]+" "+f[1])
		}
	}
	if want := "100 shared, 200 shared, 100 distinct, 200 distinct"; strings.Join(got, ", ") != want {
		t.Errorf("got %s, want %s:\n%s", got, want, &out)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestRefuses(t *testing.T) {
	for _, args := range [][]string{{"-sizes", ""}, {"-sizes", "1000,few"}, {"-sizes", "10"}, {"-dir", "/does/not/exist"}, {"-unknown"}} {
		if err := run(args, new(strings.Builder)); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}
