package pull

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/internal/yamlnodes"
)

const (
	// maxBytes is the size of all texts that are read together.
	maxBytes = 256 << 20
	// maxAliased bounds the size of a YAML text after its aliases are written out.
	maxAliased = 100_000
)

// Text reads the clusters of a text, which is YAML or JSON, or an INI file of Ansible.
// Errors show the name. The ending of the name shows if the text is not an INI file.
func (r *Reader) Text(name string, data []byte) error {
	if err := r.text(name, bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))); err != nil {
		return errors.New(terminal.Line(name + ": " + err.Error()))
	}
	return nil
}

func (r *Reader) text(name string, data []byte) error {
	switch {
	case len(data) > maxBytes:
		return fmt.Errorf("has more than %d MiB", maxBytes>>20)
	case !utf8.Valid(data):
		return errors.New("is not UTF-8")
	}
	docs, err := documents(data)
	if r.From == Ansible && !slices.Contains(dataEndings, filepath.Ext(name)) &&
		(err != nil || !slices.ContainsFunc(docs, isMapping)) {
		return r.ini(data)
	}
	if err != nil {
		return err
	}
	for _, doc := range docs {
		if err := r.document(doc); err != nil {
			return err
		}
	}
	return nil
}

// dataEndings are the endings of files with YAML or JSON.
var dataEndings = []string{".yaml", ".yml", ".json"}

// isData reports whether a file of a folder is read.
func isData(name string) bool { return slices.Contains(dataEndings, filepath.Ext(name)) }

func isMapping(v any) bool { _, is := v.(map[string]any); return is }

// document reads the clusters of a document.
func (r *Reader) document(doc any) error {
	switch v := doc.(type) {
	case []any: // of objects, one after the other
		for _, e := range v {
			if err := r.document(e); err != nil {
				return err
			}
		}
		return nil
	case map[string]any:
		switch {
		case r.From == Kubeconfig:
			return r.kubeconfig(v)
		case r.From == Ansible:
			return r.ansible(v)
		}
		if items, ok := v["items"].([]any); ok {
			return r.document(items)
		}
		return r.object(v)
	case nil:
		return nil
	}
	return errors.New("is neither an object nor a list of objects")
}

// documents returns the documents of a text, as plain data.
func documents(data []byte) ([]any, error) {
	if start := bytes.TrimSpace(data); len(start) > 0 && (start[0] == '{' || start[0] == '[') {
		// JSON has texts that the YAML parser does not read, and YAML may begin like it.
		if docs, err := jsonDocuments(data); err == nil {
			return docs, nil
		}
	}
	nodes, cost, err := yamlnodes.Parse(data)
	switch {
	case err != nil:
		return nil, err
	case cost.Aliased > maxAliased:
		return nil, fmt.Errorf("writes out more than %d values with its aliases", maxAliased)
	}
	var docs []any
	for _, n := range nodes {
		var v any
		if err := n.Decode(&v); err != nil {
			return nil, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
		}
		docs = append(docs, v)
	}
	return docs, nil
}

func jsonDocuments(data []byte) (docs []any, err error) {
	for d := json.NewDecoder(bytes.NewReader(data)); ; {
		var v any
		switch err := d.Decode(&v); {
		case errors.Is(err, io.EOF):
			return docs, nil
		case err != nil:
			return nil, err
		}
		docs = append(docs, v)
	}
}

// kubeconfig reads the contexts of a kubeconfig, with the hosts of their servers
// (https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/).
func (r *Reader) kubeconfig(config map[string]any) error {
	servers := map[string]string{}
	for name, of := range named(config, "clusters", "cluster") {
		servers[name], _ = of["server"].(string)
	}
	there := false
	for name, of := range named(config, "contexts", "context") {
		if r.Context != "" && name != r.Context {
			continue
		}
		there = true
		cluster, _ := of["cluster"].(string)
		if err := r.add(Cluster{Name: name, Address: hostOf(servers[cluster]),
			origin: fmt.Sprintf("context %q", name)}); err != nil {
			return err
		}
	}
	if r.Context != "" && !there {
		return fmt.Errorf("has no context %q", r.Context)
	}
	return nil
}

// named yields the entries of a list of a kubeconfig by their names.
func named(config map[string]any, list, field string) func(func(string, map[string]any) bool) {
	return func(yield func(string, map[string]any) bool) {
		all, _ := config[list].([]any)
		for _, e := range all {
			entry, _ := e.(map[string]any)
			name, _ := entry["name"].(string)
			of, _ := entry[field].(map[string]any)
			if name != "" && !yield(name, of) {
				return
			}
		}
	}
}
