package isolated

import (
	"os"
	"testing"
)

func TestEnvironment(t *testing.T) {
	t.Setenv(done, "")
	gone := []string{"GIT_DIR", "http_proxy", "HTTPS_PROXY", "CUE_REGISTRY", "GOGC", "CI", "CI_JOB_TOKEN", "KALYPSO_CACHE_DIR"}
	stays := []string{"KALYPSO_LONG", "KALYPSO_TEST_CHILD", "CITY", "GITTER"}
	for _, name := range append(gone, stays...) {
		t.Setenv(name, "x")
	}
	t.Setenv("GIT_CONFIG_GLOBAL", "mine")
	t.Setenv("GIT_CONFIG_NOSYSTEM", "")
	t.Setenv("LC_ALL", "tr_TR.UTF-8")
	Environment()
	for _, name := range gone {
		if _, ok := os.LookupEnv(name); ok {
			t.Errorf("%s is there", name)
		}
	}
	for _, name := range stays {
		if os.Getenv(name) != "x" {
			t.Errorf("%s is gone", name)
		}
	}
	if os.Getenv("GIT_CONFIG_GLOBAL") != os.DevNull {
		t.Error("git reads the settings of the user")
	}
	t.Setenv("GIT_DIR", "a test's")
	Environment()
	if os.Getenv("GIT_DIR") == "" {
		t.Error("a process of a test is isolated from the test")
	}
}
