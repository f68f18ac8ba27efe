package gitlab_test

import (
	"testing"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/testing/forgetest"
	"github.com/kalypso-io/kalypso/promotion/forge"
)

// One comment stays up to date, whoever else comments.
func TestSaveComment(t *testing.T) {
	server, f, _ := setup(t)
	save(t, f, spec)
	server.Say(1, "ann", "<!-- hub --> mine")
	server.Fail(forgetest.GitlabGiteaFault{Method: "POST", Path: "/notes", Done: true})
	server.Fail(forgetest.GitlabGiteaFault{Method: "PUT", Path: "/notes", Done: true})
	for _, text := range []string{"<!-- hub --> 1/3", "<!-- hub --> 1/3", "<!-- hub --> 2/3"} {
		if err := f.SaveComment(t.Context(), 1, "<!-- hub -->", text); err != nil {
			t.Fatal(err)
		}
		server.Say(1, "bob", "hm")
	}
	expect(t, "comments", server.State(1).Comments, []string{"ann: <!-- hub --> mine", "kalypso: <!-- hub --> 2/3", "bob: hm", "bob: hm", "bob: hm"})
}

func TestChangeOf(t *testing.T) {
	server, f, _ := setup(t)
	ready := spec
	ready.Draft = false
	c := save(t, f, ready)
	if _, err := f.Merge(t.Context(), c.Number, c.Head, forge.MergeOptions{Title: "Promote"}); err != nil {
		t.Fatal(err)
	}
	commit := server.Tip("prod")
	found, err := f.ChangeOf(t.Context(), commit, "prod")
	if err != nil || found == nil || found.Number != c.Number || found.Merged != commit {
		t.Errorf("it is %+v, %v", found, err)
	}
	for _, other := range []struct {
		commit git.Hash
		base   string
	}{{commit, "dev"}, {git.Hash{1}, "prod"}} {
		if found, err := f.ChangeOf(t.Context(), other.commit, other.base); found != nil || err != nil {
			t.Errorf("of %v, it is %+v, %v", other, found, err)
		}
	}
}
