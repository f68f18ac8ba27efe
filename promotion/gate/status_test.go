package gate

import (
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/promotion/forge"
)

func TestStatus(t *testing.T) {
	st := func(name string, state forge.State, by string, before time.Duration) forge.Status {
		return forge.Status{Name: name, State: state, By: by, At: ago(before)}
	}
	load := model.StatusGate{Name: "load-test"}
	bot := model.StatusGate{Name: "load-test", By: []string{"ci-bot"}}
	tests := model.StatusGate{Name: "test-*"}
	bots := model.StatusGate{Name: "test-*", By: []string{"ci-bot", "ci-app[bot]"}}
	for name, c := range map[string]struct {
		gate     model.StatusGate
		statuses []forge.Status
		want     want
	}{
		"missing":            {load, []forge.Status{st("load-tests", forge.Success, "a", 0)}, want{Pending, "no status load-test on 4f2a9c1d0000", ""}},
		"missing of someone": {bots, nil, want{Pending, "no status test-* on 4f2a9c1d0000 by ci-bot or ci-app[bot]", ""}},
		"success":            {load, []forge.Status{st("load-test", forge.Success, "a", 0)}, want{Passed, "load-test is success, by a", ""}},
		"pending":            {load, []forge.Status{st("load-test", forge.Pending, "a", 0)}, want{Pending, "load-test is pending, by a", ""}},
		"no such state":      {load, []forge.Status{st("load-test", "neutral", "a", 0)}, want{Pending, "load-test is pending, by a", ""}},
		"failure":            {load, []forge.Status{st("load-test", forge.Failure, "a", 0)}, want{Blocked, "load-test is failure, and has to be success, by a", ""}},
		"the newest counts":  {load, []forge.Status{st("load-test", forge.Failure, "a", 2), st("load-test", forge.Success, "a", 1)}, want{Passed, "load-test is success, by a", ""}},
		"in whatever order":  {load, []forge.Status{st("load-test", forge.Success, "a", 1), st("load-test", forge.Pending, "a", 2)}, want{Passed, "load-test is success, by a", ""}},
		"again pending":      {load, []forge.Status{st("load-test", forge.Success, "a", 2), st("load-test", forge.Pending, "a", 1)}, want{Pending, "load-test is pending, by a", ""}},
		"in the same second": {load, []forge.Status{st("load-test", forge.Success, "a", 0), st("load-test", forge.Pending, "a", 0)}, want{Passed, "load-test is success, by a", ""}},
		"failure in the same second": {
			load, []forge.Status{st("load-test", forge.Failure, "a", 0), st("load-test", forge.Success, "a", 0)},
			want{Blocked, "load-test is failure, and has to be success, by a", ""},
		},
		"everybody's counts": {
			load, []forge.Status{st("load-test", forge.Failure, "a", 2), st("load-test", forge.Success, "b", 1)},
			want{Blocked, "load-test is failure, and has to be success, by a", ""},
		},
		"by somebody else": {
			bot, []forge.Status{st("load-test", forge.Success, "mallory", 0)},
			want{Pending, "load-test is success, but was set by mallory, not by ci-bot", ""},
		},
		"by nobody": {
			bot, []forge.Status{st("load-test", forge.Success, "", 0)},
			want{Pending, "load-test is success, but was set by somebody unknown, not by ci-bot", ""},
		},
		"in another spelling": {
			bot, []forge.Status{st("load-test", forge.Success, "CI-bot", 0)},
			want{Pending, "load-test is success, but was set by CI-bot, not by ci-bot", ""},
		},
		"failure of somebody else": {
			bot, []forge.Status{st("load-test", forge.Success, "ci-bot", 2), st("load-test", forge.Failure, "mallory", 1)},
			want{Passed, "load-test is success, by ci-bot", ""},
		},
		"success of somebody else after a failure": {
			bot, []forge.Status{st("load-test", forge.Failure, "ci-bot", 2), st("load-test", forge.Success, "mallory", 1)},
			want{Blocked, "load-test is failure, and has to be success, by ci-bot", ""},
		},
		"all that match": {
			tests, []forge.Status{st("test-b", forge.Success, "a", 0), st("test-a", forge.Success, "a", 0), st("lint", forge.Failure, "a", 0)},
			want{Passed, "test-a is success, by a; test-b is success, by a", ""},
		},
		"one of all": {
			tests, []forge.Status{st("test-b", forge.Pending, "a", 0), st("test-a", forge.Success, "a", 0)},
			want{Pending, "test-b is pending, by a", ""},
		},
		"one of all is of somebody else": {
			bots, []forge.Status{st("test-b", forge.Success, "mallory", 0), st("test-a", forge.Success, "ci-app[bot]", 0)},
			want{Passed, "test-a is success, by ci-app[bot]; test-b is success, but was set by mallory, not by ci-bot or ci-app[bot]", ""},
		},
		"what a forge writes": {
			tests, []forge.Status{st("test-\x1b[2J", forge.Pending, "a\nb", 0)},
			want{Pending, "test- [2J is pending, by a b", ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts()
			f.Statuses = c.statuses
			c.want.check(t, Commit(gates(model.Gates{Status: []model.StatusGate{c.gate}}), f, Skip{}))
		})
	}
	t.Run("not known", func(t *testing.T) {
		f := facts()
		f.StatusesKnown, f.Statuses = false, []forge.Status{st("load-test", forge.Success, "a", 0)}
		want{Pending, "the statuses of 4f2a9c1d0000 are not known; wanted is load-test", ""}.check(t, Commit(gates(model.Gates{Status: []model.StatusGate{load}}), f, Skip{}))
	})
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"a", "a", true}, {"a", "A", false}, {"a", "ab", false}, {"*", "", true}, {"*", "a/b", true},
		{"a*", "a", true}, {"a*", "ba", false}, {"*a", "ba", true}, {"*a", "ab", false}, {"a*a", "a", false}, {"a*a", "aa", true},
		{"a*b*c", "abc", true}, {"a*b*c", "a-b-b-c", true}, {"a*b*c", "acb", false}, {"*b*b", "ab", false}, {"a**c", "ac", true},
		{"*ab*ab", "abab", true}, {"[a]", "a", false}, {"a?", "ab", false}, {"a.b", "axb", false},
	} {
		if got := matches(c.pattern, c.name); got != c.want {
			t.Errorf("%s matches %q: %v", c.pattern, c.name, got)
		}
	}
}
