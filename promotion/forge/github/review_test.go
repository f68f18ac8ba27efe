package github_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/kalypso-io/kalypso/internal/testing/forgetest"
	"github.com/kalypso-io/kalypso/promotion/forge"
)

// The newest decision of each reviewer counts. A comment is not a decision, and a dismissal
// revokes one.
func TestReviews(t *testing.T) {
	for _, host := range hosts {
		w := start(t, host)
		w.repo.Change(func(r *forgetest.GitHubRepository) { r.Rules["prod"] = forgetest.GitHubRules{Approvals: 2} })
		number := w.save(t).Number
		for _, r := range [][2]string{
			{"zoe", "CHANGES_REQUESTED"}, {"ann", "CHANGES_REQUESTED"}, {"ann", "APPROVED"}, {"ann", "COMMENTED"},
			{"bob", "APPROVED"}, {"bob", "DISMISSED"}, {"cid", "COMMENTED"}, {"", "APPROVED"}, {"dan", "DISMISSED"}, {"dan", "APPROVED"}, {"eve", "PENDING"},
		} {
			w.repo.Review(number, r[0], r[1])
		}
		newer := w.repo.Commit("promote", "", "tree", "newer")
		w.repo.Pulls() // has the head moved
		w.repo.Review(number, "fay", "APPROVED")
		got, err := w.forge.Reviews(t.Context(), number)
		if err != nil {
			t.Fatal(err)
		}
		var converted []string
		for _, r := range got.Reviews {
			converted = append(converted, fmt.Sprintf("%s %t %t %t %t", r.By, r.Approved, r.Commit == w.head, r.Commit == newer, r.At.Equal(w.Clock.Now())))
		}
		want := []string{"ann true true false true", "dan true true false true", "fay true false true true", "zoe false true false true"}
		if !reflect.DeepEqual(converted, want) || got.Required != forge.Satisfied {
			t.Errorf("%s: %v, %q", host, converted, got.Required)
		}
	}
}

// Without a rule, GitHub has no decision, and the requirement does not count as satisfied.
func TestRequired(t *testing.T) {
	for _, c := range []struct {
		approvals int
		approve   bool
		want      forge.Requirement
	}{{0, true, forge.Unknown}, {1, false, forge.Unsatisfied}, {1, true, forge.Satisfied}} {
		w := start(t, "github.com")
		w.repo.Change(func(r *forgetest.GitHubRepository) { r.Rules["prod"] = forgetest.GitHubRules{Approvals: c.approvals} })
		number := w.save(t).Number
		if c.approve {
			w.repo.Review(number, "ann", "APPROVED")
		}
		if got, err := w.forge.Reviews(t.Context(), number); err != nil || got.Required != c.want {
			t.Errorf("%+v: %+v, %v", c, got, err)
		}
	}
}
