//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// composition compares kalypso with CUE on one platform.
//
// CUE gets the very files of the configs, and a comprehension that composes each assignment's
// values of them. It is equivalent for these platforms, and not in general:
//
//   - It relies on configs in the order of their layers, and on matches by labels that all
//     assignments have.
//   - It names the fields with defaults, and the lists that join.
//   - It checks no contract, and adds no defaults of a contract.
//   - It knows neither the source of a value nor which values are in conflict.
//
// Kalypso's time is the time of a whole cold build without an output folder. The platform is
// checked against the schema, scheduled, composed, checked against its contracts and emitted.
type composition struct {
	Kind        string `json:"kind"`
	Assignments int    `json:"assignments"`
	Kalypso     cost   `json:"kalypso"`
	// Given is CUE with a list of the configs of each assignment. Matched is CUE that finds them
	// by their labels.
	Given   cost `json:"cueGiven"`
	Matched cost `json:"cueMatched"`
}

// The folders of the packages for CUE, and the files in a job's folder.
const (
	given      = "given"
	matched    = "matched"
	valuesFile = "values.json"
)

// measureComposition composes a platform with both, and checks that they agree.
func measureComposition(k *kalypso, j job, runs int) (*composition, error) {
	c := &composition{Kind: kindOf(j.Distinct), Assignments: j.Assignments}
	for _, name := range []string{"generate", "comprehension"} {
		if err := runStepOf(name, j); err != nil {
			return nil, err
		}
	}
	var err error
	if c.Kalypso, err = best(runs, func() (*exec.Cmd, error) {
		cache, err := os.MkdirTemp(j.Dir, "cache-")
		return k.command(cache, "-C", j.platform(), "build"), err
	}); err != nil {
		return nil, err
	}
	for dir, out := range map[string]*cost{given: &c.Given, matched: &c.Matched} {
		cmd, err := step("cue", j, "export", "-e", "composed", "--outfile", exported(j, dir), ".")
		if err != nil {
			return nil, err
		}
		cmd.Dir = filepath.Join(j.Dir, dir)
		cmd.Env = append(cmd.Env, "CUE_CACHE_DIR="+k.modules)
		if *out, _, err = costOf(cmd); err != nil {
			return nil, err
		}
	}
	return c, runStepOf("compare", j)
}

// exported returns the name of the file with CUE's composition.
func exported(j job, dir string) string { return filepath.Join(j.Dir, dir+".json") }

// compareValues checks that CUE composed the same values as kalypso, except the fields that
// contracts fill in.
func compareValues(j job) error {
	want, err := readValues(filepath.Join(j.Dir, valuesFile))
	if err != nil {
		return err
	}
	for _, dir := range []string{given, matched} {
		got, err := readValues(exported(j, dir))
		if err != nil {
			return err
		}
		if len(got) != len(want) || len(got) == 0 {
			return fmt.Errorf("CUE composed %d assignments, and kalypso %d", len(got), len(want))
		}
		for id := range want {
			if err := equalValues(got[id], want[id]); err != nil {
				return fmt.Errorf("%s, %s: %w", id, dir, err)
			}
		}
	}
	return nil
}

func readValues(file string) (values map[string]map[string]json.RawMessage, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return values, json.Unmarshal(text, &values)
}

// filledIn are the fields that contracts of generated platforms fill in.
var filledIn = []string{"RETRIES", "RETRY_BUDGET"}

func equalValues(got, want map[string]json.RawMessage) error {
	for name := range got {
		if _, there := want[name]; !there {
			return fmt.Errorf("only CUE has %s", name)
		}
	}
	for name, value := range want {
		if slices.Contains(filledIn, name) {
			continue
		}
		a, err := canonical(got[name])
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		b, err := canonical(value)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if !bytes.Equal(a, b) {
			return fmt.Errorf("%s is %s of CUE and %s of kalypso", name, a, b)
		}
	}
	return nil
}

// canonical is a value with its fields sorted and without space.
func canonical(text json.RawMessage) ([]byte, error) {
	if text == nil {
		return nil, errors.New("it is missing")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}
