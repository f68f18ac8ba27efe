package pull

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kalypso-io/kalypso/internal/lazyregexp"
)

// groupLabel is the prefix of the labels of groups.
const groupLabel = "group."

// hosts are the hosts and groups of an inventory of Ansible.
type hosts struct {
	addresses map[string]string          // by host; "" if it is not said
	groups    map[string]map[string]bool // of a host
	parents   map[string]map[string]bool // of a group
}

func newHosts() *hosts {
	return &hosts{map[string]string{}, map[string]map[string]bool{}, map[string]map[string]bool{}}
}

func put(in map[string]map[string]bool, key, value string) {
	if in[key] == nil {
		in[key] = map[string]bool{}
	}
	in[key][value] = true
}

// host adds the hosts of a pattern to a group.
func (h *hosts) host(pattern, group, address string) error {
	names, err := expand(pattern, maxClusters-len(h.addresses))
	for _, name := range names {
		h.addresses[name] = cmp.Or(address, h.addresses[name])
		put(h.groups, name, group)
	}
	return err
}

// addTo adds the hosts to a reader. Each host is a cluster with a label for each of its
// groups, including the groups of these groups. Of its variables, only the address is
// added.
func (h *hosts) addTo(r *Reader) error {
	for _, name := range slices.Sorted(maps.Keys(h.addresses)) {
		c := Cluster{Name: name, Address: cmp.Or(h.addresses[name], name), Labels: map[string]string{},
			origin: fmt.Sprintf("host %q", name)}
		all := slices.Sorted(maps.Keys(h.groups[name]))
		seen := map[string]bool{}
		for len(all) > 0 {
			g := all[0]
			all = all[1:]
			if seen[g] {
				continue
			}
			seen[g] = true
			all = slices.AppendSeq(all, maps.Keys(h.parents[g]))
			if g != "all" && g != "ungrouped" && g != "" {
				c.Labels[groupLabel+g] = "true"
			}
		}
		if r.Selector != nil && !r.Selector.Matches(labels.Set(c.Labels)) {
			continue
		}
		if err := r.add(c); err != nil {
			return err
		}
	}
	return nil
}

// ansible reads the hosts in the output of ansible-inventory --list, or of an inventory in
// YAML
// (https://docs.ansible.com/ansible/latest/collections/ansible/builtin/yaml_inventory.html).
func (r *Reader) ansible(groups map[string]any) error {
	h := newHosts()
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		if name == "_meta" {
			continue
		}
		if err := h.group(name, groups[name]); err != nil {
			return err
		}
	}
	meta, _ := groups["_meta"].(map[string]any)
	variables, _ := meta["hostvars"].(map[string]any)
	for name, of := range variables {
		if _, there := h.addresses[name]; there {
			h.addresses[name] = cmp.Or(addressOf(of), h.addresses[name])
		}
	}
	return h.addTo(r)
}

