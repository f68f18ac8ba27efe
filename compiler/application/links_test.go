package application_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/application"
)

// The folder of a target, of an environment or of all may be a link to another folder of
// the application. A link that leads elsewhere is an error, and the output stays unchanged.
func TestLinkedFolders(t *testing.T) {
	elsewhere := t.TempDir()
	for name, c := range map[string]struct {
		link, to string
		targets  []string
		said     []string
		same     map[string]string // folders with equal manifests
	}{
		"a target": {"environments/dev/north", "east", []string{"dev/east", "dev/north", "dev/west", "prod/main", "prod/other"}, nil, nil},
		"an environment": {"environments/stage", "prod", []string{"dev/east", "dev/west", "prod/main", "prod/other", "stage/main", "stage/other"}, nil,
			map[string]string{"prod/main": "stage/main", "prod/other": "stage/other"}},
		"a folder with itself":     {"environments/dev/all", "..", []string{"dev/all", "dev/east", "dev/west", "prod/main", "prod/other"}, nil, nil},
		"a target nowhere":         {"environments/dev/west", "none", all, []string{"K3014 folder environments/dev/west is a link that leads nowhere, or out of the application @environments/dev/west:1:1 on dev/west"}, nil},
		"a target elsewhere":       {"environments/dev/west", elsewhere, all, []string{"K3014 folder environments/dev/west is a link that leads nowhere, or out of the application @environments/dev/west:1:1 on dev/west"}, nil},
		"an environment elsewhere": {"environments/dev", elsewhere, nil, []string{"K3014 folder environments/dev is a link that leads nowhere, or out of the application @environments/dev:1:1"}, nil},
		"all nowhere":              {"environments", "none", nil, []string{"K3014 folder environments is a link that leads nowhere, or out of the application @environments:1:1"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, out := shop.in(t), t.TempDir()
			written(t, dir, out)
			before := read(t, out)
			must(t, os.RemoveAll(filepath.Join(dir, c.link)))
			must(t, os.Symlink(c.to, filepath.Join(dir, c.link)))
			a, _, err := application.Write(t.Context(), request(dir), application.Output{Dir: out})
			must(t, err)
			if got := lines(a.Diagnostics); !slices.Equal(got, c.said) {
				t.Errorf("said %q, want %q", got, c.said)
			}
			var targets []string
			for _, target := range a.Targets {
				targets = append(targets, target.Environment+"/"+target.Name)
			}
			if !slices.Equal(targets, c.targets) {
				t.Errorf("got targets %q, want %q", targets, c.targets)
			}
			after := read(t, out)
			for _, target := range all {
				equal(t, target, below(after, target), below(before, target))
			}
			for one, other := range c.same {
				if x, y := after[one+"/manifests.yaml"], after[other+"/manifests.yaml"]; x != y || x == "" {
					t.Errorf("%s has\n%s\nand %s\n%s", one, x, other, y)
				}
			}
		})
	}
}
