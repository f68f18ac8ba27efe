// Package zarftest checks whether Zarf would make a package of a folder. It compares the
// definition with Zarf's own JSON schema; testdata/README.md names its source. It also makes the
// other checks of Zarf when it makes a package or lints a definition. The input is a folder.
// Several goroutines may use the package at once.
package zarftest

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"

	"github.com/distribution/reference"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

//go:embed testdata/zarf.schema.json.gz
var published []byte

// schema is Zarf's, compiled once.
var schema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(published))
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(unzipped)
	if err != nil {
		return nil, err
	}
	const name = "zarf.schema.json"
	c := jsonschema.NewCompiler()
	if err := c.AddResource(name, doc); err != nil {
		return nil, err
	}
	return c.Compile(name)
})

// definition are the fields that Check checks in addition to the schema.
type definition struct {
	APIVersion string
	Components []component
}

type component struct {
	Name              string
	Required, Default bool
	Charts            []struct {
		Name, URL, LocalPath, Version, Namespace, ReleaseName string
		ValuesFiles                                           []string
	}
	Manifests []struct {
		Name                  string
		Files, Kustomizations []string
	}
	Files         []struct{ Source, Shasum string }
	Images, Repos []string
}

// Check returns an error if zarf.yaml of a folder is not valid. files are the files of the
// folder, by path.
func Check(files map[string][]byte) error {
	text, ok := files["zarf.yaml"]
	if !ok {
		return errors.New("there is no zarf.yaml")
	}
	asJSON, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return err
	}
	s, err := schema()
	if err != nil {
		return err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	if err != nil {
		return err
	}
	var d definition
	if err := errors.Join(s.Validate(doc), yaml.Unmarshal(text, &d)); err != nil {
		return err
	}
	c := &checker{files: files}
	if d.APIVersion != "zarf.dev/v1alpha1" {
		c.report("apiVersion is %q", d.APIVersion)
	}
	names := map[string]bool{}
	for _, component := range d.Components {
		c.unique(names, "component", component.Name)
		c.at = "component " + component.Name
		c.component(component)
	}
	return errors.Join(c.errs...)
}

type checker struct {
	files map[string][]byte
	at    string
	errs  []error
}

func (c *checker) report(format string, args ...any) {
	c.errs = append(c.errs, errors.New(strings.TrimPrefix(c.at+": ", ": ")+fmt.Sprintf(format, args...)))
}

func (c *checker) unique(seen map[string]bool, what, name string) {
	if seen[name] {
		c.report("%s %q is there twice", what, name)
	}
	seen[name] = true
}

// maxName is the longest name of a chart or a manifest.
const maxName = 40

func (c *checker) component(component component) {
	if component.Required && component.Default {
		c.report("it is required and default")
	}
	c.charts(component)
	names := map[string]bool{}
	for _, m := range component.Manifests {
		c.unique(names, "manifest", m.Name)
		if len(m.Name) > maxName || len(m.Files)+len(m.Kustomizations) == 0 {
			c.report("manifest %q has too long a name, or nothing in it", m.Name)
		}
		for _, file := range m.Files {
			c.there(file)
		}
		for _, url := range m.Kustomizations {
			if !strings.Contains(url, "://") || !strings.Contains(url, "?ref=") {
				c.report("kustomization %q is no repository at a commit", url)
			}
		}
	}
	for _, file := range component.Files {
		if !strings.Contains(file.Source, "://") {
			c.there(file.Source)
		} else if file.Shasum == "" {
			c.report("file %q has no shasum", file.Source)
		}
	}
	for _, image := range component.Images {
		c.image(image)
	}
	for _, repo := range component.Repos {
		if !strings.Contains(repo, "://") {
			c.report("repository %q is no URL", repo)
		}
	}
}

func (c *checker) charts(component component) {
	names := map[string]bool{}
	for _, chart := range component.Charts {
		c.unique(names, "chart", chart.Name)
		switch {
		case len(chart.Name) > maxName:
			c.report("chart %q has too long a name", chart.Name)
		case chart.Namespace == "":
			c.report("chart %q has no namespace", chart.Name)
		case (chart.URL == "") == (chart.LocalPath == ""):
			c.report("chart %q needs one of url and localPath", chart.Name)
		case chart.URL != "" && chart.Version == "":
			c.report("chart %q has no version", chart.Name)
		case len(validation.IsDNS1035Label(chart.ReleaseName)) > 0 || len(chart.ReleaseName) > 53:
			c.report("chart %q has a bad release name %q", chart.Name, chart.ReleaseName)
		}
		if chart.LocalPath != "" {
			c.there(path.Join(chart.LocalPath, "Chart.yaml"))
		}
		for _, file := range chart.ValuesFiles {
			c.there(file)
		}
	}
}

// there reports a file that the folder does not have.
func (c *checker) there(file string) {
	if _, ok := c.files[file]; !ok {
		c.report("there is no file %q", file)
	}
}

// image reports a reference that Zarf's lint would complete itself.
func (c *checker) image(name string) {
	named, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		c.report("image %q: %v", name, err)
		return
	}
	if full := reference.TagNameOnly(named).String(); full != name {
		c.report("image %q is %s in full", name, full)
	}
}
