package status_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/rollout"
	"github.com/kalypso-io/kalypso/promotion/rollout/status"
)

var (
	young = plumbing.NewHash(strings.Repeat("2", 40))
	old   = plumbing.NewHash(strings.Repeat("1", 40))
	other = plumbing.NewHash(strings.Repeat("9", 40))
	now   = time.Date(2026, 1, 2, 15, 0, 0, 0, time.UTC)
)

const object = "prod-eu-hello-main-assignment"

func wanted() *rollout.DesiredState {
	return &rollout.DesiredState{Environment: "prod", Commits: []git.Hash{young, old}, Assignments: []rollout.Assignment{
		{ID: "prod/eu/hello-main", Object: object},
		{ID: "prod/us/hello-main", Object: "prod-us-hello-main-assignment", Objects: map[string]string{"prod-us-hello-main-assignment-us-1": "us-1"}},
		{ID: "prod/edge/hello-main"},
	}}
}

// at is a status some minutes ago.
func at(minutes int, name string, s forge.State) forge.Status {
	return forge.Status{Name: name, State: s, By: "flux[bot]", At: now.Add(-time.Duration(minutes) * time.Minute)}
}

// texts are reports as ASSIGNMENT CLUSTER STATE AGE SINCE, the times in minutes.
func texts(reports []rollout.Report) string {
	var out []string
	for _, r := range reports {
		out = append(out, fmt.Sprintf("%s %q %s %.0f %.0f", r.Assignment, r.Cluster, r.State, now.Sub(r.At).Minutes(), now.Sub(r.Since).Minutes()))
	}
	return strings.Join(out, "\n")
}

func TestNames(t *testing.T) {
	const eu = "prod/eu/hello-main"
	for name, want := range map[string]string{
		"kustomization/" + object + "/0c9c2e41":                        eu + ` "0c9c2e41"`,
		"Kustomization/" + object + "/prod-eu-1":                       eu + ` "prod-eu-1"`,
		"prod-eu-1/kustomization/" + object:                            eu + ` "prod-eu-1"`,
		"kustomization/" + object + "/abcdef01":                        eu + ` "eu-7"`, // Options.Clusters
		"continuous-delivery/" + object:                                eu + ` ""`,
		"argocd/" + object:                                             eu + ` ""`,
		object:                                                         eu + ` ""`,
		"argocd/prod-us-hello-main-assignment-us-1":                    `prod/us/hello-main "us-1"`,
		"argocd/prod-us-hello-main-assignment-us-1/prod-us-hello-main": `prod/us/hello-main "us-1"`,
		"kustomization/x-" + object + "/0c9c2e41":                      "",
		"kustomization/" + object + "-x/0c9c2e41":                      "",
		"kustomization-" + object:                                      "",
		"kustomization/prod/eu/hello-main":                             "",
		object + "/" + object:                                          "",
		object + "/prod-us-hello-main-assignment":                      "",
		"":                                 "",
		"///":                              "",
		strings.Repeat("/", 2000) + object: "",
		"kustomization/" + strings.ToUpper(object) + "/0c9c2e41": "",
		"kustomization/" + object + "/a/b\x1b[2J":                eu + ` "a/b [2J"`,
		"kustomization/" + object + "/" + "\u202ex":              eu + ` " x"`,
	} {
		got := texts(status.Read(wanted(), map[git.Hash][]forge.Status{young: {at(0, name, forge.Success)}}, status.Options{Clusters: map[string]string{"abcdef01": "eu-7"}}).Reports)
		if want != "" {
			want += " healthy 0 0"
		}
		if got != want {
			t.Errorf("%.100q: got %s, want %s", name, got, want)
		}
	}
}

