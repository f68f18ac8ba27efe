package helm

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/project/internal/refusal"
)

// checkSchemas compares values with the values.schema.json of a chart and of its dependencies.
// It uses Helm's rules and Helm's library, with one exception. It refuses a schema that refers
// to another address; Helm would fetch that address, or read it from this machine.
func checkSchemas(ch *chart.Chart, values map[string]any) error {
	problems, err := schemaProblems(ch, values)
	if err != nil {
		return err
	}
	if len(problems) > 0 {
		return failed(
			fmt.Errorf("values don't meet the schema of the chart: %s", strings.Join(problems, "; ")))
	}
	return nil
}

func schemaProblems(ch *chart.Chart, values map[string]any) ([]string, error) {
	var problems []string
	if ch.Schema != nil {
		switch err := validate(ch, values); {
		case errors.As(err, new(*refusal.Error)):
			return nil, err
		case err != nil:
			problems = append(problems, ch.Name()+": "+err.Error())
		}
	}
	for _, d := range ch.Dependencies() {
		raw, ok := values[d.Name()]
		if !ok || raw == nil {
			continue
		}
		var of map[string]any
		switch raw := raw.(type) {
		case map[string]any:
			of = raw
		case chartutil.Values:
			of = raw
		default:
			problems = append(problems, fmt.Sprintf("%s: its values are a %T, not an object", d.Name(), raw))
			continue
		}
		below, err := schemaProblems(d, of)
		if err != nil {
			return nil, err
		}
		problems = append(problems, below...)
	}
	return problems, nil
}

// schemaURL is the address of a schema itself. References in the schema are relative to it.
const schemaURL = "file:///values.schema.json"

func validate(ch *chart.Chart, values map[string]any) error {
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(ch.Schema))
	if err != nil {
		return fmt.Errorf("values.schema.json is not JSON: %w", err)
	}
	compiler := jsonschema.NewCompiler()
	loader := &nowhere{chart: ch.Name()}
	compiler.UseLoader(loader)
	if err := compiler.AddResource(schemaURL, schema); err != nil {
		return err
	}
	validator, err := compiler.Compile(schemaURL)
	switch {
	case loader.refused != nil:
		// The library's error does not wrap that of the loader.
		return loader.refused
	case err != nil:
		return fmt.Errorf("values.schema.json cannot be used: %w", err)
	}
	if values == nil {
		values = map[string]any{}
	}
	if err := validator.Validate(values); err != nil {
		_, text, _ := strings.Cut(err.Error(), "\n")
		return errors.New(text)
	}
	return nil
}

// nowhere loads no schema. The published drafts of JSON Schema never get here:
// the library has them.
type nowhere struct {
	chart   string
	refused *refusal.Error // the first schema that was refused
}

// Load refuses a schema that another one refers to. A reference by name instead of an address
// allows everything, as in Helm.
func (n *nowhere) Load(url string) (any, error) {
	if strings.HasPrefix(url, "urn:") {
		return true, nil
	}
	refused := refusal.New(diag.Render, "put what it refers to into the schema, under $defs",
		"values.schema.json of chart %s refers to %s, and a build fetches nothing", n.chart, url)
	if n.refused == nil {
		n.refused = refused
	}
	return nil, refused
}
