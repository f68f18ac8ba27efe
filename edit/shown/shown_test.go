package shown_test

import (
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/edit/shown"
)

func TestWhatIsShown(t *testing.T) {
	for name, test := range map[string]struct{ real, shown string }{
		"one entity":               {"workloads: cart: {\n\tlabels: {}\n}", "workloads: cart: #Workload & {\n\tlabels: {}\n}"},
		"several":                  {"workloads: {\n\tcart: {}\n\tshop: {}\n}", "workloads: {\n\tcart: #Workload & {}\n\tshop: #Workload & {}\n}"},
		"shorthand":                {"workloads: cart: labels: x: \"1\"\nclusterTypes: {}", "workloads: cart: #Workload & {labels: x: \"1\"}\nclusterTypes: {}"},
		"shorthand with a comment": {"workloads: cart: labels: x: \"1\" // here", "workloads: cart: #Workload & {labels: x: \"1\"} // here"},
		"shorthand in a struct":    {"workloads: {cart: labels: x: \"1\"}", "workloads: {cart: #Workload & {labels: x: \"1\"}}"},
		"quoted":                   {`"workloads": "a-b": {}`, `"workloads": "a-b": #Workload & {}`},
		"pattern":                  {"workloads: [string]: {}", "workloads: [string]: #Workload & {}"},
		"pattern with an alias":    {"workloads: [N=string]: {}", "workloads: [N=string]: #Workload & {}"},
		"alias":                    {"workloads: X=cart: {}", "workloads: X=cart: #Workload & {}"},
		"computed":                 {`workloads: "a-\(b)": {}, configs: (c): {}`, `workloads: "a-\(b)": #Workload & {}, configs: (c): #Config & {}`},
		"interpolations":           {`configs: "\(f("\(x)"))": {}` + "\nconfigs: b: {}", `configs: "\(f("\(x)"))": #Config & {}` + "\nconfigs: b: #Config & {}"},
		"in a map of an entity": {"workloads: cart: deploymentTargets: {a: {}, b: environment: \"dev\"}",
			"workloads: cart: #Workload & {deploymentTargets: {a: #DeploymentTarget & {}, b: #DeploymentTarget & {environment: \"dev\"}}}"},
		"comprehension":        {"workloads: {for n in x if n {\"\\(n)\": {}}}", "workloads: {for n in x if n {\"\\(n)\": #Workload & {}}}"},
		"at the root":          {"if true {workloads: cart: {}}", "if true {workloads: cart: #Workload & {}}"},
		"conjunction":          {"workloads: cart: _base & {}", "workloads: cart: #Workload & _base & {}"},
		"collection":           {"workloads: schema.#Workloads & {cart: {}}", "workloads: schema.#Workloads & {cart: #Workload & {}}"},
		"a beginning":          {"workloads: cart: lab", "workloads: cart: #Workload & {lab}"},
		"nothing yet":          {"workloads: cart: \nconfigs: a: {}", "workloads: cart: #Workload & {}\nconfigs: a: #Config & {}"},
		"nothing after":        {"workloads: {cart: }", "workloads: {cart: #Workload & {}}"},
		"open":                 {"workloads: cart: {\n\tlabels: {", "workloads: cart: #Workload & {\n\tlabels: {\n}}"},
		"one too many":         {"configs: a: {}}\nconfigs: b: {}", "configs: a: #Config & {}}\nconfigs: b: #Config & {}"},
		"optional":             {"workloads: cart?: {}", "workloads: cart?: #Workload & {}"},
		"keyword":              {"workloads: for: {}", "workloads: for: #Workload & {}"},
		"others":               {"x: workloads: cart: {}\n_y: {a: {}}", "x: workloads: cart: {}\n_y: {a: {}}"},
		"attribute":            {"workloads: cart: {} @test(x)\nconfigs: a: {}", "workloads: cart: #Workload & {} @test(x)\nconfigs: a: #Config & {}"},
		"on a line of its own": {"workloads: cart:\n\t{}", "workloads: cart:\n\t#Workload & {}"},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.ReplaceAll(shown.Of("package platform\n"+test.real).String(), shown.Schema+".", "")
			head := "package platform, import " + shown.Schema + " \"kalypso.io/schema\"\n"
			if test.real == test.shown {
				head = "package platform\n"
			}
			if want := head + test.shown; got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			checkMapping(t, "package platform\n"+test.real)
		})
	}
}

func TestFilesWithoutAPackageAreShownAsTheyAre(t *testing.T) {
	const text = "workloads: cart: {"
	if got := shown.Of(text).String(); got != text {
		t.Errorf("got %s", got)
	}
}

// checkMapping checks that each offset of a file has an offset in the server's text, in the
// same line, and that the texts differ only by insertions.
func checkMapping(t *testing.T, text string) {
	t.Helper()
	s := shown.Of(text)
	last := -1
	for i := range len(text) + 1 {
		there := s.Shown(i)
		if there <= last {
			t.Fatalf("offset %d is shown at %d, and the one before at %d", i, there, last)
		}
		last = there
		if back, ok := s.Real(there); !ok || back != i {
			t.Fatalf("offset %d is shown at %d, which is %d, %t", i, there, back, ok)
		}
		if a, b := strings.Count(text[:i], "\n"), strings.Count(s.String()[:there], "\n"); a != b {
			t.Fatalf("offset %d is in line %d, and shown in line %d", i, a, b)
		}
	}
	var real strings.Builder
	for i := range len(s.String()) {
		if from, to, ok := s.RealRange(i, i+1); ok {
			if from != real.Len() || to != from+1 {
				t.Fatalf("what is shown at %d is at %d to %d, after %d", i, from, to, real.Len())
			}
			real.WriteByte(s.String()[i])
		}
	}
	if real.String() != text {
		t.Fatalf("without what is inserted there is %q, and not %q", real.String(), text)
	}
}

// FuzzMapping checks that the server's text without the insertions is the file, and that each
// place in the file has a place in the server's text.
func FuzzMapping(f *testing.F) {
	f.Add("package platform\nworkloads: cart: {\n\tlabels: x: \"\\(a)\"\n}\n")
	f.Add("package p\nworkloads: {a: b: c, d: \n}\nconfigs: [string]: {")
	f.Add("package p\r\nconfigs: \"\"\"\n\tä\\(\"\\(x)\")\n\t\"\"\": {}, #a: 1")
	f.Add("package p\na: \"\\(b)c(\n(x)\"")
	f.Fuzz(func(t *testing.T, text string) { checkMapping(t, text) })
}
