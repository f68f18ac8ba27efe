package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The YAML of pages is valid, and the commands of kalypso in it exist.
func TestDocsRecipes(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(repository, "docs", "*.md"))
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	commands := 0
	for _, file := range files {
		page, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range blocksOf(string(page), "yaml") {
			if strings.Contains(block, "{{ .") { // a template of a chart
				continue
			}
			values, err := decodeAll(block)
			if err != nil {
				t.Errorf("%s: %v in\n%s", filepath.Base(file), err, block)
			}
			for _, line := range linesOf(values) {
				commands++
				if err := checkCommand(shellWords(line)); err != nil {
					t.Errorf("%s: %s: %v", filepath.Base(file), line, err)
				}
			}
		}
	}
	if commands < 5 {
		t.Errorf("%d commands were found", commands)
	}
}

// blocksOf returns the blocks of a page in a language.
func blocksOf(page, language string) []string {
	var out []string
	for _, part := range strings.Split("\n"+page, "\n```"+language+"\n")[1:] {
		block, _, _ := strings.Cut(part, "\n```")
		out = append(out, block)
	}
	return out
}

func decodeAll(text string) ([]any, error) {
	var out []any
	for decoder := yaml.NewDecoder(strings.NewReader(text)); ; {
		var value any
		err := decoder.Decode(&value)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		out = append(out, value)
	}
}

// linesOf returns the lines of texts in a value that run kalypso.
func linesOf(value any) []string {
	var out []string
	switch v := value.(type) {
	case string:
		for line := range strings.Lines(v) {
			if rest, runs := strings.CutPrefix(strings.TrimSpace(line), "kalypso "); runs {
				out = append(out, "kalypso "+rest)
			}
		}
	case []any:
		for _, e := range v {
			out = append(out, linesOf(e)...)
		}
	case map[string]any:
		for _, e := range v {
			out = append(out, linesOf(e)...)
		}
	}
	return out
}
