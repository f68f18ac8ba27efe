package compare

import (
	"bytes"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/all"
)

var known = sync.OnceValue(all.Backends)

// partsOf returns the only clusters that the differences of two folders are for; nil if
// they are for all clusters of the type.
func (j *job) partsOf(before, after map[string]backends.File) map[string]bool {
	b, divides := known()[j.after.Backend].(backends.Dividing)
	if !divides || j.after.Cluster != "" || j.before.Backend != j.after.Backend {
		return nil
	}
	out := map[string]bool{}
	names := maps.Clone(before)
	maps.Copy(names, after)
	for name := range names {
		x, inX := before[name]
		y, inY := after[name]
		if inX && inY && x.Executable == y.Executable && bytes.Equal(x.Data, y.Data) {
			continue
		}
		own := j.after.Assignment == ""
		// A file that does not exist has no part of any cluster.
		was, is := map[string][]byte{}, map[string][]byte{}
		if inX {
			was = b.Divide(name, x.Data, own)
		}
		if inY {
			is = b.Divide(name, y.Data, own)
		}
		if was == nil || is == nil || inX && inY && x.Executable != y.Executable {
			return nil
		}
		clusters := maps.Clone(was)
		maps.Copy(clusters, is)
		for cluster := range clusters {
			switch {
			case bytes.Equal(was[cluster], is[cluster]):
			case cluster == "":
				return nil
			default:
				out[cluster] = true
			}
		}
	}
	return out
}

// attribute finds the deployment targets whose values change with a cluster type's own files
// for single clusters, or with a cluster's entry. An object belongs to such a target, or the
// target takes a variable.
func (j *job) attribute() {
	if len(j.found.list) == 0 {
		j.found.detail = true
		return
	}
	j.attributed, j.variables = map[string]bool{}, map[string]string{}
	for i := range j.found.list {
		j.found.list[i].detail = j.isDetail(&j.found.list[i])
	}
	j.found.detail = !slices.ContainsFunc(j.found.list, func(c Change) bool { return !c.detail })
	if j.after.Cluster == "" && len(j.found.of) == 0 {
		return
	}
	for i := range j.found.list {
		switch c := &j.found.list[i]; {
		case c.detail:
		case c.assignment != "":
			j.attributed[path.Base(c.assignment)] = true
		default:
			j.attributed[variablePrefix+c.Path] = true
		}
	}
}

// variablePrefix marks a path in attributed whose deployment targets a backend knows.
const variablePrefix = "\x00"

// valuePart is the part of a single cluster's value that a folder uses, by
// backends.Dividing.
type valuePart struct {
	name string
	is   bool
}

// valueAt is a path in the values of single clusters, for a folder.
type valueAt struct {
	folder *Folder
	path   string
}

// takes reports whether an attributed change changes the values of a deployment target. It
// records the names of the values. all caches the answers of folders.
func (j *job) takes(f *Folder, all map[valueAt]valuePart) bool {
	found := j.attributed[f.Assignment]
	b, knows := known()[f.Backend].(backends.Dividing)
	for p := range j.attributed {
		at, is := strings.CutPrefix(p, variablePrefix)
		switch {
		case !is:
		case !knows || f.Info == nil:
			found = true
		default:
			of, asked := all[valueAt{f, at}]
			if !asked {
				of.name, of.is = b.Takes(*f.Info, at)
				all[valueAt{f, at}] = of
			}
			if of.is {
				j.variables[at], found = of.name, true
			}
		}
	}
	return found
}

// isDetail reports whether a change of a cluster type's own files does nothing by itself
// on clusters. Texts for people are such files, and objects that apply an added or
// removed assignment.
func (j *job) isDetail(c *Change) bool {
	switch {
	case path.Base(c.File) == "README.md":
		return true
	case path.Base(c.File) == "kustomization.yaml" && strings.HasPrefix(c.Path, "resources"):
		for _, text := range []json.RawMessage{c.From, c.To} {
			var name string
			if text != nil && (json.Unmarshal(text, &name) != nil || !j.assigned[path.Base(name)]) {
				return false
			}
		}
		return true
	}
	return c.assignment != "" && c.Path == ""
}
