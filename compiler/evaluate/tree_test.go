package evaluate

import (
	"testing"
)

// TestTrees checks the classification of leaves: notes on language, sections 4b and 9.
func TestTrees(t *testing.T) {
	for values, want := range map[string]string{
		`{A: "x", B: 1, C: true, D: null}`:                      `{A: "x", B: 1, C: true, D: null}`,
		`{A: 1.0, B: 1e3, C: 0x10, D: 1_000, E: 1Ki, F: 100.0}`: `{A: 1.0, B: 1e3, C: 16, D: 1000, E: 1024, F: 100.0}`,
		`{A: 123456789012345678901234567890}`:                   `{A: 123456789012345678901234567890}`,
		`{A: "yes", B: "2020-01-01", C: "1.50"}`:                `{A: "yes", B: "2020-01-01", C: "1.50"}`,
		`{A: {b: {c: 1}}}`:                                      `{A: {b: {c: 1}}}`,
		`{A: {}, B: []}`:                                        `{A: {}, B: []}`,
		`{A: [1, {x: "y"}]}`:                                    `{A: [1,{"x":"y"}]}`,
		`{A: *"info" | "debug"}`:                                `{A: *"info" of "info" | "debug"}`,
		`{A: #Log}`:                                             `{A: *"info" of "info" | "debug"}`,
		`{A: string}`:                                           `{A: of string}`,
		`{A: >0}`:                                               `{A: of >0}`,
		`{A: int & >0}`:                                         `{A: of int & >0}`,
		`{A: [...string]}`:                                      `{A: *[] of [...string]}`,
		`{A: [1, ...int]}`:                                      `{A: *[1] of [1, ...int]}`,
		`{A: [string]}`:                                         `{A: of [string]}`,
		`{A: *[1] | [...int]}`:                                  `{A: *[1] of [1] | [...int]}`,
		`{A: {[string]: int}}`:                                  `{A: of {[string]: int}}`,
		`{A: {b: 1, c?: int}}`:                                  `{A: of {b: 1, c?: int}}`,
		`{_h: 1, #d: 2, A: 3}`:                                  `{A: 3}`,
		`{A: strings.ToUpper("a")}`:                             `{A: "A"}`,
		`{A: strings.MinRunes(2)}`:                              `{A: of strings.MinRunes(2)}`,
		`{A: {5, #unit: "m"}}`:                                  `{A: 5}`,
		`{"a-b": 1, "c d": 2}`:                                  `{a-b: 1, c d: 2}`,
		`{A: {#secret: true, store: "vault", key: "db"}}`:       `{A: secret {"key":"db","store":"vault"}}`,
	} {
		t.Run(values, func(t *testing.T) {
			pkg := healthy(t, `
import "strings"
_use: strings.MinRunes(0)
#Log: *"info" | "debug"
configs: c: {match: {}, values: `+values+`}`)
			if got := outline(pkg.Model.Configs[0].Values); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

// TestPartsOfConfigs checks that a default is open if it comes from a reference or is below a
// config's own. Values under defaults and overrides are data.
func TestPartsOfConfigs(t *testing.T) {
	pkg := healthy(t, `configs: c: {
	match: {}
	layer: 3
	values: A: 1
	defaults: {B: [1], C: d: "x"}
	overrides: E: false
	plain: ["A", "C.d-e"]
}`)
	c := pkg.Model.Configs[0]
	if got := outline(c.Values) + outline(c.Defaults) + outline(c.Overrides); got != `{A: 1}{B: [1], C: {d: "x"}}{E: false}` {
		t.Error(got)
	}
	if c.Layer != 3 || c.Facts != nil || c.Invalid {
		t.Errorf("%+v", c)
	}
}
