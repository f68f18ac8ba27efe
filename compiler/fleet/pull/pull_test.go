package pull

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// inventoryOf returns an inventory of a file, with the schema's defaults, overridden by
// fields in JSON.
func inventoryOf(t testing.TB, file, fields string) *model.Inventory {
	t.Helper()
	i := &model.Inventory{}
	defaults := `{"separator": ",", "columns": {"name": "name", "clusterType": "clusterType", "address": "address", "description": "description"}}`
	for _, text := range []string{defaults, fields} {
		if text != "" {
			if err := json.Unmarshal([]byte(text), i); err != nil {
				t.Fatal(err)
			}
		}
	}
	i.Name, i.File = "stores", file
	return i
}

// lines writes clusters and notes, a line each.
func lines(r *Reader) string {
	clusters, err := r.Clusters()
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	var b strings.Builder
	for _, c := range clusters {
		fmt.Fprintf(&b, "%s type=%s address=%s", c.Name, c.ClusterType, c.Address)
		for _, l := range slices.Sorted(maps.Keys(c.Labels)) {
			fmt.Fprintf(&b, " %s=%s", l, c.Labels[l])
		}
		fmt.Fprintln(&b)
	}
	for _, n := range r.Notes() {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	return b.String()
}

func TestSources(t *testing.T) {
	for _, c := range []struct{ name, from, file, text, want string }{
		{"cluster api before an endpoint", ClusterAPI, "a.yaml",
			"apiVersion: cluster.x-k8s.io/v1beta1\nkind: Cluster\nmetadata: {name: a, namespace: n}\nspec: {}\n",
			"a type= address=\n"},
		{"an IPv6 endpoint is no address here", ClusterAPI, "a.yaml",
			"apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {name: a}\nspec: {controlPlaneEndpoint: {host: '::1', port: 6443}}\n",
			"a type= address=\nnote: cluster a has no address: \"::1\" is none\n"},
		{"a kind of another group", ClusterAPI, "a.yaml",
			"apiVersion: fleet.cattle.io/v1alpha1\nkind: Cluster\nmetadata: {name: a}\n",
			"note: what was read is no cluster of cluster-api: it has objects of Cluster.fleet.cattle.io\n"},
		{"labels that are none", OCM, "a.json",
			`{"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster", "metadata": {"name": "a", "labels": {"a b": "x", "ok": "=cmd()", "c": "d", "kalypso.io/cluster-type": "Edge!"}}}`,
			"a type= address= c=d\n" +
				"note: cluster a has no cluster type: \"Edge!\" is none\n" +
				"note: cluster a is without \"a b\": \"x\", which is no label\n" +
				"note: cluster a is without \"kalypso.io/cluster-type\": \"Edge!\", which is no label\n" +
				"note: cluster a is without \"ok\": \"=cmd()\", which is no label\n"},
		{"several JSON objects", Fleet, "a.json",
			`{"apiVersion": "fleet.cattle.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "b"}} [{"apiVersion": "fleet.cattle.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "a"}}]`,
			"a type= address=\nb type= address=\n"},
		{"labels that are no texts", Fleet, "a.yaml",
			"apiVersion: fleet.cattle.io/v1alpha1\nkind: Cluster\nmetadata: {name: b, labels: {pci: true}}\n",
			"a.yaml: Cluster \"b\" has labels that are no texts: quote them\n"},
		{"a secret without a name", ArgoCD, "a.yaml",
			"apiVersion: v1\nkind: Secret\nmetadata: {name: a, labels: {argocd.argoproj.io/secret-type: cluster}}\ndata: {server: '!!'}\n",
			"a type= address= argocd.argoproj.io/secret-type=cluster\n"},
		{"names that collide", Kubeconfig, "config",
			"contexts:\n- {name: a_b, context: {cluster: c}}\n- {name: A-B, context: {cluster: c}}\n",
			"error: context \"A-B\" and context \"a_b\" are both cluster a-b: choose with --namespace, --context or --selector, or name a label that holds other names with --name-label\n"},
		{"a name that cannot be one", Kubeconfig, "config",
			"contexts:\n- {name: \"\\e[31m\u00e9\", context: {}}\n- {name: '///', context: {}}\n",
			"31m type= address=\nnote: context \"\\x1b[31mé\" is cluster 31m\n" +
				"note: context \"///\" is left out: \"///\" cannot be the name of a cluster, which has at most 63 lower case letters, digits and dashes\n"},
		{"a list of hosts as a group", Ansible, "script.json",
			`{"db": ["a", "b"], "west": {"hosts": ["b"], "children": ["db"], "vars": {"token": "s3cret"}}, "_meta": {"hostvars": {"a": {"ansible_host": "{{ ip }}"}, "unknown": {}}}}`,
			"a type= address= group.db=true group.west=true\nb type= address=b group.db=true group.west=true\nnote: cluster a has no address: \"{{ ip }}\" is none\n"},
		{"groups in a circle", Ansible, "hosts",
			"[a]\nx\n[a:children]\nb\n[b:children]\na\n",
			"x type= address=x group.a=true group.b=true\n"},
		{"ranges", Ansible, "hosts",
			"db-[a:c:2]-[9:11]\n[v6]\n[2001:db8::1] ansible_ssh_host='192.0.2.1'\n",
			"hosts: line 3: a section is [group], [group:children] or [group:vars]\n"},
		{"ranges with steps and zeros", Ansible, "hosts",
			"db-[a:c:2]-[09:10]:22 ansible_port=22 # ansible_host=no\n",
			"db-a-09 type= address=db-a-09\ndb-a-10 type= address=db-a-10\ndb-c-09 type= address=db-c-09\ndb-c-10 type= address=db-c-10\n"},
		{"a range without an end in sight", Ansible, "hosts", "x[0:999999999]\n", "hosts: line 1: there are more than 1000000 hosts\n"},
		{"ranges times ranges", Ansible, "hosts", "x[0:9999]-[0:9999]\n", "hosts: line 1: there are more than 1000000 hosts\n"},
		{"a range that goes back", Ansible, "hosts", "x[9:1]\n", "hosts: line 1: the range of \"x[9:1]\" ends before it begins, or does not move\n"},
		{"variables without a host", Ansible, "hosts", "[a]\n\n a=b\n", "hosts: line 3: a line begins with a host, and variables follow it\n"},
		{"a section that is none", Ansible, "hosts", "[a\n", "hosts: line 1: a section is [group], [group:children] or [group:vars]\n"},
		{"no inventory", Ansible, "a.yaml", "apiVersion: v1\nhosts: {a: }\n", "a.yaml: \"apiVersion\" is no group: is this an inventory of Ansible?\n"},
		{"no text", OCM, "a.yaml", "\xff\xfe\x00", "a.yaml: is not UTF-8\n"},
		{"a scalar", OCM, "a.yaml", "hello", "a.yaml: is neither an object nor a list of objects\n"},
		{"aliases that grow", OCM, "a.yaml",
			"a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e]\n",
			"a.yaml: writes out more than 100000 values with its aliases\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &Reader{From: c.from}
			got := ""
			if err := r.Text(c.file, []byte(c.text)); err != nil {
				got = err.Error() + "\n"
			} else {
				got = lines(r)
			}
			if got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
		})
	}
}

