package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// apiVersion is that of all JSON and YAML results.
const apiVersion = "kalypso.io/v1alpha1"

// choice is the value of a flag that takes one of some texts. Others are refused before
// anything is done.
type choice struct {
	value *string
	of    []string
}

// String returns the text.
func (c *choice) String() string {
	if c.value == nil { // pflag asks a zero value for its default
		return ""
	}
	return *c.value
}

// Type returns what help calls the value.
func (c *choice) Type() string { return "string" }

// Set sets the text.
func (c *choice) Set(s string) error {
	if !slices.Contains(c.of, s) {
		return errors.New("there are " + listed(c.of, "and"))
	}
	*c.value = s
	return nil
}

// choiceFlag adds a flag that takes one of some texts, which end its usage, to flags of a
// command. The first is the default.
func choiceFlag(cmd *cobra.Command, flags *pflag.FlagSet, value *string, name, shorthand, usage string, of ...string) {
	*value = of[0]
	flags.VarP(&choice{value, of}, name, shorthand, usage+": "+listed(of, "or"))
	completeFlag(cmd, name, values(of...))
}

// listed lists two texts or more: "a, b or c".
func listed(all []string, last string) string {
	n := len(all) - 1
	return strings.Join(all[:n], ", ") + " " + last + " " + all[n]
}

// outputFlag adds -o, and returns where its value will be.
func outputFlag(cmd *cobra.Command) *string { return outputFlagIn(cmd, cmd.Flags()) }

// outputFlagIn adds -o to flags of a command: its own, or those of all below it.
func outputFlagIn(cmd *cobra.Command, flags *pflag.FlagSet) *string {
	o := new(string)
	choiceFlag(cmd, flags, o, "output", "o", "how to print the result", "table", "json", "yaml")
	return o
}

// list is the document of a list result.
type list[T any] struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Items      []T    `json:"items"`
}

// document is the document of a single result.
type document[T any] struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Item       T      `json:"item"`
}

// print prints a result: as a document, or as the table that fill writes.
func (g *global) print(output string, result any, fill func(*tabwriter.Writer)) error {
	if output == "table" {
		return g.wrapped(fill)
	}
	return g.printDocument(output, result)
}

// printDocument prints a result as json or yaml.
func (g *global) printDocument(output string, result any) error {
	if output == "json" {
		return writeJSON(g.out, result)
	}
	text, err := toYAML(result)
	if err != nil {
		return err
	}
	_, err = g.out.Write(text)
	return err
}

func writeJSON(w io.Writer, result any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(result)
}

// toYAML writes what a type's JSON says as YAML, in the same order.
func toYAML(result any) ([]byte, error) {
	text, err := json.Marshal(result)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	v, err := ordered(dec)
	if err != nil {
		return nil, err
	}
	return yaml.Marshal(v)
}

// ordered reads one JSON value, objects as mappings that keep their order.
func ordered(dec *json.Decoder) (any, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '[' {
			list := []any{}
			for dec.More() {
				e, err := ordered(dec)
				if err != nil {
					return nil, err
				}
				list = append(list, e)
			}
			_, err = dec.Token()
			return list, err
		}
		m := yaml.Mapping{}
		for dec.More() {
			key, err := dec.Token()
			if err != nil {
				return nil, err
			}
			e, err := ordered(dec)
			if err != nil {
				return nil, err
			}
			m = append(m, yaml.Entry{Key: key.(string), Value: e})
		}
		_, err = dec.Token()
		return m, err
	case json.Number:
		return model.NumberOf(string(t))
	case nil:
		return model.Value{}, nil
	}
	return token, nil
}

// row writes a line of a table; an empty cell is shown as a dash.
func row(w *tabwriter.Writer, cells ...any) {
	for i, c := range cells {
		text := fmt.Sprint(c)
		if text == "" {
			text = "-"
		}
		if i > 0 {
			text = "\t" + text
		}
		fmt.Fprint(w, text)
	}
	fmt.Fprintln(w)
}

func join(items []string) string { return strings.Join(items, ",") }

func place(p model.Position) string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column) }

func places(ps []model.Position) string {
	var out []string
	for _, p := range ps {
		out = append(out, place(p))
	}
	return strings.Join(out, " ")
}
