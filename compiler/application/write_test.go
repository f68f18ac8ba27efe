package application_test

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/application"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// removed lists the files that were removed, by environment.
func removed(changes map[string]*tree.Changes) []string {
	var out []string
	for environment, c := range changes {
		for _, name := range c.Removed {
			out = append(out, environment+"/"+name)
		}
	}
	slices.Sort(out)
	return out
}

// ofTarget are the files of a target with manifests.
func ofTarget(name string) []string {
	return []string{name + "/kustomization.yaml", name + "/manifests.yaml"}
}

// When a target is removed, its folder is removed as well, except for foreign files.
func TestGoneTargetsArePruned(t *testing.T) {
	for _, c := range []struct {
		name         string
		edit         folder // of shop
		foreign      folder // in the output
		environments []string
		want         []string
	}{
		{"a target", folder{"environments/dev/west/values.yaml": "-"}, nil, nil, ofTarget("dev/west")},
		{"with a file of others in its folder", folder{"environments/dev/west/values.yaml": "-"}, folder{"dev/west/mine": "m", "dev/west/deep/mine": "m"}, nil, ofTarget("dev/west")},
		{"beside files and folders of others", folder{"environments/dev/west/values.yaml": "-"}, folder{"dev/mine": "m", "dev/other/manifests.yaml": "m", "other/x": "m", "README": "m"}, nil, ofTarget("dev/west")},
		{
			"an environment",
			folder{"environments/prod/main/values.yaml": "-", "environments/prod/other/values.yaml": "-", "environments/prod/values.cue": "-"},
			folder{"prod/mine": "m"}, nil, append(ofTarget("prod/main"), ofTarget("prod/other")...),
		},
		{
			"an environment, and another was asked for",
			folder{"environments/prod/main/values.yaml": "-", "environments/prod/other/values.yaml": "-", "environments/prod/values.cue": "-", "environments/dev/west/values.yaml": "-"},
			nil, []string{"dev"}, ofTarget("dev/west"),
		},
		{
			"the target that there is where none is named",
			folder{"environments/dev/west/values.yaml": "-", "environments/dev/east/values.yaml": "-"},
			nil, nil, append(ofTarget("dev/east"), ofTarget("dev/west")...),
		},
		{"the manifests of a target that has none", folder{"chart/templates/it.yaml": "{{ if .Values.deep.target | eq \"dev\" | not }}\napiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n{{ end }}\n"}, nil, nil, []string{"dev/west/manifests.yaml"}},
		{"nothing", nil, folder{"dev/west/mine": "m"}, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, out := shop.in(t), t.TempDir()
			written(t, dir, out)
			c.foreign.put(t, out, slices.Sorted(maps.Keys(c.foreign)))
			before := read(t, out)
			shop.with(c.edit).replace(t, dir)
			changes := written(t, dir, out, c.environments...)
			if got := removed(changes); !slices.Equal(got, c.want) {
				t.Errorf("removed %q, want %q", got, c.want)
			}
			after := read(t, out)
			equal(t, "what others wrote", after.with(c.foreign), after)
			for _, name := range c.want {
				delete(before, name)
				if _, ok := after[name]; ok {
					t.Errorf("%s is there", name)
				}
			}
			for name := range before {
				if _, ok := after[name]; !ok {
					t.Errorf("%s is gone", name)
				}
			}
		})
	}
}

// A folder that another application writes does not change, and neither does an environment
// that it has there.
func TestOtherApplicationsAreLeftAlone(t *testing.T) {
	t.Parallel()
	dir, out := shop.in(t), t.TempDir()
	written(t, dir, out)
	want := everything(t, out)
	other := shop.with(folder{"kalypso.yaml": "name: other\nmanifests: {helm: {path: ./chart}}\n"})

	_, said := write(t, other.in(t), out)
	if len(said) != 2 || !strings.HasPrefix(said[0], "K4002 ") || !strings.HasPrefix(said[1], "K4002 ") {
		t.Errorf("said %q", said)
	}
	equal(t, "its environments", everything(t, out), want)

	elsewhere := parse(chart).with(folder{"kalypso.yaml": other["kalypso.yaml"], "environments/test/values.yaml": ""})
	written(t, elsewhere.in(t), out)
	got := everything(t, out)
	equal(t, "beside its environments", got.with(want), got)
}

// Foreign files at a target's place stay until they are adopted. They block only their own
// environment.
func TestForeignFilesAreInTheWay(t *testing.T) {
	t.Parallel()
	dir, out := shop.in(t), t.TempDir()
	foreign := folder{"dev/east/manifests.yaml": "mine"}
	foreign.put(t, out, []string{"dev/east/manifests.yaml"})
	_, said := write(t, dir, out)
	if len(said) != 1 || !strings.HasPrefix(said[0], "K4001 ") || !strings.Contains(said[0], "dev/east/manifests.yaml:") {
		t.Errorf("said %q", said)
	}
	want := afresh(t, dir)
	equal(t, "dev", below(read(t, out), "dev"), foreign)
	equal(t, "prod", below(read(t, out), "prod"), below(want, "prod"))
	_, _, err := application.Write(t.Context(), request(dir), application.Output{Dir: out, Adopt: true})
	must(t, err)
	equal(t, "adopted", read(t, out), want)
}

// An output within the application's folder is not part of the application.
func TestOutputWithin(t *testing.T) {
	for name, app := range map[string]folder{"chart": shop, "overlays": overlays} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := app.in(t)
			out := filepath.Join(dir, "out")
			written(t, dir, out)
			want := everything(t, out)
			for environment, c := range written(t, dir, out) {
				if !c.Empty() {
					t.Errorf("written again, %s: %+v", environment, c)
				}
			}
			equal(t, "again", everything(t, out), want)
		})
	}
}
