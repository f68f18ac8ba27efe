package names

import (
	"github.com/kalypso-io/kalypso/compiler/evaluate/shape"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// slot is what may stand at a path.
type slot struct {
	*shape.Shape
	of *shape.Field // the field that it is, or is in
	// names is the collection of what a value names.
	names string
	// labels is set inside of a selector's labels, or of what a match constrains: of whose
	// labels it speaks. Of a value, key is the label's.
	labels side
	key    string
}

// side is whose labels a selector speaks of.
type side int

const (
	noLabels side = iota
	ofTargets
	ofClusterTypes
	ofClusters
	ofBoth
)

// at returns what may stand at a path; nil where the schema says nothing of it.
func at(path []string) *slot {
	if path == nil {
		return nil
	}
	s := &slot{Shape: shape.Platform()}
	for i, name := range path {
		if s.labels == ofBoth || s.labels != noLabels && s.of.Name == "labels" {
			s.fact(name)
			if i < len(path)-1 && path[i+1] != "[]" {
				return nil
			}
			return s
		}
		if name == "[]" {
			if s.Elem != nil {
				s.Shape = s.Elem
			}
			continue
		}
		if of, isInput := s.Inputs[name]; isInput {
			s.of = &of
		} else if s.of = s.Field(name); s.of == nil {
			return nil
		}
		s.Shape = s.of.Shape
		s.names = model.References[s.of.In+"."+s.of.Name]
		switch {
		case s.of.Name == "match":
			s.labels = ofBoth
		case s.of.Name != "labels":
		case s.of.In == "#DeploymentTargetSelector":
			s.labels = ofTargets
		case s.of.In == "#ClusterTypeSelector":
			s.labels = ofClusterTypes
		case s.of.In == "#ClusterSelector":
			s.labels = ofClusters
		}
	}
	return s
}

// fact makes it the slot of a label, or of another fact of an assignment.
func (s *slot) fact(name string) {
	s.Shape = &shape.Shape{}
	if s.names = model.References["#Assignment."+name]; s.names == "" || s.labels == ofClusterTypes ||
		s.labels == ofClusters || s.labels == ofTargets && name != "workload" && name != "workspace" {
		s.names, s.key = "", name
	}
}