// group adds a group: its hosts, a list or with their variables, and its children, likewise.
func (h *hosts) group(name string, of any) error {
	var fields map[string]any
	switch of := of.(type) {
	case map[string]any:
		fields = of
	case []any:
		fields = map[string]any{"hosts": of}
	case nil:
		return nil
	default:
		return fmt.Errorf("%q is no group: is this an inventory of Ansible?", name)
	}
	switch all := fields["hosts"].(type) {
	case nil:
	case string:
		return h.host(all, name, "")
	case []any:
		for _, e := range all {
			host, ok := e.(string)
			if !ok {
				return fmt.Errorf("a host of group %q is no text", name)
			}
			if err := h.host(host, name, ""); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, host := range slices.Sorted(maps.Keys(all)) {
			if err := h.host(host, name, addressOf(all[host])); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf(
			"hosts of group %q are neither a list nor a mapping: is this an inventory of Ansible?", name)
	}
	switch all := fields["children"].(type) {
	case []any:
		for _, e := range all {
			if child, ok := e.(string); ok {
				put(h.parents, child, name)
			}
		}
	case map[string]any:
		for _, child := range slices.Sorted(maps.Keys(all)) {
			put(h.parents, child, name)
			if all[child] == nil {
				continue
			}
			if err := h.group(child, all[child]); err != nil {
				return err
			}
		}
	}
	return nil
}

// addressOf returns the address of a host with variables. It returns "" if the variables
// have no address.
func addressOf(variables any) string {
	of, _ := variables.(map[string]any)
	for _, name := range []string{"ansible_host", "ansible_ssh_host"} {
		if address, ok := of[name].(string); ok {
			return address
		}
	}
	return ""
}

// ini reads the hosts of an inventory in the form of an INI file
// (https://docs.ansible.com/ansible/latest/collections/ansible/builtin/ini_inventory.html).
func (r *Reader) ini(data []byte) error {
	h, group, what, number := newHosts(), "ungrouped", "", 0
	for line := range bytes.Lines(data) {
		number++
		text := strings.TrimSpace(string(line))
		if text == "" || text[0] == '#' || text[0] == ';' {
			continue
		}
		if m := section.FindStringSubmatch(text); m != nil {
			group, what = m[1], m[2]
			continue
		}
		var err error
		switch {
		case what == "vars":
		case text[0] == '[' && !ranges.MatchString(text):
			err = errors.New("a section is [group], [group:children] or [group:vars]")
		case what == "children":
			put(h.parents, strings.Fields(text)[0], group)
		default:
			err = h.line(text, group)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
	}
	return h.addTo(r)
}

var section = lazyregexp.New(`^\[([^:\[\]\s]+)(?::(children|vars|hosts))?\]\s*(?:[#;].*)?$`)

// line adds the host of a line of an INI file: its name, perhaps with a port, and variables.
func (h *hosts) line(text, group string) error {
	host, rest, _ := strings.Cut(strings.Map(func(c rune) rune {
		if c == '\t' {
			return ' '
		}
		return c
	}, text), " ")
	if strings.Contains(host, "=") {
		return errors.New("a line begins with a host, and variables follow it")
	}
	if m := port.FindStringSubmatch(host); m != nil {
		host = m[1]
	}
	address := ""
	for field := range fieldsOf(rest) {
		if strings.HasPrefix(field, "#") {
			break
		}
		name, value, _ := strings.Cut(field, "=")
		if name == "ansible_host" || name == "ansible_ssh_host" {
			address = value
		}
	}
	return h.host(host, group, address)
}

// port is a host with a port: no IPv6 address, and no range at its end.
var port = lazyregexp.New(`^((?:[^:\[\]]|\[[^\]]*\])+):[0-9]+$`)

// ranges is a range in a name: [01:20], [a:f], with a step or without.
var ranges = lazyregexp.New(
	`\[(?:([0-9]{1,9}):([0-9]{1,9})|([a-z]):([a-z])|([A-Z]):([A-Z]))(?::([0-9]{1,9}))?\]`)

// expand returns the names that a pattern with ranges matches. It returns an error if there
// are more than most.
func expand(pattern string, most int) ([]string, error) {
	at := ranges.FindStringSubmatchIndex(pattern)
	if at == nil {
		if most < 1 {
			return nil, fmt.Errorf("there are more than %d hosts", maxClusters)
		}
		return []string{pattern}, nil
	}
	group := func(n int) string {
		if at[2*n] < 0 {
			return ""
		}
		return pattern[at[2*n]:at[2*n+1]]
	}
	step := 1
	if group(7) != "" {
		step, _ = strconv.Atoi(group(7))
	}
	var items []string
	first, last, format := 0, 0, func(i int) string { return string(rune(i)) }
	if from := group(1); from != "" {
		first, _ = strconv.Atoi(from)
		last, _ = strconv.Atoi(group(2))
		format = func(i int) string { return fmt.Sprintf("%0*d", width(from), i) }
	} else {
		first, last = int(cmp.Or(group(3), group(5))[0]), int(cmp.Or(group(4), group(6))[0])
	}
	if step < 1 || last < first {
		return nil, fmt.Errorf("the range of %q ends before it begins, or does not move", pattern)
	}
	if (last-first)/step >= most {
		return nil, fmt.Errorf("there are more than %d hosts", maxClusters)
	}
	for i := first; i <= last; i += step {
		items = append(items, pattern[:at[0]]+format(i)+pattern[at[1]:])
	}
	var out []string
	for _, item := range items {
		more, err := expand(item, most-len(out))
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// width returns the least number of digits of the numbers of a range.
func width(from string) int {
	if strings.HasPrefix(from, "0") {
		return len(from)
	}
	return 0
}

// fieldsOf returns the fields of a line, which spaces separate. A part in quotes may have spaces,
// and loses its quotes.
func fieldsOf(line string) iter.Seq[string] {
	return func(yield func(string) bool) {
		var field strings.Builder
		quote := rune(0)
		for _, c := range line + " " {
			switch {
			case quote == 0 && (c == '"' || c == '\''):
				quote = c
			case c == quote:
				quote = 0
			case quote == 0 && c == ' ':
				if field.Len() > 0 && !yield(field.String()) {
					return
				}
				field.Reset()
			default:
				field.WriteRune(c)
			}
		}
	}
}
