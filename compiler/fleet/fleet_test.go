package fleet

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
)

// inventoryOf returns an inventory of a file, with the schema's defaults, overridden by
// fields in JSON.
func inventoryOf(t testing.TB, name, file, fields string) model.Inventory {
	t.Helper()
	i := model.Inventory{}
	text := `{"separator": ",", "columns": {"name": "name", "clusterType": "clusterType", "address": "address", "description": "description"}}`
	for _, text := range []string{text, fields} {
		if text == "" {
			continue
		}
		if err := json.Unmarshal([]byte(text), &i); err != nil {
			t.Fatal(err)
		}
	}
	i.Name, i.File = name, file
	return i
}

// labelled selects clusters with a label.
func labelled(name, value string) *model.Selector {
	return &model.Selector{Op: model.OpField, Key: "labels", Args: []model.Selector{
		{Op: model.OpField, Key: name, Args: []model.Selector{{Op: model.OpEqual, Text: value}}},
	}}
}

// environment has the cluster types store and kiosk. kiosk has the clusters with its label.
func environment(inventories ...model.Inventory) *model.Environment {
	return &model.Environment{
		Name: "prod", Inventories: inventories, Positions: &model.Positions{}, Invalid: map[model.Ref]bool{},
		ClusterTypes: []model.ClusterType{{Name: "kiosk", Clusters: labelled("kind", "kiosk")}, {Name: "store"}},
	}
}

func read(t testing.TB, env *model.Environment, files source.Overlay) (*Fleet, []diag.Diagnostic) {
	t.Helper()
	f, ds := Read(source.NewFiles(t.TempDir(), files), nil, env, func(e model.Expr, value string) bool {
		return strings.Contains(string(e), fmt.Sprintf("%q", value))
	})
	diag.Resolve(ds, env.Positions)
	return f, ds
}

// text writes clusters and diagnostics, a line each.
func text(f *Fleet, ds []diag.Diagnostic) string {
	var b strings.Builder
	for _, c := range f.Clusters {
		fmt.Fprintf(&b, "%s %s", c.Name, c.ClusterType)
		if c.Address != "" {
			fmt.Fprintf(&b, " %s", c.Address)
		}
		for _, k := range slices.Sorted(maps.Keys(c.Labels)) {
			fmt.Fprintf(&b, " %s=%s", k, c.Labels[k])
		}
		if c.Values != nil {
			fmt.Fprintf(&b, " %s", c.Values)
		}
		b.WriteByte('\n')
	}
	if f.Incomplete {
		b.WriteString("incomplete\n")
	}
	for _, d := range ds {
		fmt.Fprintf(&b, "%s", d.Code)
		for _, s := range d.Sites {
			fmt.Fprintf(&b, " %d:%d", s.Position.Line, s.Position.Column)
		}
		fmt.Fprintf(&b, " %s\n", d.Message)
	}
	return b.String()
}