// TestMerge checks that rows are sorted, and that fields stay if the source does not have
// them. A second pull changes nothing.
func TestMerge(t *testing.T) {
	clusters := []Cluster{
		{Name: "a", Address: "192.0.2.1", Labels: map[string]string{"region": "east", "helm.sh/chart": "x"}},
		{Name: "b", ClusterType: "edge", Labels: map[string]string{"region": "west"}},
	}
	for _, c := range []struct{ name, file, fields, before, changes, after string }{
		{"new csv", "s.csv", "", "", "added a, added b", "name,address,labels.region,clusterType\na,192.0.2.1,east,\nb,,west,edge\n"},
		{"columns of a new csv", "s.csv", `{"separator": ";", "columns": {"name": "id", "address": "ip", "labels": {"region": "site", "pci": "pci"}, "values": {"T": "tills"}}}`, "",
			"added a, added b", "id;ip;pci;site;tills;clusterType\na;192.0.2.1;;east;;\nb;;;west;;edge\n"},
		{"bom, crlf, quotes", "s.csv", "", bom + "owner,name\r\n\"A, \"\"B\"\"\",b\r\n", "added a, changed b",
			bom + "owner,name,address,labels.region,clusterType\r\n,a,192.0.2.1,east,\r\n\"A, \"\"B\"\"\",b,,west,edge\r\n"},
		{"a type that the inventory gives", "s.csv", `{"clusterType": "edge"}`, "name,address,clusterType,labels.region\nb,,,west\na,192.0.2.1,,east\n", "", ""},
		{"an address that is gone", "s.csv", `{"clusterType": "edge"}`, "name,address,labels.region,labels.own\na,192.0.2.1,east,1\nb,192.0.2.2,west,2\n", "changed b",
			"name,address,labels.region,labels.own\na,192.0.2.1,east,1\nb,,west,2\n"},
		{"new json", "s.json", "", "", "added a, added b",
			"[\n  {\n    \"name\": \"a\",\n    \"address\": \"192.0.2.1\",\n    \"labels\": {\n      \"region\": \"east\"\n    }\n  },\n  {\n    \"name\": \"b\",\n    \"clusterType\": \"edge\",\n    \"labels\": {\n      \"region\": \"west\"\n    }\n  }\n]\n"},
		{"ndjson", "s.ndjson", `{"clusterType": "edge"}`, `{"name": "z"}` + "\n" + `{"x": 1.50, "name": "b", "labels": {"region": "north", "\ud83d\ude00": null}}` + "\n", "added a, changed b, removed z",
			`{"name":"a","address":"192.0.2.1","labels":{"region":"east"}}` + "\n" + `{"x":1.50,"name":"b","labels":{"region":"west","😀":null}}` + "\n"},
		{"rows of json", "s.json", `{"rows": "list", "clusterType": "edge"}`, `{"when": 1e3, "list": null}`, "added a, added b",
			"{\n  \"when\": 1e3,\n  \"list\": [\n    {\n      \"name\": \"a\",\n      \"address\": \"192.0.2.1\",\n      \"labels\": {\n        \"region\": \"east\"\n      }\n    },\n    {\n      \"name\": \"b\",\n      \"labels\": {\n        \"region\": \"west\"\n      }\n    }\n  ]\n}\n"},
		{"new yaml", "s.yaml", `{"rows": "list"}`, "", "added a, added b",
			"list:\n  - name: a\n    address: 192.0.2.1\n    labels:\n      region: east\n  - name: b\n    clusterType: edge\n    labels:\n      region: west\n"},
		{"yaml with comments", "s.yaml", `{"clusterType": "edge", "columns": {"labels": {"region": "site.region"}}}`,
			"# All.\n\n- name: b # the second\n  site: {region: 'north', floor: 007}\n- name: a\n  address: 192.0.2.1\n  site:\n    region: east # of old\n", "changed b",
			"# All.\n\n- name: a\n  address: 192.0.2.1\n  site:\n    region: east # of old\n- name: b # the second\n  site: {region: west, floor: 007}\n"},
		{"yaml that is empty", "s.yaml", `{"clusterType": "edge"}`, "# None yet.\n[]\n", "added a, added b",
			"# None yet.\n- name: a\n  address: 192.0.2.1\n  labels:\n    region: east\n- name: b\n  labels:\n    region: west\n"},
		{"twice", "s.csv", "", "name\na\na\n", "", "error: s.csv:3: cluster a is in line 2 already: leave one of them"},
		{"too wide", "s.csv", "", "name\na,b\n", "", "error: s.csv cannot be read: line 2 has 2 fields, and there are 1 columns"},
		{"cut off", "s.json", "", "[\n{\"name\": \"a\"},\n", "", "error: s.json is no JSON in line 2: unexpected EOF after offset 17"},
		{"no list", "s.yaml", "", "a: b\n", "", "error: s.yaml holds no list of clusters"},
		{"no object", "s.yaml", "", "- name: a\n- b\n", "", "error: s.yaml has something in line 2 that is no object: take it away first"},
		{"aliases", "s.yaml", "", "- &a {name: a}\n- *a\n", "", "error: s.yaml has aliases, which a change of other rows could break: write them out first"},
		{"a label that is no text", "s.json", "", `[{"name": "a", "labels": {"region": ["x"]}}]`, "", "error: s.json:1: labels.region of cluster a: region is no text"},
		{"an ending", "s.txt", "", "", "", `error: s.txt has an ending that says nothing: say what it is with format: "csv", "json", "ndjson" or "yaml"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			inv := inventoryOf(t, c.file, c.fields)
			d, after, err := Merge(inv, nil, c.file, []byte(c.before), clusters)
			if err != nil {
				if got := "error: " + err.Error(); got != c.after {
					t.Fatalf("got %q, want %q", got, c.after)
				}
				return
			}
			var changes []string
			for _, c := range d.Clusters {
				changes = append(changes, c.Change+" "+c.Cluster)
			}
			if got := strings.Join(changes, ", "); got != c.changes || string(after) != c.after {
				t.Errorf("got %s\n%swant %s\n%s", got, after, c.changes, c.after)
			}
			if after == nil {
				return
			}
			if again, text, err := Merge(inv, nil, c.file, after, clusters); err != nil || text != nil || len(again.Clusters) > 0 {
				t.Errorf("a second pull: %v, %v\n%s", again, err, text)
			}
		})
	}
}

// TestNoClusters checks that a source without clusters removes nothing, unless the
// inventory allows it.
func TestNoClusters(t *testing.T) {
	inv := inventoryOf(t, "s.csv", "")
	if _, _, err := Merge(inv, nil, "s.csv", []byte("name\na\n"), nil); err == nil || !strings.Contains(err.Error(), "allowEmpty: true") {
		t.Errorf("error %v", err)
	}
	inv.AllowEmpty = true
	if _, after, err := Merge(inv, nil, "s.csv", []byte("name\na\n"), nil); err != nil || string(after) != "name\n" {
		t.Errorf("%q, error %v", after, err)
	}
}

// FuzzPull checks that a pull ends, whatever a source and a file have. Its output has no
// control sequences for a terminal. A second pull changes nothing.
func FuzzPull(f *testing.F) {
	f.Add("ocm", "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata: {name: a, labels: {b: c}}\n", "csv", "name,labels.b\nz,1\n")
	f.Add("argocd", `{"items": [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "labels": {"argocd.argoproj.io/secret-type": "cluster"}}, "data": {"name": "YQ=="}}]}`, "json", `[{"name": "z"}]`)
	f.Add("kubeconfig", "contexts: [{name: a, context: {cluster: b}}]\nclusters: [{name: b, cluster: {server: 'https://x:1'}}]\n", "yaml", "# c\n- name: a # d\n  labels: {b: ~}\n")
	f.Add("ansible", "[a]\nb[1:2] ansible_host=\"x\"\n[c:children]\na\n", "ndjson", `{"name": "b1"}`)
	f.Add("ansible", "all: {children: {a: {hosts: {b: {ansible_host: c}}}}}", "yaml", "")
	f.Fuzz(func(t *testing.T, from, text, format, before string) {
		formats := []string{"csv", "json", "ndjson", "yaml"}
		if !slices.Contains(Sources(), from) || !slices.Contains(formats, format) || len(text)+len(before) > 1<<12 {
			return
		}
		r := &Reader{From: from}
		told := func(err error) {
			if err != nil && strings.ContainsAny(err.Error(), "\x1b\n\r") {
				t.Errorf("the error is %q", err)
			}
		}
		if err := r.Text("x", []byte(text)); err != nil {
			told(err)
			return
		}
		clusters, err := r.Clusters()
		for _, n := range r.Notes() {
			told(fmt.Errorf("%s", n))
		}
		if err != nil || len(clusters) > 1000 {
			told(err)
			return
		}
		inv := inventoryOf(t, "s", fmt.Sprintf(`{"allowEmpty": true, "format": %q}`, format))
		_, after, err := Merge(inv, nil, "s", []byte(before), clusters)
		if err != nil || after == nil {
			return
		}
		if again, _, err := Merge(inv, nil, "s", after, clusters); err != nil || len(again.Clusters) > 0 {
			t.Errorf("a second pull of %q has %v, error %v", after, again, err)
		}
	})
}
