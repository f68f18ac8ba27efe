package compare

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// fileOf is a file. That of an executable file has "+x " before its content.
func fileOf(p, content string) backends.File {
	data, executable := strings.CutPrefix(content, "+x ")
	return backends.File{Path: p, Data: []byte(data), Executable: executable}
}

// folder is a folder with the given files: path, content, path, content.
func folder(environment, clusterType, assignment string, files ...string) Folder {
	blobs := map[string]tree.Blob{}
	var list []backends.File
	for i := 0; i < len(files); i += 2 {
		f := fileOf(files[i], files[i+1])
		blobs[f.Path] = tree.BlobOf(f)
		list = append(list, f)
	}
	return Folder{Environment: environment, ClusterType: clusterType, Assignment: assignment, Tree: tree.TreeID(blobs),
		Files: func() ([]backends.File, error) { return list, nil }}
}

// filesOf are the given files: path, content, path, content.
func filesOf(files ...string) map[string]backends.File {
	all := map[string]backends.File{}
	for i := 0; i < len(files); i += 2 {
		all[files[i]] = fileOf(files[i], files[i+1])
	}
	return all
}

// told returns a change as a line.
func told(c *Change) string {
	s := string(c.Kind) + " " + c.File
	if c.Object != nil {
		s += fmt.Sprintf(" %s/%s/%s/%s", c.Object.APIVersion, c.Object.Kind, c.Object.Namespace, c.Object.Name)
	}
	if c.Document > 0 {
		s += fmt.Sprintf(" document %d", c.Document)
	}
	return fmt.Sprintf("%s %s %s -> %s %s", s, c.Path, c.From, c.To, strings.ReplaceAll(c.Diff, "\n", "|"))
}