func TestRead(t *testing.T) {
	for name, c := range map[string]struct{ file, fields, text, want string }{
		"csv": {"s.csv", "", "name,clusterType,address,labels.kind,values.TILLS\ns-2,store,10.0.0.2,,4\ns-1,,,kiosk,\n",
			"s-1 kiosk kind=kiosk\ns-2 store 10.0.0.2 {\"TILLS\":\"4\"}\n"},
		"BOM, CRLF, quotes, spaces": {"s.csv", "", "\xef\xbb\xbfname, clusterType,labels.note\r\n s-1 , store,\"a, \"\"b\"\"\"\r\n",
			"s-1 store note=a, \"b\"\n"},
		"columns": {"s.txt", `{"format": "csv", "separator": ";", "clusterType": "store", "columns": {"name": "id", "address": "host", "labels": {"region": "site"}, "values": {"N": {"column": "n", "type": "int"}, "ON": {"column": "on", "type": "bool"}, "X": {"column": "x", "type": "json"}, "T": "n"}}}`,
			"id;host;site;n;on;x;other\ns-1;h.example.com;east;007;true;[1.50];9\ns-2;;;12;false;;\n",
			"s-2 store {\"N\":12,\"ON\":false,\"T\":\"12\"}\nK1312 2:24 cluster s-1: n must be of type int, and is \"007\"\n"},
		"json": {"s.json", "", "[\n {\"name\": \"s-1\", \"clusterType\": \"store\", \"labels\": {\"n\": 3, \"b\": true, \"none\": null}, \"values\": {\"A\": 1.50, \"B\": [\"x\"], \"C\": null}},\n {\"name\": \"s-2\", \"labels\": {\"kind\": \"kiosk\"}}\n]\n",
			"s-1 store b=true n=3 {\"A\":1.50,\"B\":[\"x\"]}\ns-2 kiosk kind=kiosk\n"},
		"rows and paths": {"s.json", `{"rows": "items", "clusterType": "store", "columns": {"name": "metadata.name", "labels": {"region": "metadata.labels.region"}}}`,
			`{"kind": "List", "items": [{"metadata": {"name": "s-1", "labels": {"region": "east"}}}], "more": {}}`,
			"s-1 store region=east\n"},
		"ndjson": {"s.ndjson", `{"clusterType": "store"}`, "{\"name\": \"s-1\"}\n\nnot json\n{\"name\": \"s-2\"}\n",
			"s-1 store\ns-2 store\nincomplete\nK1312 3:1 a row cannot be read: invalid character 'o' in literal null (expecting 'u')\n"},
		"yaml": {"s.yaml", `{"clusterType": "store"}`, "- name: s-1\n  labels: {region: east, n: 1.50, on: yes}\n  values:\n    A: 1.50\n    B: null\n- &x\n  name: s-2\n",
			"s-1 store n=1.50 on=yes region=east {\"A\":1.50}\ns-2 store\n"},
		"yaml numbers": {"s.yaml", `{"clusterType": "store"}`, "- {name: s-1, values: {A: 0x1F, B: 1_000, C: +3, D: !!str 3, E: !!int 3, F: \"010\"}}\n",
			"s-1 store {\"A\":31,\"B\":1000,\"C\":3,\"D\":\"3\",\"E\":3,\"F\":\"010\"}\n"},
		"yaml of other readers": {"s.yaml", `{"clusterType": "store"}`, "- {name: s-1, values: {A: !!bool \"yes\"}}\n- name: s-2\n  labels: {a: 010}\n- name: s-3\n  values: {A: .nan}\n- name: s-4\n  values: {A: ! 3}\n- name: s-5\n",
			"s-5 store\nincomplete\nK1312 1:3 a row cannot be read: line 1: the tag !!bool gives \"yes\" another meaning: write the value without it\n" +
				"K1312 2:3 a row cannot be read: line 3: 010 is another number in YAML 1.1: quote it if it is a text, \"010\"\n" +
				"K1312 4:3 a row cannot be read: line 5: .nan is no number that JSON has: quote it if it is a text, \".nan\"\n" +
				"K1312 6:3 a row cannot be read: line 7: the tag ! gives \"3\" another meaning: write the value without it\n"},

		"not there":      {"other.csv", "", "", "incomplete\nK1311 which clusters inventory x has is not known: other.csv is not there\n"},
		"outside":        {"../s.csv", "", "", "incomplete\nK1311 which clusters inventory x has is not known: ../s.csv is not in the platform\n"},
		"ending":         {"s.txt", "", "name\n", "incomplete\nK1311 which clusters inventory x has is not known: s.txt has an ending that says nothing\n"},
		"empty":          {"s.csv", "", "", "incomplete\nK1311 1:1 which clusters inventory x has is not known: s.csv is empty\n"},
		"UTF-16":         {"s.csv", "", "\xff\xfen\x00", "incomplete\nK1311 1:1 which clusters inventory x has is not known: s.csv is UTF-16\n"},
		"no rows":        {"s.csv", "", "name\n", "incomplete\nK1311 which clusters inventory x has is not known: s.csv has no rows\n"},
		"may be empty":   {"s.csv", `{"allowEmpty": true}`, "name\n", ""},
		"no column":      {"s.csv", `{"columns": {"name": "id"}}`, "ip,ID\n", "incomplete\nK1311 1:1 which clusters inventory x has is not known: s.csv has no column id\n"},
		"column twice":   {"s.csv", "", "name,a,a\n", "incomplete\nK1311 1:8 which clusters inventory x has is not known: s.csv has the column a twice\n"},
		"unclosed quote": {"s.csv", "", "name,clusterType\ns-1,store\ns-2,\"store\ns-3,store\n", "s-1 store\nincomplete\nK1311 3:1 which clusters inventory x has is not known: s.csv cannot be read any further: extraneous or missing \" in quoted-field\n"},
		"cut off":        {"s.json", `{"clusterType": "store"}`, "[{\"name\": \"s-1\"},\n{\"na", "s-1 store\nincomplete\nK1311 2:5 which clusters inventory x has is not known: s.json is cut off\n"},
		"no list":        {"s.json", "", "{}", "incomplete\nK1311 1:1 which clusters inventory x has is not known: s.json holds no list\n"},
		"no list in":     {"s.yaml", `{"rows": "items"}`, "a: 1\n", "incomplete\nK1311 1:1 which clusters inventory x has is not known: s.yaml holds no list in items\n"},

		"names": {"s.csv", `{"clusterType": "store"}`, "name\nS-1\n\"\"\na_b\n\xff\ns-2\n",
			"s-2 store\nincomplete\n" +
				"K1312 2:1 \"S-1\" is no name: names have lower case letters\n" +
				"K1312 4:1 \"a_b\" is no name\n" +
				"K1312 3:1 a row has no name in name\n" +
				"K1312 5:1 name is not UTF-8\n"},
		"width":         {"s.csv", `{"clusterType": "store"}`, "name,address\ns-1\ns-2,h,x\ns-3,\n", "s-3 store\nK1312 2:1 the row has 1 fields, and there are 2 columns\nK1312 3:1 the row has 3 fields, and there are 2 columns\n"},
		"twice":         {"s.csv", `{"clusterType": "store"}`, "name\ns-1\ns-2\ns-1\n", "s-2 store\nK1313 2:1 4:1 cluster s-1 is there 2 times\n"},
		"no type":       {"s.csv", "", "name\ns-1\n", "K1314 2:1 cluster s-1 is of no cluster type: it names none, and no cluster type selects it with clusters\n"},
		"unknown type":  {"s.csv", "", "name,clusterType\ns-1,stroe\n", "K1301 2:1 there is no cluster type stroe\n"},
		"wrong address": {"s.csv", `{"clusterType": "store"}`, "name,address\ns-1,a b\n", "K1312 2:5 cluster s-1: the address \"a b\" is neither a DNS name nor an IP address\n"},
		"label of list": {"s.json", `{"clusterType": "store"}`, `[{"name": "s-1", "labels": {"a": [1]}}, 5]`, "incomplete\nK1312 1:2 cluster s-1: labels.a must be a text, and is of type list\nK1312 1:41 an element of the list must be an object, and is of type int\n"},
	} {
		t.Run(name, func(t *testing.T) {
			files := source.Overlay{}
			if name != "not there" {
				files[c.file] = []byte(c.text)
			}
			f, ds := read(t, environment(inventoryOf(t, "x", c.file, c.fields)), files)
			if got := text(f, ds); got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
		})
	}
}

