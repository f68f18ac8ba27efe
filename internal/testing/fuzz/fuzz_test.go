package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Every target of the module has a comment about its property.
func TestFind(t *testing.T) {
	targets, err := find("../../..")
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, target := range targets {
		there[target.dir+"."+target.name] = true
		if target.says == "" {
			t.Errorf("%s in %s has no comment that says what holds", target.name, target.dir)
		}
	}
	for _, name := range []string{"internal/archive.FuzzRead", "compiler/tree.FuzzParseRecord", "compiler/tree.FuzzParseIndex"} {
		if !there[name] {
			t.Errorf("%s is not found", name)
		}
	}
}

func TestRateOf(t *testing.T) {
	rate, err := rateOf("fuzz: elapsed: 0s, gathering baseline coverage: 0/4 completed\nfuzz: elapsed: 0s, execs: 0 (0/sec), new interesting: 0 (total: 0)\n"+
		"fuzz: elapsed: 3s, execs: 30000 (10000/sec), new interesting: 1 (total: 5)\nPASS\n", 6*time.Second)
	if rate != 5000 || err != nil {
		t.Errorf("%d, %v", rate, err)
	}
	if _, err := rateOf("PASS\n", time.Second); err == nil {
		t.Error("nothing is a rate")
	}
	if _, err := rateOf("warning: the test binary was not built with coverage instrumentation, so fuzzing will run without coverage guidance\nfuzz: elapsed: 3s, execs: 9 (3/sec)\n", time.Second); err == nil {
		t.Error("inputs are tried blindly")
	}
}

// The end of the time is not a failure, and an input that fails is one also then.
func TestEnded(t *testing.T) {
	const late = "fuzz: elapsed: 3s, execs: 30 (10/sec), new interesting: 1 (total: 5)\n--- FAIL: FuzzA (3.07s)\n    context deadline exceeded\nFAIL\n"
	if !ended(late) {
		t.Error("the end of the time is a failure")
	}
	for _, out := range []string{"--- FAIL: FuzzA (3.07s)\n    a_test.go:1: context deadline exceeded\n", late + "    Failing input written to testdata/fuzz/FuzzA/0\n"} {
		if ended(out) {
			t.Errorf("no failure: %s", out)
		}
	}
}

// The table replaces the one before, and few inputs need a reason.
func TestWritePage(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll(filepath.Dir(page), 0o777); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if text, err := os.ReadFile(page); err != nil {
			if err := os.WriteFile(page, []byte("before\n"+begin+end+"after\n"), 0o666); err != nil {
				t.Fatal(err)
			}
		} else if strings.Count(string(text), "| `b` | `FuzzB` | It is so. | 10: It runs git. |\n") != 1 || !strings.HasPrefix(string(text), "before\n"+begin) || !strings.HasSuffix(string(text), end+"after\n") {
			t.Errorf("%s", text)
		}
		if err := writePage([]target{{dir: "b", name: "FuzzB", says: "It is so.", slow: "It runs git.", rate: 10}, {dir: "a", name: "FuzzA", rate: 5000}}, time.Second); err != nil {
			t.Error(err)
		}
	}
	err := writePage([]target{{dir: "a", name: "FuzzA", rate: 999}}, time.Second)
	if err == nil || !strings.Contains(err.Error(), "FuzzA in a tries 999 inputs a second") {
		t.Error(err)
	}
}
