package application_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/application"
)

// Only the environments that are asked for are written; one that is not there is an
// error that names those that are.
func TestEnvironments(t *testing.T) {
	t.Parallel()
	dir, out := shop.in(t), t.TempDir()
	changes := written(t, dir, out, "prod")
	if len(changes) != 1 || changes["prod"] == nil {
		t.Errorf("changed %v", changes)
	}
	equal(t, "prod", read(t, out), below(afresh(t, dir), "prod"))
	_, err := application.Project(t.Context(), request(dir, "prod", "prd"))
	var unknown *application.UnknownEnvironmentError
	if !errors.As(err, &unknown) || unknown.Name != "prd" || !slices.Equal(unknown.Known, []string{"dev", "prod"}) || !strings.Contains(err.Error(), "prod") {
		t.Errorf("got %v", err)
	}
}

// Targets are in the order of their environments' names, then their own.
func TestTargetsAreSorted(t *testing.T) {
	t.Parallel()
	dir := parse(chart).with(folder{
		"environments/dev/b/values.yaml": "", "environments/dev/a/values.yaml": "", "environments/dev/a-1/values.yaml": "",
		"environments/dev-2/x/values.yaml": "", "environments/prod/values.yaml": "",
	}).in(t)
	a, err := application.Project(t.Context(), request(dir))
	must(t, err)
	var got []string
	for _, target := range a.Targets {
		got = append(got, fmt.Sprintf("%s/%s", target.Environment, target.Name))
	}
	if want := []string{"dev/a", "dev/a-1", "dev/b", "dev-2/x", "prod/default"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