// TestLabels checks that rows with forbidden labels are left out, and that the diagnostics
// name them.
func TestLabels(t *testing.T) {
	inv := inventoryOf(t, "x", "s.csv", `{"clusterType": "store"}`)
	inv.Labels = model.Selector{Op: model.OpField, Key: "size", Args: []model.Selector{{Op: model.OpSatisfy, Expr: `"s" | "m"`}}}
	f, ds := read(t, environment(inv), source.Overlay{"s.csv": []byte("name,labels.size\ns-1,s\ns-2,xl\ns-3,m\ns-4,\n")})
	want := "s-1 store size=s\ns-3 store size=m\n" +
		"K1312 3:1 label of cluster s-2: size: wants \"s\" | \"m\", is \"xl\"\n" +
		"K1312 5:1 label of cluster s-4: size: wants \"s\" | \"m\", is absent\n"
	if got := text(f, ds); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if len(f.Invalid) != 2 {
		t.Errorf("invalid are %v", f.Invalid)
	}
}

// field is a constraint on a column.
func field(op model.SelectorOp, column string, of model.Selector) model.Selector {
	return model.Selector{Op: op, Key: column, Args: []model.Selector{of}}
}

// TestWhere checks which rows are clusters of the environment, and that errors of other rows
// are not reported.
func TestWhere(t *testing.T) {
	prod := field(model.OpField, "env", model.Selector{Op: model.OpEqual, Text: "prod"})
	none := "incomplete\nK1311 which clusters inventory x has is not known: "
	for name, c := range map[string]struct {
		file, fields string
		where        model.Selector
		text, want   string
	}{
		"csv":        {"s.csv", "", prod, "name,env,address\ns-1,prod,h\nS 2,dev,a b\ns-1,dev,\ns-3, prod ,\ns-4,,\n", "s-1 store h\ns-3 store\n"},
		"optional":   {"s.csv", "", field(model.OpOptional, "env", prod.Args[0]), "name,env\ns-1,prod\ns-2,dev\ns-3,\n", "s-1 store\ns-3 store\n"},
		"constraint": {"s.csv", "", field(model.OpField, "env", model.Selector{Op: model.OpSatisfy, Expr: `"prod" | "stage"`}), "name,env\ns-1,prod\ns-2,dev\ns-3,stage\n", "s-1 store\ns-3 store\n"},
		"two columns": {"s.csv", "", model.Selector{Op: model.OpAnd, Args: []model.Selector{prod, field(model.OpField, "b", model.Selector{Op: model.OpEqual, Text: "c"})}},
			"name,env,b\ns-1,prod,c\ns-2,prodc,\ns-3,,prodc\ns-4,prod,c\n", "s-1 store\ns-4 store\n"},
		"json":   {"s.json", "", prod, `[{"name": "s-1", "env": "prod"}, {"name": "s-2", "env": "dev", "labels": 3}, {"name": "s-3"}, {"name": "s-4", "env": null}]`, "s-1 store\n"},
		"ndjson": {"s.ndjson", "", field(model.OpField, "site.floor", model.Selector{Op: model.OpEqual, Text: "2"}), "{\"name\": \"s-1\", \"site\": {\"floor\": 2}}\n{\"name\": \"s-2\", \"site\": 2}\n", "s-1 store\n"},
		"yaml":   {"s.yaml", "", field(model.OpField, "live", model.Selector{Op: model.OpEqual, Text: "true"}), "- {name: s-1, live: true}\n- {name: s-2, live: false}\n", "s-1 store\n"},

		"no column":    {"s.csv", "", prod, "name,evn\ns-1,prod\n", "incomplete\nK1311 1:1 which clusters inventory x has is not known: s.csv has no column env\n"},
		"no field":     {"s.json", `{"allowEmpty": true}`, prod, `[{"name": "s-1", "evn": "prod"}]`, none + "s.json has no row with the field env\n"},
		"no row":       {"s.csv", "", prod, "name,env\ns-1,dev\ns-2,\n", none + "s.csv has no row that satisfies where (rows: 2)\n"},
		"may be empty": {"s.csv", `{"allowEmpty": true}`, prod, "name,env\ns-1,dev\n", ""},
		"no rows":      {"s.csv", "", prod, "name,env\n", none + "s.csv has no rows\n"},
		"wrong rows":   {"s.csv", "", prod, "name,env\ns-1,dev\ns-2\n", none + "s.csv has no row that satisfies where (rows: 1)\nK1312 3:1 the row has 1 fields, and there are 2 columns\n"},
		"unknown row": {"s.json", "", prod, `[{"name": "s-1", "env": "prod"}, {"name": "s-2", "env": ["prod"]}]`,
			"s-1 store\nK1312 1:34 cluster s-2: env must be a text, and is of type list\n"},
		"unknown cluster": {"s.json", "", prod, `[{"name": "s-1", "env": "prod"}, {"name": null, "env": {}}]`,
			"s-1 store\nincomplete\nK1312 1:34 env must be a text, and is of type struct\n"},
		"cut off": {"s.json", "", prod, `[{"name": "s-1", "env": "prod"},`, "s-1 store\nincomplete\nK1311 1:33 which clusters inventory x has is not known: s.json is cut off\n"},
	} {
		t.Run(name, func(t *testing.T) {
			inv := inventoryOf(t, "x", c.file, c.fields)
			inv.Where, inv.ClusterType = c.where, "store"
			f, ds := read(t, environment(inv), source.Overlay{c.file: []byte(c.text)})
			if got := text(f, ds); got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
		})
	}
}

