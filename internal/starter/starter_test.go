package starter_test

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"path"
	"sync"
	"testing"

	"github.com/rhysd/actionlint"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"

	root "github.com/kalypso-io/kalypso"
	"github.com/kalypso-io/kalypso/internal/starter"
)

// reconcilers are all cases that the templates distinguish. The scripts of init, in cmd/kalypso,
// build a platform with each backend.
var reconcilers = []starter.Reconciler{{Name: "flux", Pulls: true}, {Name: "argocd", Pulls: true}, {Name: "zarf"},
	{Name: "ansible", Machines: true, Pulls: true}, {Name: "gotemplate"}, {Name: "cue"}}

func TestFiles(t *testing.T) {
	for _, reconciler := range reconcilers {
		for _, ci := range starter.CIs {
			for _, rollout := range starter.Rollouts {
				p := starter.Platform{Repository: starter.Repository{Name: "shop", Environments: []string{"dev", "1st"}, CI: ci, Rollout: rollout}, Reconciler: reconciler}
				files, err := p.Files()
				if err != nil {
					t.Fatal(err)
				}
				check(t, reconciler.Name, files)
			}
		}
	}
	if _, err := (starter.Platform{Repository: starter.Repository{Name: "shop", Environments: []string{"dev"}, CI: "none"}, Reconciler: starter.Reconciler{}}).Files(); err == nil {
		t.Error("a platform has no reconciler")
	}
}

// Workflows use a release of kalypso, and the module the schema's version.
func TestRelease(t *testing.T) {
	for _, ci := range []string{"github", "gitlab"} {
		p := starter.Platform{Repository: starter.Repository{Name: "shop", Environments: []string{"dev"}, CI: ci, Release: "v7.8.9"}, Reconciler: starter.Reconciler{Name: "flux", Pulls: true}}
		files, err := p.Files()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			switch schema, release := bytes.Contains(f.Data, []byte(root.ModuleVersion)), bytes.Contains(f.Data, []byte("v7.8.9")); {
			case f.Path == "cue.mod/module.cue":
				if !schema || release {
					t.Errorf("%s: %s", f.Path, f.Data)
				}
			case schema, bytes.Contains(f.Data, []byte("kalypso-io/kalypso@")) && !release:
				t.Errorf("%s: %s", f.Path, f.Data)
			}
		}
	}
}

func TestAppFiles(t *testing.T) {
	for _, ci := range starter.CIs {
		for _, environments := range [][]string{{"dev", "1st", "no"}, {"only"}} {
			for _, rollout := range starter.Rollouts {
				files, err := starter.App{Repository: starter.Repository{Name: "shop", Environments: environments, CI: ci, Rollout: rollout}}.Files()
				if err != nil {
					t.Fatal(err)
				}
				check(t, "an application", files)
			}
		}
	}
	if _, err := (starter.App{Repository: starter.Repository{Name: "shop", CI: "none"}}).Files(); err == nil {
		t.Error("an application has no environments")
	}
}

// check fails if a file has leftovers of templates, and checks the workflows.
func check(t *testing.T, of string, files []starter.File) {
	t.Helper()
	for _, f := range files {
		if bytes.Contains(f.Data, []byte("[[")) || !bytes.HasSuffix(f.Data, []byte("\n")) {
			t.Errorf("%s of %s: %s", f.Path, of, f.Data)
		}
		switch {
		case path.Dir(f.Path) == ".github/workflows":
			lint(t, f)
		case f.Path == ".gitlab-ci.yml":
			if err := pipeline(f.Data); err != nil {
				t.Errorf("%s of %s: %v", f.Path, of, err)
			}
		}
	}
}

//go:embed testdata/gitlab-ci.schema.json.gz
var published []byte

// gitlab is GitLab's own schema, compiled once.
var gitlab = sync.OnceValues(func() (*jsonschema.Schema, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(published))
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(unzipped)
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("gitlab-ci.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("gitlab-ci.json")
})

// pipeline returns an error if GitLab's schema rejects a pipeline.
func pipeline(text []byte) error {
	schema, err := gitlab()
	if err != nil {
		return err
	}
	data, err := yaml.YAMLToJSON(text)
	if err != nil {
		return err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return err
	}
	return schema.Validate(doc)
}

// The schema refuses pipelines that GitLab would refuse.
func TestPipeline(t *testing.T) {
	for _, wrong := range []string{"vet: {script: [x], when: sometimes}", "vet: {stagee: test, script: [x]}", "include: [{inputs: {a: b}}]"} {
		if err := pipeline([]byte(wrong)); err == nil {
			t.Errorf("%s is right", wrong)
		}
	}
}

func lint(t *testing.T, f starter.File) {
	t.Helper()
	linter, err := actionlint.NewLinter(bytes.NewBuffer(nil), &actionlint.LinterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found, err := linter.Lint(f.Path, f.Data, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range found {
		t.Errorf("%s:%d:%d: %s", f.Path, e.Line, e.Column, e.Message)
	}
}
