package gotemplate

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/diag"
)

// The output of printf depends only on the platform. A format that does not fit is an error, but a
// text that only looks like fmt's message about it is not an error.
func TestPrintf(t *testing.T) {
	a := assignment(t)
	const address, unfit = "somewhere else in each build", "does not fit"
	for text, want := range map[string]struct{ out, problem string }{
		`{{ printf "%p" .ConfigData }}`:                                  {"", address},
		`{{ printf "%#[1]p" .ConfigData }}`:                              {"", address},
		`{{ .ConfigData | printf "a%%%-20p" }}`:                          {"", address},
		`{{ printf "%p" (semver "1.2.3") }}`:                             {"", address},
		`{{ printf "%d" (list (semver "1.2.3")) }}`:                      {"", address},
		`{{ printf "%#v" (dict "a" (semver "1.2.3")) }}`:                 {"", address},
		`{{ $f := "%p" }}{{ printf $f .ConfigData }}`:                    {"", address},
		`{{ printf "%d" "no" }}`:                                         {"", unfit},
		`{{ printf "%s" 1 }}`:                                            {"", unfit},
		`{{ printf "%s" (list 1) }}`:                                     {"", unfit},
		`{{ printf "%d" }}`:                                              {"", unfit},
		`{{ printf "%s" "a" "b" }}`:                                      {"", unfit},
		`{{ printf "100%" }}`:                                            {"", unfit},
		`{{ printf "%!" 1 }}`:                                            {"", unfit},
		`{{ printf "%*d" "a" 1 }}`:                                       {"", unfit},
		`{{ printf "%[5]d" 1 }}`:                                         {"", unfit},
		`{{ printf "%d" (semver "1.2.3") }}`:                             {"", unfit},
		`{{ printf "%s" "100%!" }}`:                                      {"100%!", ""},
		`{{ printf "100%%!" }}`:                                          {"100%!", ""},
		`{{ printf "%s!" "100%" }}`:                                      {"100%!", ""},
		`{{ printf "%%%c" 33 }}`:                                         {"%!", ""},
		`{{ printf "%v %s" (dict "%!d" (list "%!")) "%!d(string=no)" }}`: {"map[%!d:[%!]] %!d(string=no)", ""},
		`{{ printf "%%p %s" "%p" }}`:                                     {"%p %p", ""},
		`{{ printf "%v %s" (semver "1.2.3") (list (semver "1.2.3")) }}`:  {"1.2.3 [1.2.3]", ""},
		`{{ printf "%T %-4d|%04.1f %t %q" 1 2 3.0 true "x" }}`:           {`int 2   |03.0 true "x"`, ""},
		`{{ print (list (semver "1.2.3")) "100%!" }}`:                    {"[1.2.3]100%!", ""},
	} {
		got, ds := render(t, a, text, "text")
		if want.problem == "" && (len(ds) > 0 || got != want.out) {
			t.Errorf("%s\ngot  %q %v\nwant %q", text, got, ds, want.out)
		}
		if want.problem != "" && (len(ds) != 1 || ds[0].Code != diag.Template || !strings.Contains(ds[0].Message, want.problem)) {
			t.Errorf("%s\ngot  %q %v\nwant %s", text, got, ds, want.problem)
		}
	}
}

// No function returns a function, a channel, or a pointer without a text. The only text of
// such a value is its memory address.
func TestAddresses(t *testing.T) {
	for name, function := range functions() {
		of := reflect.TypeOf(function)
		for i := range of.NumOut() {
			switch out := of.Out(i); out.Kind() {
			case reflect.Func, reflect.Chan, reflect.UnsafePointer:
				t.Errorf("%s returns a %s", name, out)
			case reflect.Pointer:
				if !out.Implements(reflect.TypeFor[fmt.Stringer]()) {
					t.Errorf("%s returns a %s, which has no text", name, out)
				}
			}
		}
	}
}
