package github_test

import (
	"testing"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/testing/forgetest"
	"github.com/kalypso-io/kalypso/promotion/forge"
)

// One comment stays up to date, whoever else comments.
func TestSaveComment(t *testing.T) {
	w := start(t, "github.com")
	number := w.save(t).Number
	c := w.forge.(forge.Commenter)
	say := func(by, text string) {
		w.repo.ChangePull(number, func(p *forgetest.GitHubPull) {
			p.Comments = append(p.Comments, forgetest.GitHubComment{By: by, Body: text})
		})
	}
	say("ann", "<!-- hub --> mine")
	w.Inject(lost("POST", "/repos/acme/fleet/issues/*"), lost("PATCH", "/repos/acme/fleet/issues/*"))
	for _, text := range []string{"<!-- hub --> 1/3", "<!-- hub --> 1/3", "<!-- hub --> 2/3"} {
		if err := c.SaveComment(t.Context(), number, "<!-- hub -->", text); err != nil {
			t.Fatal(err)
		}
		say("bob", "hm")
	}
	got := w.repo.Pulls()[0].Comments
	if len(got) != 5 || got[0].Body != "<!-- hub --> mine" || got[1].Body != "<!-- hub --> 2/3" {
		t.Errorf("the comments are %+v", got)
	}
}

func TestChangeOf(t *testing.T) {
	w := start(t, "github.com")
	number := w.save(t).Number
	c := w.forge.(forge.Commenter)
	head := w.repo.Pulls()[0].HeadID
	if found, err := c.ChangeOf(t.Context(), head, "prod"); found != nil || err != nil {
		t.Errorf("of an open one, it is %+v, %v", found, err)
	}
	w.repo.ChangePull(number, func(p *forgetest.GitHubPull) { p.Draft = false })
	if _, err := w.forge.Merge(t.Context(), number, head, forge.MergeOptions{Title: "Promote"}); err != nil {
		t.Fatal(err)
	}
	commit := w.repo.Pulls()[0].MergeCommit
	if found, err := c.ChangeOf(t.Context(), commit, "prod"); err != nil || found == nil || found.Number != number || found.Merged != commit {
		t.Errorf("it is %+v, %v", found, err)
	}
	for _, other := range []struct {
		commit git.Hash
		base   string
	}{{commit, "dev"}, {git.Hash{1}, "prod"}} {
		if found, err := c.ChangeOf(t.Context(), other.commit, other.base); found != nil || err != nil {
			t.Errorf("of %v, it is %+v, %v", other, found, err)
		}
	}
}
