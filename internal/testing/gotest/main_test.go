package main

import (
	"strings"
	"testing"
	"time"
)

func TestTook(t *testing.T) {
	want := "302 s of processor time: 240 user, 61 system"
	if got := took(240_400*time.Millisecond, 61_200*time.Millisecond); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The report lists a skipped test with its reason, a failing test with its output, and a passing
// test with the line of its package.
func TestReport(t *testing.T) {
	events := `{"Action":"start","Package":"a/b"}
{"Action":"run","Package":"a/b","Test":"TestOne"}
{"Action":"output","Package":"a/b","Test":"TestOne","Output":"=== RUN   TestOne\n"}
{"Action":"output","Package":"a/b","Test":"TestOne","Output":"    one_test.go:3: there is no gpg\n"}
{"Action":"output","Package":"a/b","Test":"TestOne","Output":"--- SKIP: TestOne (0.00s)\n"}
{"Action":"skip","Package":"a/b","Test":"TestOne","Elapsed":0}
{"Action":"output","Package":"a/b","Test":"TestTwo/x","Output":"    --- SKIP: TestTwo/x (0.00s)\n"}
{"Action":"skip","Package":"a/b","Test":"TestTwo/x","Elapsed":0}
{"Action":"pass","Package":"a/b","Test":"TestTwo","Elapsed":1.5}
{"Action":"output","Package":"a/b","Output":"PASS\n"}
{"Action":"output","Package":"a/b","Output":"ok  \ta/b\t0.01s\n"}
{"Action":"pass","Package":"a/b","Elapsed":0.01}
{"Action":"output","Package":"c","Test":"TestBad","Output":"    c_test.go:1: bad\n"}
{"Action":"fail","Package":"c","Test":"TestBad","Elapsed":0.25}
{"Action":"output","Package":"c","Output":"FAIL\tc\t0.3s\n"}
{"Action":"fail","Package":"c","Elapsed":0.3}
{"ImportPath":"d","Action":"build-output","Output":"d.go:1:1: syntax error\n"}
{"ImportPath":"d","Action":"build-fail"}
`
	var out strings.Builder
	r := report{out: &out, output: map[name]*strings.Builder{}}
	if err := r.read(strings.NewReader(events)); err != nil {
		t.Fatal(err)
	}
	r.end(1)
	want := "ok  \ta/b\t0.01s\n" +
		"    c_test.go:1: bad\nFAIL\tc\t0.3s\n" +
		"d.go:1:1: syntax error\n" +
		"skipped a/b TestOne: one_test.go:3: there is no gpg\n" +
		"skipped a/b TestTwo/x: without a reason\n" +
		"    1.5 s  a/b TestTwo\n"
	if out.String() != want {
		t.Errorf("%s\nwant\n%s", &out, want)
	}
	if err := r.read(strings.NewReader("{")); err == nil {
		t.Error("half an event is no error")
	}
}

// A slow test that is skipped has a run of its own; any other one lacks something.
func TestLacking(t *testing.T) {
	for _, c := range []struct {
		test, reason     string
		short, all, long bool
	}{
		{"TestOne", "no gpg", true, true, true}, {"TestOne", "hours; make test-long runs it", true, true, true},
		{"TestSlowOne", "minutes; make test-all runs it", false, true, true}, {"TestSlowOne", "hours; make test-long runs it", false, false, true},
	} {
		r := report{output: map[name]*strings.Builder{}}
		r.take(event{Action: "output", Package: "a", Test: c.test, Output: "    one_test.go:3: " + c.reason + "\n"})
		r.take(event{Action: "skip", Package: "a", Test: c.test})
		if short, all, long := r.lacks(false, false), r.lacks(true, false), r.lacks(true, true); short != c.short || all != c.all || long != c.long {
			t.Errorf("%s, %s: got %v, %v and %v", c.test, c.reason, short, all, long)
		}
	}
	for test, want := range map[string]bool{"TestOne": true, "TestSlowOne": false, "TestSlowOne/x": false, "TestOne/TestSlow": true} {
		r := report{output: map[name]*strings.Builder{}}
		r.take(event{Action: "skip", Package: "a", Test: test})
		if r.lacking != want {
			t.Errorf("%s that is skipped: got %v, want %v", test, r.lacking, want)
		}
	}
}
