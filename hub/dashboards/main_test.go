package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// problem checks a dashboard against Grafana's schema: every field has one of its types.
func problem(text []byte) error {
	var d dashboard.Dashboard
	var none cog.BuildErrors // UnmarshalJSONStrict returns an empty list, which is not nil, if there are no errors
	if err := d.UnmarshalJSONStrict(text); err != nil && !(errors.As(err, &none) && len(none) == 0) {
		return err
	}
	return d.Validate()
}

func TestSchema(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	files, err := filepath.Glob("*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := problem(text); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		// A field or a value that Grafana does not have is found.
		for _, c := range [][2]string{
			{`"title":`, `"tilte":`}, {`"graphTooltip": 0`, `"graphTooltip": "none"`}, {`"fieldConfig":`, `"fieldsConfig":`}, {`"showHeader":`, `"showHeading":`},
		} {
			wrong := strings.Replace(string(text), c[0], c[1], 1)
			if !json.Valid([]byte(wrong)) || wrong == string(text) {
				t.Errorf("%s: %q makes no other JSON", file, c[1])
			} else if problem([]byte(wrong)) == nil {
				t.Errorf("%s: %q is not found", file, c[1])
			}
		}
	}
}
