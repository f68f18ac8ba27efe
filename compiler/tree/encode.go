package tree

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Encode returns the record's JSON, with a line for each assignment, so that a change of one
// assignment changes one line. It fails only if a folder's Shared is not JSON.
func (c *ClusterTypeRecord) Encode() ([]byte, error) {
	b, _, err := c.encode(make([]byte, 0, 1024+len(c.Files)*80))
	return b, err
}

// encode appends the output of Encode, and returns the position of each assignment's line.
func (c *ClusterTypeRecord) encode(b []byte) (_ []byte, lines [][2]int, err error) {
	lines = make([][2]int, len(c.Assignments))
	b = appendString(append(b, "{\n  \"apiVersion\": "...), c.APIVersion)
	b = appendString(append(b, ",\n  \"kind\": "...), c.Kind)
	b = appendString(append(b, ",\n  \"name\": "...), c.Name)
	b = appendFiles(append(b, ",\n  \"files\": "...), c.Files)
	if c.Kept != "" {
		b = appendString(append(b, ",\n  \"kept\": "...), c.Kept)
	}
	if len(c.Clusters) > 0 {
		b = append(b, ",\n  \"clusters\": ["...)
		for i, name := range c.Clusters {
			b = appendString(appendNext(b, i), name)
		}
		b = append(b, "\n  ]"...)
	}
	if c.Facts != nil {
		b = append(b, ",\n  \"facts\": ["...)
		for i := range c.Facts {
			facts, err := c.Facts[i].Encode()
			if err != nil {
				return nil, nil, fmt.Errorf("facts of cluster %s: %w", c.Facts[i].Cluster, err)
			}
			b = append(appendNext(b, i), facts...)
		}
		if len(c.Facts) > 0 {
			b = append(b, "\n  "...)
		}
		b = append(b, ']')
	}
	if len(c.Entries) > 0 {
		b = append(b, ",\n  \"entries\": ["...)
		for i := range c.Entries {
			e := &c.Entries[i]
			b = appendString(appendField(append(appendNext(b, i), '{'), "cluster", true), e.Cluster)
			b = appendString(appendField(b, "folder", false), e.Folder)
			b = append(appendFiles(appendField(b, "files", false), e.Files), '}')
		}
		b = append(b, "\n  ]"...)
	}
	b = append(b, ",\n  \"assignments\": ["...)
	before := len(b)
	for i := range c.Assignments {
		b = appendNext(b, i)
		lines[i][0] = len(b)
		if b, err = c.Assignments[i].append(b); err != nil {
			return nil, nil, fmt.Errorf("folder %s/%s: %w", c.Name, c.Assignments[i].DeploymentTarget, err)
		}
		lines[i][1] = len(b)
		if i == 0 { // the others are about as long
			b = slices.Grow(b, (len(b)-before)*len(c.Assignments)*5/4)
		}
	}
	if len(c.Denied) > 0 {
		b = append(b, "\n  ],\n  \"denied\": ["...)
		for i, d := range c.Denied {
			b = appendString(appendField(append(appendNext(b, i), '{'), "deploymentTarget", true),
				d.DeploymentTarget)
			b = append(appendStrings(b, "policies", d.Policies), '}')
		}
	}
	return append(b, "\n  ]\n}\n"...), lines, nil
}

// append appends the same JSON as encoding/json for the assignment, but faster.
func (a *AssignmentRecord) append(b []byte) ([]byte, error) {
	text := func(name, value string) {
		b = appendString(appendField(b, name, b[len(b)-1] == '{'), value)
	}
	b = append(b, '{')
	text("deploymentTarget", a.DeploymentTarget)
	text("workspace", a.Workspace)
	text("workload", a.Workload)
	text("namespace", a.Namespace)
	if a.Version != "" {
		text("version", a.Version)
	}
	if a.VersionFrom != "" {
		text("versionFrom", string(a.VersionFrom))
	}
	if a.Orphan {
		b = append(appendField(b, "orphan", false), "true"...)
	}
	b = appendStrings(b, "dependsOn", a.DependsOn)
	if a.Wave != 0 {
		b = strconv.AppendInt(appendField(b, "wave", false), int64(a.Wave), 10)
	}
	text("backend", a.Backend)
	b = appendStrings(b, "retained", a.Retained)
	if len(a.Shared) > 0 {
		buf := bytes.NewBuffer(appendField(b, "shared", false))
		if err := json.Compact(buf, a.Shared); err != nil {
			return nil, fmt.Errorf("what the index needs to know of it is not JSON: %w", err)
		}
		b = buf.Bytes()
	}
	text("tree", string(a.Tree))
	text("values", string(a.Values))
	if b = appendField(b, "files", false); a.made == nil {
		b = appendFiles(b, a.Files)
	} else {
		b = append(b, '{')
		for i, f := range a.made {
			b = f.Blob().append(append(appendString(appendComma(b, i), f.Path), ':'))
		}
		b = append(b, '}')
	}
	b = appendStrings(b, "policies", a.Policies)
	b = appendStrings(b, "sparedBy", a.SparedBy)
	b = appendStrings(b, "configs", a.Configs)
	b = appendStrings(b, "configSchemas", a.ConfigSchemas)
	if a.Kept != nil {
		kept, err := encode(a.Kept)
		if err != nil {
			return nil, err
		}
		b = append(appendField(b, "kept", false), kept...)
	}
	return append(b, '}'), nil
}

// encode is json.Marshal, but does not escape the characters of HTML.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), err
}

// appendNext begins the line of an element of an array.
func appendNext(b []byte, i int) []byte { return append(appendComma(b, i), "\n    "...) }

// appendComma appends a comma, except before the first element.
func appendComma(b []byte, i int) []byte {
	if i > 0 {
		b = append(b, ',')
	}
	return b
}

// appendField appends the name of a field, after a comma unless it is the first.
func appendField(b []byte, name string, first bool) []byte {
	if !first {
		b = append(b, ',')
	}
	b = append(b, '"')
	b = append(b, name...)
	return append(b, "\":"...)
}

// appendStrings appends a field that is a list of strings, unless it is empty.
func appendStrings(b []byte, name string, list []string) []byte {
	if len(list) == 0 {
		return b
	}
	b = append(appendField(b, name, false), '[')
	for i, s := range list {
		b = appendString(appendComma(b, i), s)
	}
	return append(b, ']')
}

// appendFiles appends files as an object, sorted by path.
func appendFiles(b []byte, files map[string]Blob) []byte {
	b = append(b, '{')
	for i, p := range slices.Sorted(maps.Keys(files)) {
		b = files[p].append(append(appendString(appendComma(b, i), p), ':'))
	}
	return append(b, '}')
}

// asIs contains the bytes that need no escape in a JSON string.
var asIs = func() (out [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		out[c] = c != '"' && c != '\\'
	}
	return out
}()

// appendString appends a JSON string.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if !asIs[s[i]] {
			quoted, _ := encode(s) // a string cannot fail
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
