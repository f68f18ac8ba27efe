package evaluate

import (
	"reflect"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// TestProfiles checks that an undeclared workspace is the profile of the standard library, and
// that a declared workspace without fields is a team's.
func TestProfiles(t *testing.T) {
	p := open(t, map[string]string{"environments/dev/a.cue": `package platform

import (
	"kalypso.io/schema"
	"kalypso.io/stdlib/workspace"
)

workspaces: schema.#Workspaces
registrations: free: git: {repo: "https://git.example/free", branch: "main"}
workspaces: {
	team:   workspace.#Team
	tenant: workspace.#Tenant
	empty: {}
}
`})
	pkg, ds := environment(t, p)
	if len(ds) > 0 {
		t.Fatal(ds)
	}
	m := pkg.Model
	bounds := func(w *model.Workload, declared bool) model.Workspace {
		t.Helper()
		of, is := m.WorkspaceOf(w)
		if of == nil || is != declared {
			t.Fatalf("workspace %s is %v, declared %t", w.Workspace, of, is)
		}
		out := *of
		out.Name, out.Digest = "", ""
		return out
	}
	for _, c := range []struct {
		profile    string
		undeclared model.Workload
	}{
		{"team", model.Workload{Workspace: "other"}},
		{"empty", model.Workload{Workspace: "other"}},
		{"tenant", model.Workload{Workspace: "other", Registration: "r"}},
		{"tenant", model.Workload{Workspace: "team", Registration: "free"}}, // it chose the workspace itself
	} {
		got, want := bounds(&c.undeclared, false), bounds(&model.Workload{Workspace: c.profile}, true)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s is\n%+v in the standard library, and\n%+v where it is not declared", c.profile, want, got)
		}
	}
}
