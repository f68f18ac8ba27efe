// Package isolated protects tests from the settings of the people who run them. These are
// settings of git, credentials, proxies, and variables of CI systems and git's hooks about
// another repository. Tests of a setting set it themselves.
package isolated

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// Main is a TestMain.
func Main(m *testing.M) {
	Environment()
	os.Exit(m.Run())
}

// done is set for the processes that tests start, whose environment is the tests'.
const done = "KALYPSO_TEST_ISOLATED"

// Environment takes the variables that kalypso and its tools read away from this
// process, unless a test that has done so started it. git reads no settings of the user
// or the system, and programs speak English.
func Environment() {
	if os.Getenv(done) != "" {
		return
	}
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); isSetting(name) {
			os.Unsetenv(name)
		}
	}
	for name, value := range map[string]string{done: "1", "LC_ALL": "C",
		"GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_NOSYSTEM": "1"} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
}

// slow begins the names of tests that take long, or need more than others. make test-all
// runs them by that name, so that go takes all others from its cache.
const slow = "TestSlow"

// Slow skips a test unless make test-all runs it; make test lists it with the reason.
func Slow(t testing.TB, reason string) {
	t.Helper()
	if !IsSlow(t) {
		t.Fatalf("make test-all does not run %s: its name has to begin with %s", t.Name(), slow)
	}
	if os.Getenv("KALYPSO_ALL") == "" {
		t.Skip(reason + "; make test-all runs it")
	}
}

// Long skips a slow test unless make test-long runs it; the others list it with the reason.
func Long(t testing.TB, reason string) {
	t.Helper()
	if os.Getenv("KALYPSO_LONG") == "" {
		t.Skip(reason + "; make test-long runs it")
	}
	Slow(t, reason)
}

// IsSlow reports whether a test, or its parent, runs only in make test-all.
func IsSlow(t testing.TB) bool { return strings.HasPrefix(t.Name(), slow) }

var (
	// settings are variables, and prefixes of variables that end with _.
	settings = []string{
		"GIT_", "SSH_", "GPG_", "GNUPGHOME", "NETRC",
		"KALYPSO_", "CUE_", "DOCKER_", "HELM_", "KUBECONFIG", "KUSTOMIZE_", "ANSIBLE_", "XDG_CONFIG_HOME",
		"CI", "CI_", "GITHUB_", "GH_", "GITLAB_", "GITEA_", "FORGEJO_", "RUNNER_",
		"GOGC", "GOMEMLIMIT", "SOURCE_DATE_EPOCH", "LANGUAGE", "EDITOR", "VISUAL", "PAGER", "COLUMNS",
		"NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE",
	}
	// wanted are the variables that control the tests.
	wanted = []string{"KALYPSO_ALL", "KALYPSO_LONG", "KALYPSO_UPDATE", "KALYPSO_FLOWS", "KALYPSO_FLOWS_", "KALYPSO_TEST_"}
)

func isSetting(name string) bool {
	return strings.HasSuffix(strings.ToLower(name), "_proxy") || isOneOf(name, settings) && !isOneOf(name, wanted)
}

func isOneOf(name string, names []string) bool {
	return slices.ContainsFunc(names, func(n string) bool {
		return name == n || strings.HasSuffix(n, "_") && strings.HasPrefix(name, n)
	})
}
