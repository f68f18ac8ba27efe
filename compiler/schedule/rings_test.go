package schedule

import (
	"maps"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

func ring(name string, selects model.Selector) model.Ring {
	return model.Ring{Name: name, Select: selects}
}

func TestRings(t *testing.T) {
	types := []model.ClusterType{
		clusterTypeOf("small", "size=small", "region=east"), clusterTypeOf("large", "size=large"), clusterTypeOf("edge", "region=east"),
	}
	for name, c := range map[string]struct {
		rings []model.Ring
		want  map[string]string
		lines []string
	}{
		"none": {},
		"all in one": {
			rings: []model.Ring{ring("all", where())},
			want:  map[string]string{"small": "all", "large": "all", "edge": "all"},
		},
		"the rest stands first": {
			rings: []model.Ring{ring("rest", where()), ring("canary", where("labels.size=small"))},
			want:  map[string]string{"small": "canary", "large": "rest", "edge": "rest"},
		},
		"nothing for the rest": {
			rings: []model.Ring{ring("sized", where("labels.size")), ring("edge", where("name=edge")), ring("rest", where())},
			want:  map[string]string{"small": "sized", "large": "sized", "edge": "edge"},
		},
		"several, and none": {
			rings: []model.Ring{ring("small", where("labels.size=small")), ring("east", where("labels.region=east"))},
			want:  map[string]string{"edge": "east"},
			lines: []string{
				"K1208 clusterTypes.large: cluster type large is in no ring of environment prod: east, small" +
					" (let one of them select it; a ring with select: {} has all that are in no other)",
				"K1208 clusterTypes.small: cluster type small is in several rings of environment prod: small and east" +
					" (let only one of them select it, for instance by a label of its own for each ring)",
			},
		},
		"a misspelt ring": {
			rings: []model.Ring{ring("rest", where()), ring("canary", where("labels.size=smal"))},
			want:  map[string]string{"small": "rest", "large": "rest", "edge": "rest"},
			lines: []string{
				`K1902 environments.prod.rings[1].select: ring canary of environment prod selects nothing (no cluster type has labels.size: "smal"; did you mean small?)`,
			},
		},
	} {
		got, ds := Rings("prod", c.rings, types, nil)
		if !maps.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
		equal(t, name, lines(ds), c.lines)
		for _, d := range ds {
			if d.Environment != "prod" || (d.Code == diag.RingMembership) != (d.Severity == diag.Error) {
				t.Errorf("%s: %+v", name, d)
			}
		}
	}
}
