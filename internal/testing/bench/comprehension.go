//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// comprehension composes each assignment's values as generated platforms need it. Values unify.
// Of several defaults, the default of the highest layer applies. Lists join by their strategies.
// Field names has the configs of an assignment by layer.
const comprehension = `package platform

import "list"

#lists: ["startup", "tags", "sinks"]
#open: ["LOG_LEVEL", "TIMEOUT_SECONDS", "SAMPLE_RATE", "TRACING", "API_VERSION", "TIMEZONE", "CA_BUNDLES"]

configs: [_]: {
	match: {...}
	layer: int
	values: {...}
	defaults: {...}
	unified: {for k, v in values if !list.Contains(#lists, k) {(k): v}}
}

composed: {
	for id, a in assignments {
		(id): {
			WHEREABOUTS: "\(a.labels.environment)/\(a.labels.workspace)"
			for n in a.names {configs[n].unified}
			for k in #open {
				let given = [for n in a.names if configs[n].defaults[k] != _|_ {configs[n].defaults[k]}]
				if len(given) > 0 {(k): *given[len(given)-1] | _}
			}
			let startup = [for n in a.names if configs[n].values.startup != _|_ {configs[n].values.startup}]
			if len(startup) > 0 {"startup": list.Concat(startup)}
			let tags = {for n in a.names if configs[n].values.tags != _|_ for t in configs[n].values.tags {(t): t}}
			if len(tags) > 0 {"tags": [for t in tags {t}]}
			let sinks = {for n in a.names if configs[n].values.sinks != _|_ for s in configs[n].values.sinks {(s.name): s}}
			if len(sinks) > 0 {"sinks": [for s in sinks {s}]}
		}
	}
}
`

// matching finds the configs of every assignment, as they are written.
const matching = `
assignments: [_]: {
	labels: {[string]: string}
	let of = labels
	names: [for n, c in configs if (c.match & of) != _|_ {n}]
}
`

const moduleText = `module: "generated.example/comprehension@v0"
language: version: "v0.17.0"
`

// assignmentText is an assignment for CUE.
type assignmentText struct {
	Labels map[string]string `json:"labels"`
	Names  []string          `json:"names,omitempty"`
}

// writeComprehensions writes the packages for CUE, and the values that kalypso composes.
func writeComprehensions(j job) error {
	b, err := compiler.Compile(context.Background(), compiler.Request{Dir: j.platform()})
	if err != nil {
		return err
	}
	if b.Failed() || len(b.Environments) != 1 {
		return errors.New("a generated platform has errors, or not one environment")
	}
	e := b.Environments[0]
	withNames, withoutNames := map[string]assignmentText{}, map[string]assignmentText{}
	values := map[string]model.Value{}
	for i := range e.Schedule.Assignments {
		id, labels := e.Schedule.Assignments[i].ID(e.Name), labelsOf(e, i)
		names, err := matchingConfigs(e.Model.Configs, labels)
		if err != nil {
			return err
		}
		g, err := e.Graph(context.Background(), i)
		if err != nil {
			return err
		}
		withNames[id], withoutNames[id], values[id] = assignmentText{labels, names}, assignmentText{Labels: labels}, g.Values
	}
	return errors.Join(
		writeJSON(filepath.Join(j.Dir, valuesFile), "", values),
		writePackage(j, given, comprehension, withNames),
		writePackage(j, matched, comprehension+matching, withoutNames))
}

// labelsOf are the labels that configs of generated platforms match.
func labelsOf(e *engine.Environment, i int) map[string]string {
	a := &e.Schedule.Assignments[i]
	labels := map[string]string{
		"environment": e.Name, "workspace": a.Workload.Workspace,
		"clusterType": a.ClusterType.Name, "deploymentTarget": a.Target.FullName,
	}
	maps.Copy(labels, a.Target.Labels)
	maps.Copy(labels, a.ClusterType.Labels)
	return labels
}

// matchingConfigs returns the configs that match, except the config that is a function of the
// assignment. They are in the order in which they are written. That is the order of layers,
// because no two configs of a layer match.
func matchingConfigs(configs []model.Config, labels map[string]string) ([]string, error) {
	byLayer := map[int]string{}
	layers := 0
	for i := range configs {
		c := &configs[i]
		if c.Facts != nil {
			continue
		}
		holds, err := equals(c.Match, labels)
		if err != nil {
			return nil, fmt.Errorf("config %s: %w", c.Name, err)
		}
		if holds {
			if other, there := byLayer[c.Layer]; there {
				return nil, fmt.Errorf("configs %s and %s match in one layer", c.Name, other)
			}
			byLayer[c.Layer] = c.Name
			layers = max(layers, c.Layer+1)
		}
	}
	var names []string
	for layer := range layers {
		if name, there := byLayer[layer]; there {
			names = append(names, name)
		}
	}
	return names, nil
}

// equals evaluates a selector of equalities.
func equals(s model.Selector, labels map[string]string) (bool, error) {
	switch s.Op {
	case model.OpAll:
		return true, nil
	case model.OpAnd:
		for _, arg := range s.Args {
			if holds, err := equals(arg, labels); err != nil || !holds {
				return false, err
			}
		}
		return true, nil
	case model.OpField:
		if of := s.Args[0]; of.Op == model.OpEqual {
			value, there := labels[s.Key]
			return there && value == of.Text, nil
		}
	}
	return false, fmt.Errorf("%s is more than equalities", s)
}

// writePackage writes a package for CUE: the platform's configs as they are, its assignments, and
// the comprehension that composes them.
func writePackage(j job, name, text string, assignments map[string]assignmentText) error {
	dir := filepath.Join(j.Dir, name)
	if err := os.MkdirAll(filepath.Join(dir, "cue.mod"), 0o755); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(j.configs(), "configs-*.cue"))
	if err != nil {
		return err
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(file)), data, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "cue.mod", "module.cue"), []byte(moduleText), 0o644),
		os.WriteFile(filepath.Join(dir, "platform.cue"), []byte(text), 0o644),
		writeJSON(filepath.Join(dir, "assignments.cue"), "package platform\n\nassignments: ", assignments))
}

func writeJSON(file, before string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return os.WriteFile(file, append([]byte(before), append(text, '\n')...), 0o644)
}