func TestRead(t *testing.T) {
	const flux = "kustomization/" + object + "/0c9c2e41"
	const id = `prod/eu/hello-main "0c9c2e41" `
	type statuses map[git.Hash][]forge.Status
	for name, c := range map[string]struct {
		statuses statuses
		want     string
	}{
		"the newest of a name": {statuses{young: {at(9, flux, forge.Failure), at(5, flux, forge.Success)}}, id + "healthy 5 5"},
		"in another order":     {statuses{young: {at(5, flux, forge.Success), at(9, flux, forge.Failure)}}, id + "healthy 5 5"},
		"equally old":          {statuses{young: {at(5, flux, forge.Success), at(5, flux, forge.Failure)}}, id + "failed 5 5"},
		"pending":              {statuses{young: {at(5, flux, forge.Success), at(1, flux, forge.Pending)}}, id + "progressing 1 1"},
		"a state that is none": {statuses{young: {at(1, flux, "great")}}, id + "progressing 1 1"},
		"an older commit":      {statuses{old: {at(5, flux, forge.Success)}}, id + "healthy 5 5"},
		"a newer one wins":     {statuses{old: {at(1, flux, forge.Success)}, young: {at(5, flux, forge.Failure)}}, id + "failed 5 5"},
		"since the older one":  {statuses{old: {at(9, flux, forge.Success)}, young: {at(5, flux, forge.Success)}}, id + "healthy 5 9"},
		"not across a failure": {statuses{old: {at(9, flux, forge.Success), at(7, flux, forge.Failure)}, young: {at(5, flux, forge.Success)}}, id + "healthy 5 5"},
		"not a wanted commit":  {statuses{other: {at(5, flux, forge.Success)}}, ""},
		"two clusters": {statuses{young: {at(5, flux, forge.Success), at(5, "kustomization/"+object+"/ffffffff", forge.Failure)}},
			id + "healthy 5 5\n" + `prod/eu/hello-main "ffffffff" failed 5 5`},
		"two names that nothing tells apart": {statuses{young: {at(5, "argocd/"+object, forge.Failure), at(1, object, forge.Success)}},
			`prod/eu/hello-main "" failed 5 5`},
		"of which one is old": {statuses{old: {at(5, "argocd/"+object, forge.Failure)}, young: {at(1, object, forge.Success)}},
			`prod/eu/hello-main "" healthy 1 1`},
	} {
		if got := texts(status.Read(wanted(), c.statuses, status.Options{}).Reports); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

func TestBy(t *testing.T) {
	flux := at(5, "kustomization/"+object+"/0c9c2e41", forge.Failure)
	forged := at(1, "kustomization/"+object+"/0c9c2e41", forge.Success)
	forged.By, forged.Description = "mallory", "all is well\x1b[2J\nreally"
	all := map[git.Hash][]forge.Status{young: {flux, forged, {Name: "ci/build", By: "ci"}}}
	for by, want := range map[string]string{"": "healthy by mallory, 0 ignored", "flux[bot]": "failed by flux[bot], 1 ignored"} {
		o := status.Options{}
		if by != "" {
			o.By = []string{by}
		}
		r := status.Read(wanted(), all, o)
		if got := fmt.Sprintf("%s by %s, %d ignored", r.Reports[0].State, r.Reports[0].By, r.Ignored); got != want {
			t.Errorf("%q: got %s, want %s", by, got, want)
		}
		if by == "" && r.Reports[0].Message != "all is well [2J really" {
			t.Errorf("got %q", r.Reports[0].Message)
		}
	}
}

// An object name that two assignments have is about neither.
func TestAmbiguous(t *testing.T) {
	w := wanted()
	w.Assignments[1].Object = object
	if r := status.Read(w, map[git.Hash][]forge.Status{young: {at(0, object, forge.Success)}}, status.Options{}); len(r.Reports) > 0 {
		t.Errorf("got %v", r.Reports)
	}
}

func TestSource(t *testing.T) {
	failure := errors.New("no")
	var asked []git.Hash
	s := status.New(func(_ context.Context, commits []git.Hash) (map[git.Hash][]forge.Status, error) {
		asked = commits
		return map[git.Hash][]forge.Status{young: {at(0, object, forge.Success)}}, failure
	}, status.Options{})
	if _, err := s.Reports(t.Context(), wanted()); !errors.Is(err, failure) || len(asked) != 2 {
		t.Errorf("got %v about %v", err, asked)
	}
	failure = nil
	if got, err := s.Reports(t.Context(), wanted()); err != nil || len(got) != 1 {
		t.Errorf("got %v, %v", got, err)
	}
}
