package application_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/application"
)

// Only the requested environments are written. If one does not exist, the error names the
// existing ones.
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

// Errors that concern only other environments are not reported. They do not keep the
// requested environments from being written, not even with --strict.
func TestErrorsOfOtherEnvironments(t *testing.T) {
	for name, c := range map[string]struct {
		edit folder // of shop
		want []string
	}{
		"values":     {folder{"environments/prod/main/values.yaml": "a: ["}, nil},
		"a contract": {folder{"environments/prod/values.cue": "tier!: int"}, nil},
		"rendering":  {folder{"environments/prod/values.yaml": "broken: true"}, nil},
		"of all": {
			folder{"values.yaml": "a: ["},
			[]string{"K1001 the file is not valid YAML: did not find expected node content @values.yaml:1:1 on dev/east, dev/west"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, out := shop.with(c.edit).in(t), t.TempDir()
			a, changes, err := application.Write(t.Context(), request(dir, "dev"), application.Output{Dir: out, Strict: true})
			must(t, err)
			if got := lines(a.Diagnostics); !slices.Equal(got, c.want) {
				t.Errorf("said %q, want %q", got, c.want)
			}
			if (changes["dev"] != nil) != (c.want == nil) {
				t.Errorf("changed %v", changes)
			}
			if _, said := write(t, dir, t.TempDir()); len(said) == 0 {
				t.Error("there is no error in any environment")
			}
		})
	}
}
