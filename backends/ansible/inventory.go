package ansible

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// hostsFile is the inventory, in a cluster type's folder and in a cluster's entry.
const hostsFile = "inventory/hosts.yml"

// hosts is an inventory: one group, named after the cluster type.
type hosts struct {
	All struct {
		Vars     *connection      `yaml:"vars,omitempty"`
		Children map[string]group `yaml:"children"`
	} `yaml:"all"`
}

type group struct {
	Hosts map[string]host `yaml:"hosts"`
}

// host are the variables of a cluster.
type host struct {
	Address string         `yaml:"ansible_host,omitempty"`
	Labels  map[string]any `yaml:"kalypso_labels,omitempty"`
	Values  yaml.Mapping   `yaml:"kalypso_values,omitempty"`
	// Composed are what is composed for the cluster alone, by assignment.
	Composed map[string]any `yaml:"kalypso_composed,omitempty"`
}

// connection is how the hosts of a cluster type are reached.
type connection struct {
	Python string `yaml:"ansible_python_interpreter"`
	User   string `yaml:"ansible_user,omitempty"`
}

func connectionOf(o options) connection { return connection{Python: o.Python, User: o.RemoteUser} }

// inventory returns clusters of a cluster type. The values of one are part of
// the platform config there, over those of its assignments, so that their names
// must do in every format.
func inventory(ct *backends.ClusterType, clusters []model.Cluster) (hosts, []diag.Diagnostic) {
	var ds []diag.Diagnostic
	all := map[string]host{}
	for _, c := range clusters {
		h := host{Address: c.Address, Labels: map[string]any{}}
		for key, value := range c.Labels {
			h.Labels[key] = unsafe(model.StringOf(value))
		}
		check := func(values model.Value, ref model.Ref) {
			for _, v := range values.Fields() {
				if problem := unfitFor(v); problem != "" {
					ds = append(ds, diag.New(diag.BadConfigKey, fmt.Sprintf("the value %s of cluster %s %s", v.Name, c.Name, problem)).
						On(ref.At(model.Label(v.Name)).String()).At(ref.At(model.Label(v.Name)), ""))
				}
			}
		}
		ref := model.Ref{Collection: "clusters", Name: c.Name}
		if c.Values != nil {
			check(*c.Values, ref.At("values"))
			h.Values, _ = unsafe(*c.Values).(yaml.Mapping)
		}
		for _, target := range slices.Sorted(maps.Keys(c.Composed)) {
			values := c.Composed[target]
			check(values, ref)
			if h.Composed == nil {
				h.Composed = map[string]any{}
			}
			h.Composed[target] = unsafe(values)
		}
		all[c.Name] = h
	}
	var out hosts
	out.All.Children = map[string]group{identifier(ct.Name): {Hosts: all}}
	return out, ds
}

// unfitFor says why a value cannot be part of a host's platform config; "" where
// it can.
func unfitFor(v model.Field) string {
	switch {
	case !variable.MatchString(v.Name):
		return "cannot be the name of a variable: use letters, digits and '_'"
	case holdsNull(v.Value):
		return "is null, or has a null, which takes nothing away on a single machine: give the cluster " +
			"a cluster type of its own, and a config in which it is null"
	case slices.ContainsFunc(texts(v.Value), func(s string) bool { return strings.ContainsFunc(s, refusedBySystemd) }):
		return "has a control character: encode it, for instance with base64.Encode"
	}
	return ""
}

// holdsNull says whether a value is null, or a struct with a null at any depth.
func holdsNull(v model.Value) bool {
	_, nulls := v.WithoutNulls()
	return v.Kind() == model.Null || nulls.Kind() == model.Struct
}

// texts returns all strings of a value.
func texts(v model.Value) []string {
	var out []string
	for _, e := range v.Elems() {
		out = append(out, texts(e)...)
	}
	for _, f := range v.Fields() {
		out = append(out, texts(f.Value)...)
	}
	if v.Kind() == model.String {
		out = append(out, v.Text())
	}
	return out
}

// Divide returns the parts of a file that are for single clusters, by cluster, and with "" what
// is for all of them; nil where all of it is.
func (ansible) Divide(file string, data []byte, own bool) map[string][]byte {
	if !own || file != hostsFile {
		return nil
	}
	return delivery.Divide(data, func(doc *yamlnode.Node, part func(string, *yamlnode.Node)) {
		groups := delivery.Node(doc, "all", "children")
		if groups == nil || groups.Kind != yamlnode.MappingNode {
			return
		}
		for i := 1; i < len(groups.Content); i += 2 {
			hosts := delivery.Node(groups.Content[i], "hosts")
			if hosts == nil || hosts.Kind != yamlnode.MappingNode {
				continue
			}
			for n := 1; n < len(hosts.Content); n += 2 {
				part(hosts.Content[n-1].Value, hosts.Content[n])
			}
			hosts.Content = nil
		}
	})
}

// Takes says that all of a host's variables are for all of its assignments, except its address.
func (ansible) Takes(_ backends.Folder, path string) (string, bool) {
	return "", !strings.HasSuffix(path, ".ansible_host")
}
