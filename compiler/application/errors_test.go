package application_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/application"
)

// all are the targets of shop.
var all = []string{"dev/east", "dev/west", "prod/main", "prod/other"}

// failing are edits of shop, each with the reported error and the targets that fail.
var failing = []struct {
	name   string
	edit   folder
	want   string
	failed []string
}{
	{
		"values that are no YAML", folder{"environments/dev/east/values.yaml": "a:\n- [\n"},
		"K1001 the file is not valid YAML: did not find expected node content @environments/dev/east/values.yaml:2:1 on dev/east", all[:1],
	},
	{
		"values that are no mapping", folder{"environments/dev/east/values.yaml": "- a\n"},
		"K1103 environments/dev/east/values.yaml is no mapping @environments/dev/east/values.yaml:1:1 on dev/east", all[:1],
	},
	{
		"a key given twice", folder{"environments/dev/east/values.yaml": "b: 1\nb: 2\n"},
		"K1108 the key b is given twice @environments/dev/east/values.yaml:1:1 @environments/dev/east/values.yaml:2:1 on dev/east", all[:1],
	},
	{
		"values of an environment", folder{"environments/dev/values.yaml": "a: [\n"},
		"K1001 the file is not valid YAML: did not find expected node content @environments/dev/values.yaml:1:1 on dev/east, dev/west", all[:2],
	},
	{
		"values that the root refuses", folder{"environments/dev/east/values.yaml": "b: 1\nregion: 1\n"},
		"K2009 region breaks a contract: it must be of type string, and is of type int @environments/dev/east/values.yaml:2:1 @values.cue:1:1 on dev/east", all[:1],
	},
	{
		"values that an environment refuses", folder{"environments/prod/main/values.yaml": "tier: bronze\n"},
		`K2009 tier breaks a contract: "bronze" is not allowed @environments/prod/main/values.yaml:1:1 @environments/prod/values.cue:1:1 on prod/main`, all[2:3],
	},
	{
		"what is required", folder{"environments/dev/east/values.cue": "owner!: string\n"},
		"K2009 required key owner has no value @environments/dev/east/values.cue:1:1 on dev/east", all[:1],
	},
	{
		"what a condition requires", folder{"environments/dev/east/values.cue": "b: int\nif b > 0 {owner!: string}\n", "environments/dev/east/values.yaml": "b: 1\n"},
		"K2009 required key owner has no value @environments/dev/east/values.cue:2:4 on dev/east", all[:1],
	},
	{
		"contracts in conflict", folder{"environments/dev/east/values.cue": "region: int\n"},
		"K1108 conflicting values string and int for region @environments/dev/east/values.cue:1:9 @values.cue:1:9 on dev/east", all[:1],
	},
	{
		"a contract that is no CUE", folder{"environments/prod/values.cue": "tier: {\n"},
		"K1001 { is not closed @environments/prod/values.cue:1:7 on prod/main, prod/other", all[2:],
	},
	{
		"a template that fails", folder{"environments/dev/east/values.yaml": "broken: true\n"},
		"K3015 execution error at (shop/templates/it.yaml:1:26): broken @kalypso.yaml:2:1 on dev/east", all[:1],
	},
	{
		"a folder that is no name", folder{"environments/dev/East/values.yaml": ""},
		`K1106 folder environments/dev/East: "East" is no name @environments/dev/East:1:1`, []string{"dev/East"},
	},
	{
		"a chart that is not there", folder{"kalypso.yaml": "name: shop\nmanifests:\n  helm:\n    path: ./none\n"},
		`K3014 there is no chart in ./none: "none" is no folder of the source @kalypso.yaml:4:11`, all,
	},
	{
		"a chart that is none", folder{"chart/Chart.yaml": "{"},
		"K3014 the chart cannot be loaded: cannot load Chart.yaml: error converting YAML to JSON: yaml: line 1: did not find expected node content @kalypso.yaml:2:26 on dev/east, dev/west, prod/main, prod/other", all,
	},
	{
		"a chart that is not locked", folder{"kalypso.yaml": "name: shop\nmanifests:\n  helm: {repo: \"https://example.test\", chart: shop, version: 1.x}\n"},
		"K3011 chart shop 1.x of https://example.test is not in kalypso.lock @kalypso.yaml:3:3", all,
	},
}

// A target with an error keeps its last good folder, or has none if there never was one.
// The others are written; with Strict, nothing is written. The error has a position.
func TestErrors(t *testing.T) {
	now := shop.with(folder{"chart/values.yaml": "chart: new\n"})
	dir := now.in(t)
	good := afresh(t, dir)
	for _, c := range failing {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, out := shop.in(t), t.TempDir()
			written(t, dir, out)
			before := everything(t, out)
			now.with(c.edit).replace(t, dir)

			_, changes, err := application.Write(t.Context(), request(dir), application.Output{Dir: out, Strict: true})
			must(t, err)
			equal(t, "strict", everything(t, out), before)
			if len(changes) > 0 {
				t.Errorf("changed %v", changes)
			}

			_, said := write(t, dir, out)
			if !slices.Equal(said, []string{c.want}) {
				t.Errorf("said %q, want %q", said, c.want)
			}
			want, anew := folder{}, folder{}
			for _, target := range all {
				if slices.Contains(c.failed, target) {
					maps.Copy(want, below(before, target))
					continue
				}
				maps.Copy(want, below(good, target))
				maps.Copy(anew, below(good, target))
			}
			equal(t, "over the last good tree", read(t, out), want)

			out = t.TempDir()
			a, _, err := application.Write(t.Context(), request(dir), application.Output{Dir: out})
			must(t, err)
			equal(t, "the first time", read(t, out), anew)
			for _, target := range a.Targets {
				if failed := slices.Contains(c.failed, target.Environment+"/"+target.Name); target.Failed != failed || (len(target.Files) == 0) != failed {
					t.Errorf("%s/%s: failed is %t, with %d files", target.Environment, target.Name, target.Failed, len(target.Files))
				}
			}
		})
	}
}

// If the application is unknown, its tree stays unchanged.
func TestUnknownApplication(t *testing.T) {
	for name, text := range map[string]string{
		"no YAML":     "name: [\n",
		"misspelt":    "name: shop\nmanifest: {helm: {path: ./chart}}\n",
		"nothing":     "",
		"two sources": "name: shop\nmanifests: {helm: {path: ./chart}, kustomize: {}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, out := shop.in(t), t.TempDir()
			written(t, dir, out)
			before := everything(t, out)
			shop.with(folder{"kalypso.yaml": text, "environments/dev/east/values.yaml": "-"}).replace(t, dir)
			changes, said := write(t, dir, out)
			if len(changes) > 0 || len(said) == 0 || !strings.Contains(said[0], " @kalypso.yaml:") {
				t.Errorf("changed %v, said %q", changes, said)
			}
			equal(t, "its tree", everything(t, out), before)
		})
	}
}

// If the output is a file, the request is wrong, and Write changes nothing.
func TestOutputIsAFile(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out")
	must(t, os.WriteFile(out, []byte("mine"), 0o666))
	_, _, err := application.Write(t.Context(), request(shop.in(t)), application.Output{Dir: out})
	if err == nil || !strings.Contains(err.Error(), out+" is not a folder") {
		t.Errorf("got %v", err)
	}
	if text, err := os.ReadFile(out); err != nil || string(text) != "mine" {
		t.Errorf("it is %q, %v", text, err)
	}
}