func TestFiles(t *testing.T) {
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: n}\ndata: {x: 1}\n"
	second := strings.Replace(object, "name: a", "name: b", 1)
	for name, c := range map[string]struct {
		file, before, after string
		want                string // changes, one in a line
	}{
		"a value":                      {"a.yaml", "a: {b: 1}", "a: {b: 2}", "changed a.yaml a.b 1 -> 2 "},
		"the type of a value":          {"a.yaml", "a: 1", "a: \"1\"", `changed a.yaml a 1 -> "1" `},
		"large numbers":                {"a.yaml", "a: 123456789012345678901", "a: 123456789012345678902", "changed a.yaml a 123456789012345678901 -> 123456789012345678902 "},
		"other numbers":                {"a.yaml", "a: 0x10", "a: .inf", `changed a.yaml a 16 -> ".inf" `},
		"null":                         {"a.yaml", "a: null", "a: 0", "changed a.yaml a null -> 0 "},
		"null and nothing":             {"a.yaml", "a: null\nb: 1", "b: 1", "removed a.yaml a null ->  "},
		"keys":                         {"a.yaml", "a: 1\nb: 1", "b: 1\nc: {d: 1}", "removed a.yaml a 1 ->  \nadded a.yaml c  -> {\"d\":1} "},
		"keys that need quotes":        {"a.yaml", `{"a.b": 1, "": 1, "c\"": {d: 1}}`, `{"a.b": 2, "": 2, "c\"": {d: 2}}`, "changed a.yaml [\"\"] 1 -> 2 \nchanged a.yaml [\"a.b\"] 1 -> 2 \nchanged a.yaml [\"c\\\"\"].d 1 -> 2 "},
		"a mapping becomes a list":     {"a.yaml", "a: {b: 1}", "a: [1]", `changed a.yaml a {"b":1} -> [1] `},
		"a list by place":              {"a.yaml", "a: [1, {b: 2}, 3]", "a: [1, {b: 3}, 3]", "changed a.yaml a[1].b 2 -> 3 "},
		"a list that grows":            {"a.yaml", "a: [x, y]", "a: [x, z, y]", `added a.yaml a[]  -> "z" `},
		"a list with repetitions":      {"a.yaml", "a: [x, x, y]", "a: [x, y]", `removed a.yaml a[] "x" ->  `},
		"a list in another order":      {"a.yaml", "a: [x, y]", "a: [y, x]", `reordered a.yaml a ["x","y"] -> ["y","x"] `},
		"repetitions in another order": {"a.yaml", "a: [x, y, x]", "a: [y, x, x]", `reordered a.yaml a ["x","y","x"] -> ["y","x","x"] `},
		"a list by name":               {"a.yaml", "a: [{name: x, v: 1}, {name: y}]", "a: [{name: z}, {name: x, v: 2}]", "changed a.yaml a[name=x].v 1 -> 2 \nremoved a.yaml a[name=y] {\"name\":\"y\"} ->  \nadded a.yaml a[name=z]  -> {\"name\":\"z\"} "},
		"names in another order":       {"a.yaml", "a: [{name: x}, {name: y.z}]", "a: [{name: y.z, v: 1}, {name: x}]", "added a.yaml a[name=\"y.z\"].v  -> 1 \nreordered a.yaml a [\"x\",\"y.z\"] -> [\"y.z\",\"x\"] "},
		"names that are there twice":   {"a.yaml", "a: [{name: x}, {name: x}]", "a: [{name: x}]", `removed a.yaml a[] {"name":"x"} ->  `},
		"a list that was empty":        {"a.yaml", "a: []", "a: [{name: x}]", `added a.yaml a[name=x]  -> {"name":"x"} `},
		"objects by identity":          {"a.yaml", object + "---\n" + second, second + "---\n" + strings.Replace(object, "x: 1", "x: 2", 1), "changed a.yaml v1/ConfigMap/n/a data.x 1 -> 2 "},
		"an object comes":              {"a.yaml", object, object + "---\n" + "kind: A\nmetadata: {name: b}\n", `added a.yaml /A//b   -> {"kind":"A","metadata":{"name":"b"}} `},
		"an object that is there twice": {"a.yaml", object + "---\n" + object, object,
			`removed a.yaml v1/ConfigMap/n/a  {"apiVersion":"v1","data":{"x":1},"kind":"ConfigMap","metadata":{"name":"a","namespace":"n"}} ->  `},
		"documents by order":          {"a.yaml", "a: 1\n---\na: 1\n", "a: 1\n---\na: 2\n", "changed a.yaml document 2 a 1 -> 2 "},
		"empty documents":             {"a.yaml", "---\n---\na: 1\n", "a: 2\n", "changed a.yaml a 1 -> 2 "},
		"only a comment":              {"a.yaml", "a: 1\n", "# c\na: 1\n", "text a.yaml   ->  @@ -1,1 +1,2 @@|+# c| a: 1|"},
		"only the order of documents": {"a.yaml", object + "---\n" + second, second + "---\n" + object, "text"},
		"JSON":                        {"a.json", `{"a":[1,2]}`, "{\n\"a\": [1, 3]}", "changed a.json a[1] 2 -> 3 "},
		"a document in a string":      {"a.yaml", "a: |\n  b: 1\n  c: 1\n", "a: |\n  b: 2\n  c: 1\n", "changed a.yaml a#b 1 -> 2 "},
		"a comment in a string":       {"a.yaml", "a: |\n  b: 1\n", "a: |\n  # c\n  b: 1\n", `changed a.yaml a "b: 1\n" -> "# c\nb: 1\n" `},
		"a string in a string":        {"a.yaml", "a: |\n  b: |\n    c: 1\n", "a: |\n  b: |\n    c: 2\n", `changed a.yaml a#b "c: 1\n" -> "c: 2\n" `},
		"text":                        {"README.md", "a\nb\n", "a\nc\n", "text README.md   ->  @@ -1,2 +1,2 @@| a|-b|+c|"},
		"no end of line":              {"README.md", "a", "b", "text README.md   ->  @@ -1,1 +1,1 @@|-a|\\ No newline at end of file|+b|\\ No newline at end of file|"},
		"executable":                  {"run.sh", "a", "+x a", `mode run.sh  "100644" -> "100755" `},
		"no longer executable":        {"a.yaml", "+x a: 1", "a: 2", "changed a.yaml a 1 -> 2 \nmode a.yaml  \"100755\" -> \"100644\" "},
		"executable as it was":        {"run.sh", "+x a\n", "+x b\n", "text run.sh   ->  @@ -1,1 +1,1 @@|-a|+b|"},
		"binary":                      {"a.bin", "\x00a", "\xff\xff\xff", "text a.bin   ->  -(2 bytes)|+(3 bytes)|"},
	} {
		t.Run(name, func(t *testing.T) {
			cs := compareFiles(filesOf(c.file, c.before), filesOf(c.file, c.after), nil)
			var got []string
			for i := range cs.list {
				got = append(got, told(&cs.list[i]))
			}
			if s := strings.Join(got, "\n"); s != c.want && (c.want != "text" || !strings.HasPrefix(s, "text ")) {
				t.Errorf("got\n%s\nwant\n%s", s, c.want)
			}
		})
	}
}

