// Package strictyaml reads files that people write as YAML or JSON: one document, without unknown
// fields.
package strictyaml

import (
	"bytes"
	"errors"
	"io"
	"regexp"

	"go.yaml.in/yaml/v3"
)

// goTypes matches the decoder's names of Go's types, which the author of a file does not know.
var goTypes = regexp.MustCompile(` (in type|into) \S+`)

// Decode reads a document into a value, as the decoder of YAML does. An empty document leaves the
// value as it is. The error is for the author of the document.
func Decode(data []byte, into any) error {
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(into); err != nil && !errors.Is(err, io.EOF) {
		return errors.New(goTypes.ReplaceAllString(err.Error(), ""))
	}
	if err := d.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return errors.New(
			"there is more after the first document of YAML: write one document, without ---")
	}
	return nil
}