// TestWhereOnce checks that where is evaluated once for each value, and not for each row.
func TestWhereOnce(t *testing.T) {
	inv := inventoryOf(t, "x", "s.csv", `{"clusterType": "store"}`)
	inv.Where = field(model.OpField, "env", model.Selector{Op: model.OpSatisfy, Expr: "prod"})
	var b strings.Builder
	b.WriteString("name,env\n")
	for i := range 300 {
		fmt.Fprintf(&b, "s-%d,%s\n", i, []string{"prod", "dev", "stage"}[i%3])
	}
	calls := 0
	f, ds := Read(source.NewFiles(t.TempDir(), source.Overlay{"s.csv": []byte(b.String())}), nil, environment(inv),
		func(e model.Expr, value string) bool { calls++; return string(e) == value })
	if len(f.Clusters) != 100 || len(ds) > 0 || calls != 3 {
		t.Errorf("%d clusters, %d calls, %v", len(f.Clusters), calls, ds)
	}
}

// TestManyErrors checks that a million wrong rows are ten diagnostics, and that all wrong
// clusters are known.
func TestManyErrors(t *testing.T) {
	f, ds := read(t, environment(inventoryOf(t, "x", "s.csv", "")), source.Overlay{"s.csv": []byte("name,clusterType\n" + strings.Repeat("s-1,store\n", 2) + many(5000))})
	if len(f.Invalid) != 5001 || len(ds) != 11 {
		t.Errorf("%d invalid, %d diagnostics", len(f.Invalid), len(ds))
	}
	if last := ds[10].Message; !strings.HasSuffix(last, "and the same is wrong with 4990 more cluster types") {
		t.Error(last)
	}
}