func TestFilesThatComeAndGo(t *testing.T) {
	big := strings.Repeat("x", maxShown+1)
	before := filesOf("a.yaml", "a: 1", "b.md", "b\n", "e.yaml", "a: [", "g.sh", "+x g")
	after := filesOf("c.yaml", "kind: A\nmetadata: {name: b}", "d.md", big, "f.yaml", "", "h.sh", "+x h")
	var got []string
	cs := compareFiles(before, after, nil)
	for i := range cs.list {
		got = append(got, told(&cs.list[i]))
	}
	want := []string{
		`removed a.yaml  {"a":1} ->  `, `removed b.md  "b\n" ->  `,
		`added c.yaml /A//b   -> {"kind":"A","metadata":{"name":"b"}} `, `added d.md   -> "(65537 bytes)" `,
		`removed e.yaml  "a: [" ->  `, `added f.yaml   -> "" `,
		`removed g.sh  "g" ->  `, `mode g.sh  "100755" ->  `, `added h.sh   -> "h" `, `mode h.sh   -> "100755" `,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// hostileYAML are texts that must not be compared by value, or must not fail.
var hostileYAML = map[string]string{
	"aliases":       "a: &a [x]\nb: [*a]\n",
	"alias bomb":    bomb(),
	"itself":        "a: &a [*a]\n",
	"merge key":     "a: &a {b: 1}\nc: {<<: *a}\n",
	"inline merge":  "a: {<<: {b: 1}}\n",
	"tabs":          "a:\n\t- b\n",
	"key twice":     "a: 1\na: 2\n",
	"key of a type": "{1: a, \"1\": b}\n",
	"complex key":   "? [a]\n: b\n",
	"no YAML":       "%PDF-1.4 {{{",
	"template":      "a: {{ .Values.b }}\n",
	"no UTF-8":      "a: \xff\n",
	"own tag":       "a: !mine b\n",
	"wrong tag":     "a: !!bool maybe\n",
	"wrong number":  "a: !!int \"\"\n",
	"deep":          strings.Repeat("[", 5000) + strings.Repeat("]", 5000),
	"deeper":        strings.Repeat("[", 200000),
	"large":         "a: " + strings.Repeat("x", maxYAML),
	"many":          many(),
	"NUL":           "a: \x00\n",
	"unfinished":    "a: \"",
}

func bomb() string {
	s := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'p'; c++ {
		s += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 10), ","))
	}
	return s
}

func many() string {
	var b strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&b, "k%d: X\n", i)
	}
	return b.String()
}

func TestHostileFiles(t *testing.T) {
	for name, text := range hostileYAML {
		t.Run(name, func(t *testing.T) {
			for _, other := range []string{"a: 1\n", strings.ReplaceAll(text, "X", "Y") + "# end\n"} {
				found := compareFile("a.yaml", []byte(text), []byte(other))
				if len(found) != 1 || found[0].Kind != Text || found[0].Diff == "" {
					t.Errorf("got %d changes, want one of text", len(found))
				}
				if len(found[0].Diff) > maxShown+100 {
					t.Errorf("the text has %d bytes", len(found[0].Diff))
				}
			}
		})
	}
}

