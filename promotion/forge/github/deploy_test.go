package github_test

import (
	"reflect"
	"testing"

	"github.com/kalypso-io/kalypso/internal/testing/forgetest"
	"github.com/kalypso-io/kalypso/promotion/forge"
)

// A deployment is recorded once for a commit, and each of its states once, whatever
// happens on the way.
func TestDeploy(t *testing.T) {
	const path = "/repos/acme/fleet/deployments*"
	for _, c := range []struct {
		name   string
		faults []forgetest.Fault
	}{
		{name: "at once"},
		{name: "answer lost", faults: []forgetest.Fault{lost("POST", path), lost("POST", path), lost("POST", path)}},
		{name: "request lost", faults: []forgetest.Fault{{Method: "POST", Path: path, Times: 2}}},
		{name: "too many", faults: []forgetest.Fault{{Method: "POST", Path: path, Status: 429, Header: map[string]string{"Retry-After": "1"}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := start(t, "github.com")
			w.Inject(c.faults...)
			d := forge.Deployment{
				Environment: "prod/eu", Commit: w.head, State: forge.Pending, Description: "0/100", URL: "https://hub.example/1",
				Production: true, Payload: map[string]string{"ring": "eu"},
			}
			record := func() {
				t.Helper()
				for range 2 {
					if err := w.forge.Deploy(t.Context(), d); err != nil {
						t.Fatal(err)
					}
				}
			}
			record()
			d.State, d.Description = forge.Success, "100/100"
			record()
			d.URL = "https://hub.example/2"
			record()
			all := w.repo.Deployments()
			if len(all) != 1 || all[0].Environment != "prod/eu" || !all[0].Production || all[0].Commit != w.head ||
				!reflect.DeepEqual(all[0].Payload, map[string]any{"ring": "eu"}) {
				t.Fatalf("%+v", all)
			}
			want := []forgetest.GitHubDeploymentStatus{{State: "in_progress", Description: "0/100", LogURL: "https://hub.example/1"}, {State: "success", Description: "100/100", LogURL: "https://hub.example/1"}, {State: "success", Description: "100/100", LogURL: d.URL}}
			if !reflect.DeepEqual(all[0].Statuses, want) {
				t.Errorf("%+v", all[0].Statuses)
			}
		})
	}
}

// Another commit, payload or kind of environment is another deployment, and makes
// the one before inactive.
func TestDeployAgain(t *testing.T) {
	w := start(t, "github.corp.example")
	d := forge.Deployment{Environment: "qa", Commit: w.head, State: forge.Success}
	next := w.repo.Commit("promote", "", "tree", "newer")
	for _, change := range []func(){func() {}, func() { d.Commit = next }, func() { d.Payload = map[string]string{"digest": "x"} }, func() { d.Production = true }, func() { d.Environment = "qa/eu" }} {
		change()
		if err := w.forge.Deploy(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	all := w.repo.Deployments()
	if len(all) != 5 {
		t.Fatalf("%+v", all)
	}
	for i, d := range all[:3] {
		if d.Statuses[len(d.Statuses)-1].State != "inactive" {
			t.Errorf("%d: %+v", i, d.Statuses)
		}
	}
}

// Some servers give payloads back as text.
func TestDeployPayloadAsText(t *testing.T) {
	w := start(t, "github.com")
	d := forge.Deployment{Environment: "qa", Commit: w.head, State: forge.Success, Payload: map[string]string{"a": "b"}}
	w.Inject(forgetest.Fault{Method: "GET", Path: "/repos/acme/fleet/deployments", Status: 200, Body: `[{"id":7,"sha":"` + w.head.String() + `","payload":"{\"a\":\"b\"}"}]`})
	w.Inject(forgetest.Fault{Method: "GET", Path: "/repos/acme/fleet/deployments/7/statuses", Status: 200, Body: `[{"state":"success","description":null,"log_url":""}]`})
	if err := w.forge.Deploy(t.Context(), d); err != nil || w.Count("POST", "") > 0 {
		t.Errorf("%v, %v", err, w.Log())
	}
}