func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "t-%d,nope\n", i)
	}
	return b.String()
}

// TestJoined checks that rows of two inventories and clusters of CUE are one fleet, sorted.
// A cluster that occurs twice is not in the fleet.
func TestJoined(t *testing.T) {
	env := environment(inventoryOf(t, "a", "a.csv", `{"clusterType": "store"}`), inventoryOf(t, "b", "b.json", `{"clusterType": "store"}`))
	env.Clusters = []model.Cluster{{Name: "c-1", ClusterType: "store"}, {Name: "c-3", Labels: map[string]string{"kind": "kiosk"}}, {Name: "c-5", ClusterType: "store"}}
	f, ds := read(t, env, source.Overlay{"a.csv": []byte("name\nc-2\nc-5\nc-0\n"), "b.json": []byte(`[{"name": "c-4"}, {"name": "c-2"}]`)})
	want := "c-0 store\nc-1 store\nc-3 kiosk kind=kiosk\nc-4 store\n" +
		"K1313 2:1 1:19 cluster c-2 is there 2 times\n" +
		"K1313 3:1 3:1 cluster c-5 is a row of inventory a, and declared in CUE\n"
	if got := text(f, ds); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if p := env.Positions.Of(ref("c-4")); len(p) != 1 || p[0] != (model.Position{File: "b.json", Line: 1, Column: 2}) {
		t.Errorf("c-4 is at %v", p)
	}
	if f.Base == ([32]byte{}) || f.Environment != ([32]byte{}) {
		t.Error("the files are not a part of the base")
	}
}

// FuzzRead checks that any file gives sorted clusters with names and cluster types, or
// diagnostics. No row is lost without a diagnostic.
func FuzzRead(f *testing.F) {
	formats := []string{"csv", "json", "ndjson", "yaml"}
	for format, text := range map[string]string{
		"csv": "name,clusterType,labels.a\ns-1,store,x\n\"s\"\"2\",,\n", "json": `[{"name": "s-1", "labels": {"kind": "kiosk"}}]`,
		"ndjson": "{\"name\": \"s-1\"}\n{}\n", "yaml": "- {name: s-1}\n- &a {name: s-2, values: {A: 1}}\n- *a\n",
	} {
		f.Add(uint8(slices.Index(formats, format)), []byte(text))
	}
	f.Fuzz(func(t *testing.T, n uint8, data []byte) {
		format := formats[int(n)%len(formats)]
		env := environment(inventoryOf(t, "x", "s."+format, `{"clusterType": "store"}`))
		fleet, ds := Read(source.NewFiles("/nowhere", source.Overlay{"s." + format: data}), nil, env, func(model.Expr, string) bool { return true })
		for i, c := range fleet.Clusters {
			if !model.IsName(c.Name) || c.ClusterType == "" || c.Digest == "" || i > 0 && fleet.Clusters[i-1].Name >= c.Name {
				t.Errorf("cluster %+v", c)
			}
		}
		if (fleet.Incomplete || len(fleet.Invalid) > 0 || len(fleet.Clusters) == 0) && len(ds) == 0 {
			t.Error("something is wrong, and nothing is reported")
		}
	})
}