// FuzzFiles checks that nothing fails, that every difference is reported, and that a report
// can be written. It also checks that exchanging the sides exchanges from and to.
func FuzzFiles(f *testing.F) {
	for _, text := range hostileYAML {
		if len(text) < 1000 {
			f.Add("a.yaml", []byte(text), []byte("a: 1\n"))
			f.Add("a.yaml", []byte(text), []byte(text+"b: 1\n"))
		}
	}
	f.Add("a.yaml", []byte("kind: A\nmetadata: {name: x}\nl: [{name: a}, {name: b}]\n---\na: [1,2,3]"), []byte("a: [3,2]\n---\nkind: A\nmetadata: {name: x}\nl: [{name: b, c: |\n  a: 1\n}]\n"))
	f.Add("run.sh", []byte("+x a"), []byte("a"))
	f.Add("README", []byte("dev small\n"), []byte("small\ndev-small\x1b[0m\n"))
	f.Fuzz(func(t *testing.T, name string, a, b []byte) {
		before, after := folder("dev", "small", "a", name, string(a)), folder("dev", "small", "a", name, string(b))
		r, err := Compare([]Folder{before}, []Folder{after}, false)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(a, b) != r.Empty() || r.Empty() != (len(r.Groups) == 0) {
			t.Fatalf("equal: %v, and the report says %+v", bytes.Equal(a, b), r)
		}
		if _, err := json.Marshal(r); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := WriteText(&out, r, TextOptions{}); err != nil {
			t.Fatal(err)
		}
		if i := bytes.IndexFunc(out.Bytes(), func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' }); i >= 0 {
			t.Fatalf("a control character is written: %q", out.Bytes()[i:])
		}
		back, err := Compare([]Folder{after}, []Folder{before}, false)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := sides(back, true), sides(r, false); !slices.Equal(got, want) {
			t.Fatalf("mirrored:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

func sides(r *Report, exchanged bool) []string {
	var out []string
	for _, g := range r.Groups {
		c := g.Change
		c.Diff = ""
		if exchanged {
			c.From, c.To = c.To, c.From
			switch c.Kind {
			case Added:
				c.Kind = Removed
			case Removed:
				c.Kind = Added
			}
		}
		out = append(out, told(&c))
	}
	slices.Sort(out)
	return out
}

func config(namespace, level string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: platform-config, namespace: " + namespace + "}\ndata: {LOG_LEVEL: " + level + ", PATH: ./" + namespace + "}\n"
}

func TestGroups(t *testing.T) {
	namespace := func(name string) string { return "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + name + "}\n" }
	var before, after []Folder
	for _, ct := range []string{"large", "small"} {
		for _, target := range []string{"", "a-b", "d-e"} {
			own := "team-" + ct + target
			if target == "" {
				before = append(before, folder("dev", ct, "", "k.yaml", "a: 1"))
				after = append(after, folder("dev", ct, "", "k.yaml", "a: 2"))
				continue
			}
			before = append(before, folder("dev", ct, target, "ns.yaml", namespace(own), "c.yaml", config(own, ct), ct+"/x.yaml", "a: 1", ct+"/y.yaml", "a: 1", "k.yaml", "a: 1"))
			after = append(after, folder("dev", ct, target, "ns.yaml", namespace(own), "c.yaml", strings.Replace(config(own, "debug"), "./", "/x/"+target+"/", 1), ct+"/x.yaml", "a: {b: "+target+", c: "+ct+"}", ct+"/y.yaml", "a: 2", "k.yaml", "a: 2"))
		}
	}
	r, err := Compare(before, after, false)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, g := range r.Groups {
		got = append(got, fmt.Sprintf("%s: %d %d", headline(&g), len(g.Assignments), len(g.ClusterTypes)))
	}
	want := []string{
		"<clusterType>/y.yaml a: 1 -> 2: 4 0",
		"ConfigMap platform-config data.PATH: ./<namespace> -> /x/<deploymentTarget>/<namespace>: 4 0",
		"k.yaml a: 1 -> 2: 4 0",
		"ConfigMap platform-config data.LOG_LEVEL: large -> debug: 2 0",
		"ConfigMap platform-config data.LOG_LEVEL: small -> debug: 2 0",
		"large/x.yaml a: 2 0", // a cluster type's name is a plain word in values
		"small/x.yaml a: 2 0",
		"k.yaml a: 1 -> 2: 0 2",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if ids := []string{"dev/large/a-b", "dev/large/d-e", "dev/small/a-b", "dev/small/d-e"}; !slices.Equal(r.Groups[0].Assignments, ids) || !slices.Equal(r.Assignments.Changed, ids) {
		t.Errorf("got %v and %v", r.Groups[0].Assignments, r.Assignments.Changed)
	}
}

func TestMarkNames(t *testing.T) {
	names := []name{{"dev-a", 'j'}, {"dev", 'e'}, {"1", 'c'}}
	for _, c := range []struct {
		in, want string
		isJSON   bool
	}{
		{"dev", "<environment>", false},
		{"device dev_x mydev", "device <environment>_x mydev", false},
		{"dev-a/dev-ab", "<environment>-<clusterType>/<environment>-ab", false},
		{`{"dev":1,"a":"1"}`, `{"<environment>":1,"a":"<clusterType>"}`, true},
		{`"x\ndev\u0031 1\"dev"`, `"x\n<environment>\u0031 <clusterType>\"<environment>"`, true},
		{`"\\dev"`, `"\\<environment>"`, true},
		{"dév dev", "dév <environment>", false},
	} {
		if got := shown.Replace(markNames(c.in, names, c.isJSON)); got != c.want {
			t.Errorf("%s: got %s, want %s", c.in, got, c.want)
		}
	}
}

func TestCompareFails(t *testing.T) {
	a, b := folder("dev", "a", ""), folder("dev", "b", "")
	for _, folders := range [][]Folder{{b, a}, {a, a}} {
		if _, err := Compare(folders, nil, false); err == nil {
			t.Error("an output that is not sorted is compared")
		}
	}
	broken := errors.New("broken")
	var before, after []Folder
	for i := range 50 {
		f := folder("dev", "a", fmt.Sprintf("t%02d", i), "a", "1")
		before = append(before, f)
		f.Tree = tree.BlobID([]byte(f.Assignment))
		if i >= 20 {
			f.Files = func() ([]backends.File, error) { return nil, broken }
		}
		after = append(after, f)
	}
	if _, err := Compare(before, after, false); !errors.Is(err, broken) || !strings.Contains(err.Error(), "dev/a/t20") {
		t.Errorf("got error %v, want that of the first folder", err)
	}
}

func TestEqualFoldersAreNotRead(t *testing.T) {
	f := folder("dev", "a", "b", "x", "y")
	f.Files = nil
	r, err := Compare([]Folder{f}, []Folder{f}, false)
	if err != nil || !r.Empty() || r.Assignments.Unchanged != 1 {
		t.Errorf("%+v %v", r, err)
	}
	var out bytes.Buffer
	if err := WriteText(&out, r, TextOptions{}); err != nil || out.String() != "0 added, 0 changed, 0 removed, 1 unchanged\n" {
		t.Errorf("%q %v", out.String(), err)
	}
	if b, err := json.Marshal(r); err != nil || bytes.Contains(b, []byte("null")) {
		t.Errorf("%s %v", b, err)
	}
}

// equalChanges makes two outputs of n folders with the same change of size bytes.
func equalChanges(n, size int) (before, after []Folder) {
	value := strings.Repeat("x", size)
	for i := range n {
		target := fmt.Sprintf("t%06d", i)
		for _, side := range []struct {
			out   *[]Folder
			level string
		}{{&before, "info"}, {&after, "debug"}} {
			*side.out = append(*side.out, Folder{Environment: "dev", ClusterType: "a", Assignment: target, Tree: tree.BlobID([]byte(side.level + target)),
				Files: func() ([]backends.File, error) {
					return []backends.File{{Path: "c.yaml", Data: []byte(config("dev-a-"+target, side.level+value))}}, nil
				}})
		}
	}
	return before, after
}

func TestEqualChangesAreHeldOnce(t *testing.T) {
	const n, size = 300, 20000
	before, after := equalChanges(n, size)
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	start := heap()
	r, err := Compare(before, after, false)
	if err != nil {
		t.Fatal(err)
	}
	grown := int64(heap()) - int64(start)
	if len(r.Groups) != 1 || len(r.Groups[0].Assignments) != n {
		t.Fatalf("%d groups", len(r.Groups))
	}
	if grown > n*size/4 {
		t.Errorf("the report holds %d bytes", grown)
	}
	runtime.KeepAlive(before)
}

func BenchmarkCompare(b *testing.B) {
	for _, n := range []int{1000, 100000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			if testing.Short() && n > 1000 {
				b.Skip("takes minutes")
			}
			before, after := equalChanges(n, 2000)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Compare(before, after, false); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestText(t *testing.T) {
	before := []Folder{
		folder("dev", "a", "", "k.yaml", "a: 1"),
		folder("dev", "a", "gone", "c.yaml", config("x", "info")),
		folder("dev", "a", "t", "c.yaml", config("x", "info"), "d.yaml", "d: {e: [1]}\nevil: a\nlong: |\n  "+strings.Repeat("a\n  ", 4)+"b\nnull: x\n", "README", "a\n\tb\x1b[31m\n",
			"run.sh", "+x a", "old.sh", "+x a", "x.sh", "a"),
		folder("dev", "old", ""),
	}
	after := []Folder{
		folder("dev", "a", "", "k.yaml", "a: 2"),
		folder("dev", "a", "new", "c.yaml", config("x", "info")),
		folder("dev", "a", "t", "c.yaml", config("x", "\"true\""), "d.yaml", "d: {e: {f: 2}}\nevil: \"\\e[2J\"\nlong: |\n  "+strings.Repeat("a\n  ", 4)+"c\nn: {x: [{y: 1}]}\nempty: ''\n", "README", "a\n\tc\x1b[31m\n",
			"run.sh", "a", "new.sh", "+x a", "x.sh", "+x b"),
		folder("prod", "new", ""),
	}
	r, err := Compare(before, after, false)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for _, o := range []TextOptions{{}, {Stat: true}, {Color: true, All: true}} {
		if err := WriteText(&out, r, o); err != nil {
			t.Fatal(err)
		}
	}
	const name = "testdata/text.txt"
	if os.Getenv("KALYPSO_UPDATE") != "" {
		if err := os.WriteFile(name, out.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("differs from %s:\n%s", name, out.String())
	}
}
