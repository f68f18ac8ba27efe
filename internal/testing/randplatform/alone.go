package randplatform

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Alone returns the platform with only one cluster, of a cluster type of its own, without
// selectors of clusters. If a selector selects this cluster, it is left out. If it does not, the
// object with the selector is left out. Alone returns false if no inventory has a row of the
// cluster.
func (p *Platform) Alone(environment, cluster string) (alone *Platform, ok bool) {
	c := p.Clone()
	var own *row
	for file, rows := range c.rows {
		c.rows[file] = slices.DeleteFunc(rows, func(w row) bool { return w.name != cluster })
		for i := range c.rows[file] {
			w := c.rows[file][i]
			w.clusterType = c.typeOf(file, w)
			c.rows[file][i].clusterType = w.clusterType
			own = &w
		}
	}
	if own == nil {
		return nil, false
	}
	labels := map[string]string{}
	for _, e := range c.of("clusterTypes") {
		if e.name() != own.clusterType || e.scope != "" && e.scope != environment || e.body.get("labels") == nil {
			continue
		}
		for _, f := range e.body.get("labels").fields {
			labels[f.label], _ = strconv.Unquote(f.value.text)
		}
	}
	for label, v := range own.labels {
		if v != "" {
			labels[label] = v
		}
	}
	c.entities = slices.DeleteFunc(c.entities, func(e *entity) bool {
		switch e.collection {
		case "clusters":
			return true
		case "inventories":
			// A file without rows is an error.
			return len(c.rows[c.fileOf(e)]) == 0
		case "schedulingPolicies", "configs", "configSchemas":
			return !e.resolve(cluster, labels)
		}
		return false
	})
	maps.DeleteFunc(c.rows, func(_ string, rows []row) bool { return len(rows) == 0 })
	return c, true
}

// fileOf returns the file of an inventory.
func (p *Platform) fileOf(e *entity) string {
	file, _ := strconv.Unquote(e.body.get("file").text)
	if e.scope != "" {
		file = "environments/" + e.scope + "/" + file
	}
	return file
}

// typeOf returns the cluster type of a row, or else the cluster type of its inventory.
func (p *Platform) typeOf(file string, w row) string {
	if w.clusterType != "" {
		return w.clusterType
	}
	for _, e := range p.namedOf("inventories") {
		if p.fileOf(e) == file {
			name, _ := strconv.Unquote(e.body.get("clusterType").text)
			return name
		}
	}
	return ""
}

// resolve reports whether an entity is about a cluster, and leaves out its selectors of
// clusters.
func (e *entity) resolve(cluster string, labels map[string]string) bool {
	if except := e.body.get("except"); except.get("clusters") != nil {
		holds := selects(except.get("clusters"), cluster, labels)
		except.drop("clusters")
		switch {
		case !holds:
			e.body.drop("except")
		case len(except.fields) == 0:
			return false
		}
	}
	if s := e.body.get("clusters"); s != nil {
		e.body.drop("clusters")
		return selects(s, cluster, labels)
	}
	return true
}

// selects reports whether a selector holds for a cluster.
func selects(s *value, cluster string, labels map[string]string) bool {
	if name := s.get("name"); name != nil && !satisfies(name.text, cluster) {
		return false
	}
	if s.get("labels") == nil {
		return true
	}
	for _, f := range s.get("labels").fields {
		label, optional := strings.CutSuffix(f.label, "?")
		v, there := labels[label]
		if !there && !optional || there && !satisfies(f.value.text, v) {
			return false
		}
	}
	return true
}

// satisfies reports whether a text satisfies a constraint as clusterSelector writes
// them.
func satisfies(constraint, text string) bool {
	quoted := func(s string) string {
		s, err := strconv.Unquote(s)
		if err != nil {
			panic("a constraint of another form: " + constraint)
		}
		return s
	}
	if constraint == "_|_" {
		return false
	}
	if not, ok := strings.CutPrefix(constraint, "!="); ok {
		return quoted(not) != text
	}
	if pattern, ok := strings.CutPrefix(constraint, "=~"); ok {
		return regexp.MustCompile(quoted(pattern)).MatchString(text)
	}
	return slices.ContainsFunc(strings.Split(constraint, " | "), func(one string) bool { return quoted(one) == text })
}

// Removed reports whether a cluster is removed from an environment by name.
func (p *Platform) Removed(environment, cluster string) bool {
	for _, e := range p.of("environments") {
		removed := e.body.get("removals", "clusters")
		if e.name() == environment && removed != nil && slices.ContainsFunc(removed.elems,
			func(v *value) bool { return v.text == strconv.Quote(cluster) }) {
			return true
		}
	}
	return false
}
