package origin_test

import (
	"testing"

	"github.com/kalypso-io/kalypso/compiler/origin"
)

// The origin of a cluster's tree is compared whole: the repository, the branch and the
// folder.
func TestOriginsAreComparedWhole(t *testing.T) {
	tree := origin.Tree{Repository: "https://git.example.com/fleet/gitops.git", Mirrors: []string{"https://mirror.example.net/gitops"}, Branch: "prod", Path: "live3"}
	const repository = "https://git.example.com/fleet/gitops.git"
	for name, c := range map[string]struct {
		is   origin.Origin
		want string
	}{
		"nothing said":            {origin.Origin{}, ""},
		"all the same":            {origin.Origin{Repository: repository, Branch: "prod", Path: "live3/store/till"}, ""},
		"as Flux writes it":       {origin.Origin{Repository: repository, Branch: "refs/heads/prod", Path: "./live3/store/till/"}, ""},
		"by ssh":                  {origin.Origin{Repository: "git@git.example.com:fleet/gitops"}, ""},
		"with a port":             {origin.Origin{Repository: "ssh://git@git.example.com:22/Fleet/GitOps.git"}, ""},
		"from a mirror":           {origin.Origin{Repository: "https://mirror.example.net/gitops.git"}, ""},
		"of a class":              {origin.Origin{Path: "live3/store.0a1b2c3d/till"}, ""},
		"a class and no place":    {origin.Origin{Path: "store.0a1b2c3d/till"}, ""},
		"below the folder":        {origin.Origin{Path: "live3/store/till/manifests"}, ""},
		"any target of the type":  {origin.Origin{Path: "live3/store/" + origin.Any}, ""},
		"a default branch":        {origin.Origin{Branch: "HEAD"}, ""},
		"another folder":          {origin.Origin{Path: "live2/store/till"}, "it applies folder live2/store/till, and live3/store/till is wanted"},
		"the root":                {origin.Origin{Repository: repository, Path: "store.0a1b2c3d/till"}, "it applies folder store.0a1b2c3d/till, and live3/store/till is wanted"},
		"a folder that begins so": {origin.Origin{Path: "live33/store/till"}, "it applies folder live33/store/till, and live3/store/till is wanted"},
		"another target":          {origin.Origin{Path: "live3/store/shop"}, "it applies folder live3/store/shop, and live3/store/till is wanted"},
		"another cluster type":    {origin.Origin{Path: "live3/kiosk/till"}, "it applies folder live3/kiosk/till, and live3/store/till is wanted"},
		"another type's tree":     {origin.Origin{Path: "live3/kiosk/" + origin.Any}, "it applies folder live3/kiosk/*, and live3/store/till is wanted"},
		"all of the tree":         {origin.Origin{Path: "live3"}, "it applies folder live3, and live3/store/till is wanted"},
		"another branch":          {origin.Origin{Branch: "stage"}, "it applies branch stage, and prod is wanted"},
		"a commit":                {origin.Origin{Branch: "4f2a9c1d"}, "it applies branch 4f2a9c1d, and prod is wanted"},
		"a fork": {origin.Origin{Repository: "https://token@git.example.com/someone/gitops.git", Branch: "prod", Path: "live3/store/till"},
			"it applies repository https://git.example.com/someone/gitops.git, and " + repository + " is wanted"},
		"another port": {origin.Origin{Repository: "https://git.example.com:8443/fleet/gitops.git"},
			"it applies repository https://git.example.com:8443/fleet/gitops.git, and " + repository + " is wanted"},
		"an artifact": {origin.Origin{Repository: "oci://git.example.com/fleet/gitops"}, "it applies repository oci://git.example.com/fleet/gitops, and " + repository + " is wanted"},
		"all of it": {origin.Origin{Repository: "/srv/gitops", Branch: "main", Path: "x"},
			"it applies repository /srv/gitops, and " + repository + " is wanted; branch main, and prod is wanted; folder x, and live3/store/till is wanted"},
	} {
		if got := tree.Differs(c.is.Clean(), "store", "till"); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	root := origin.Tree{Repository: repository, Branch: "prod"}
	for path, want := range map[string]string{"store/till": "", "./store/till": "", "live/store/till": "it applies folder live/store/till, and store/till is wanted"} {
		if got := root.Differs(origin.Origin{Path: path}.Clean(), "store", "till"); got != want {
			t.Errorf("%s in the root: got %q, want %q", path, got, want)
		}
	}
}
