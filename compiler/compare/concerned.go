package compare

import (
	"bytes"
	"maps"
	"sync"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/all"
)

// A dividing backend makes files of which parts are for single clusters.
type dividing interface {
	// Divide returns the parts of a file that are for single clusters, by cluster, and with ""
	// what is for all of them; nil where all of it is. The file is a cluster type's own, or in
	// an assignment's folder.
	Divide(path string, data []byte, own bool) map[string][]byte
}

var known = sync.OnceValue(all.Backends)

// partsOf returns the clusters that the differences of two folders are for alone; nil where
// they are for all clusters of the type.
func (p pair) partsOf(before, after map[string]backends.File) map[string]bool {
	b, divides := known()[p.after.Backend].(dividing)
	if !divides || p.after.Cluster != "" || p.before.Backend != p.after.Backend {
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
		own := p.after.Assignment == ""
		// A file that is not there has no part of any cluster.
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

// concerned are the clusters that folders which changed are for alone, by the folder that they
// follow, as <environment>/<clusterType>; nil where they are for all that follow it.
type concerned map[string]map[string]bool

func (c concerned) add(p pair, found *changes) {
	if p.after.Cluster == "" {
		c.in(p.after.Environment+"/"+p.after.ClusterType, found.of)
	}
}

func (c concerned) in(folder string, of map[string]bool) {
	switch now, is := c[folder]; {
	case of == nil || is && now == nil:
		c[folder] = nil
	case !is:
		c[folder] = of
	default:
		maps.Copy(now, of)
	}
}

// merge adds those of another worker.
func (c concerned) merge(more concerned) {
	for folder, of := range more {
		c.in(folder, of)
	}
}

// has says whether folders concern a cluster that follows a folder in which something differs.
func (c concerned) has(folder, cluster string) bool {
	of, is := c[folder]
	return !is || of == nil || of[cluster]
}
