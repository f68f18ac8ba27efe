package plan

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kalypso-io/kalypso/compiler/compare"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/session"
)

// contents are the files of a GitOps repository, with those of commits that are not pushed
// yet. Package compare reads them.
type contents struct {
	ctx context.Context
	of  *session.Repository
}

func (c contents) Prefetch(ids []tree.ID) error {
	hashes := make([]git.Hash, len(ids))
	for i, id := range ids {
		hashes[i] = tree.Revision(id).Hash()
	}
	// What was just made is not on the server.
	hashes = slices.DeleteFunc(hashes, c.of.Staging.Has)
	return c.of.Remote.Prefetch(c.ctx, hashes)
}

func (c contents) Blob(id tree.ID) ([]byte, error) {
	return c.of.Staging.Blob(tree.Revision(id).Hash())
}

// inspect sets what a prepared commit changes.
func (m *maker) inspect(ctx context.Context, st *session.Stage, step *Step) error {
	p := step.Prepared
	of := contents{ctx, st.Environment.Repository}
	var err error
	if p.report, err = compare.Records(st.Environment.Record, p.record, of); err != nil {
		return err
	}
	if m.state.Platform.Subject.Form().Targets {
		p.report = p.report.OfTargets()
	}
	a := p.report.Assignments
	step.Change.Assignments.Added, step.Change.Assignments.Changed, step.Change.Assignments.Removed = a.Added, a.Changed, a.Removed
	types := map[string]bool{}
	for _, id := range slices.Concat(a.Added, a.Changed, a.Removed) {
		types[clusterTypeOf(id)] = true
	}
	step.Change.ClusterTypes = slices.Sorted(maps.Keys(types))
	step.Change.Clusters = clustersOf(p.report)
	return m.countObjects(st, step, of)
}

// clustersOf returns how many clusters a change concerns, as a rollout counts them: a cluster
// type that lists none stands for one.
func clustersOf(r *compare.Report) int {
	n := 0
	if r.Clusters != nil {
		n = r.Clusters.Concerned
	}
	listed, others := map[string]bool{}, map[string]bool{}
	for i := range r.Counts {
		c := &r.Counts[i]
		name := model.TypeOfFolder(c.ClusterType)
		listed[name] = listed[name] || c.Clusters > 0
		if c.Added+c.Changed+c.Removed > 0 {
			others[name] = true
		}
	}
	if r.Clusters != nil {
		for _, m := range r.Clusters.Moves {
			listed[model.TypeOfFolder(m.From)], listed[model.TypeOfFolder(m.To)] = true, true
		}
	}
	for name := range others {
		if !listed[name] {
			n++
		}
	}
	return n
}

// clusterTypeOf returns the cluster type of the id of an assignment, or of a target.
func clusterTypeOf(id string) string {
	parts := strings.SplitN(id, "/", 3)
	if len(parts) < 2 {
		return ""
	}
	return model.TypeOfFolder(parts[1])
}

// countObjects counts the objects that are created, updated and deleted, by kind.
func (m *maker) countObjects(st *session.Stage, step *Step, of contents) error {
	c := step.Change
	c.Created, c.Updated, c.Deleted = map[string]int{}, map[string]int{}, map[string]int{}
	all := slices.Concat(c.Assignments.Added, c.Assignments.Changed, c.Assignments.Removed)
	befores, afters := make([]map[string]tree.Blob, len(all)), make([]map[string]tree.Blob, len(all))
	var ids []tree.ID
	for i, id := range all {
		var err error
		if befores[i], afters[i], err = differing(st.Environment.Record, step.Prepared.record, id); err != nil {
			return err
		}
		for _, files := range []map[string]tree.Blob{befores[i], afters[i]} {
			for _, blob := range files {
				ids = append(ids, blob.ID)
			}
		}
	}
	if err := of.Prefetch(ids); err != nil {
		return err
	}
	for i := range all {
		before, err := objectsOf(befores[i], of)
		if err != nil {
			return err
		}
		after, err := objectsOf(afters[i], of)
		if err != nil {
			return err
		}
		for o, text := range after {
			old, there := before[o]
			switch {
			case !there:
				c.Created[o.kind]++
			case !bytes.Equal(old, text):
				c.Updated[o.kind]++
			}
		}
		for o := range before {
			if _, stays := after[o]; !stays {
				c.Deleted[o.kind]++
			}
		}
	}
	return nil
}

// differing returns the files of an assignment's folder in two records that are not in the
// other one alike.
func differing(before, after *tree.Record, id string) (old, new map[string]tree.Blob, err error) {
	if old, err = filesOf(before, id); err != nil {
		return nil, nil, err
	}
	if new, err = filesOf(after, id); err != nil {
		return nil, nil, err
	}
	without := func(files, others map[string]tree.Blob) map[string]tree.Blob {
		out := map[string]tree.Blob{}
		for path, blob := range files {
			if other, there := others[path]; !there || other.ID != blob.ID {
				out[path] = blob
			}
		}
		return out
	}
	return without(old, new), without(new, old), nil
}

// filesOf returns the files of the folder of an assignment, or of a target, by a record,
// which may be nil.
func filesOf(record *tree.Record, id string) (map[string]tree.Blob, error) {
	parts := strings.SplitN(id, "/", 3)
	if record == nil || len(parts) < 2 {
		return nil, nil
	}
	ct, err := record.ClusterType(parts[1])
	if err != nil || ct == nil {
		return nil, err
	}
	if len(parts) == 2 {
		return ct.Files, nil
	}
	if a := ct.Assignment(parts[2]); a != nil {
		return a.Files, nil
	}
	return nil, nil
}

// object identifies what a manifest describes.
type object struct{ apiVersion, kind, namespace, name string }

// objectsOf returns the objects of files, with their texts. A file without any is an
// object itself, of kind File.
func objectsOf(files map[string]tree.Blob, of contents) (map[object][]byte, error) {
	out := map[object][]byte{}
	for path, blob := range files {
		data, err := of.Blob(blob.ID)
		if err != nil {
			return nil, err
		}
		found := manifestsIn(path, data)
		if len(found) == 0 {
			out[object{kind: "File", name: path}] = data
		}
		maps.Copy(out, found)
	}
	return out, nil
}

// manifestsIn returns the Kubernetes objects of a file that kalypso wrote.
func manifestsIn(path string, data []byte) map[object][]byte {
	if !strings.HasSuffix(path, ".yaml") && !strings.HasSuffix(path, ".yml") {
		return nil
	}
	out := map[object][]byte{}
	for _, doc := range bytes.Split(data, []byte("\n---\n")) {
		o, sure := scanned(doc)
		if !sure {
			o = parsed(doc)
		}
		if o.kind != "" && o.apiVersion != "" {
			out[o] = doc
		}
	}
	return out
}

// parsed returns the object that a document is; the zero object for none.
func parsed(doc []byte) object {
	var head struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string `yaml:"kind"`
		Metadata   struct {
			Name      string `yaml:"name"`
			Namespace string `yaml:"namespace"`
		} `yaml:"metadata"`
	}
	if yaml.Unmarshal(doc, &head) != nil {
		return object{}
	}
	return object{head.APIVersion, head.Kind, head.Metadata.Namespace, head.Metadata.Name}
}

// scanned is a fast parsed for documents as kalypso writes most: fields have lines of
// their own, and names need no quotes. sure is false for every other document.
func scanned(doc []byte) (o object, sure bool) {
	if bytes.Contains(doc, []byte("{{")) || bytes.ContainsRune(doc, '\t') {
		return o, false
	}
	within := "" // the field at the top that a line is below
	first := 0   // how far the fields of metadata are from the left
	for line := range strings.Lines(string(doc)) {
		line = strings.TrimSuffix(line, "\n")
		text := strings.TrimLeft(line, " ")
		indent := len(line) - len(text)
		if within == "metadata" && indent > 0 && first == 0 {
			first = indent
		}
		if text == "" || indent > 2 && first <= 2 || indent > 0 && within != "metadata" || text[0] == '-' && within != "metadata" && within != "" {
			continue
		}
		name, value, isField := strings.Cut(text, ":")
		value, spaced := strings.CutPrefix(value, " ")
		if !isField || !spaced && value != "" || !isWord(name) || indent == 1 || indent > 2 {
			return o, false
		}
		if indent == 0 {
			within = name
		}
		var to *string
		switch field := within + "." + name; {
		case indent == 2 && (field == "metadata.name" || field == "metadata.namespace"):
			to = map[string]*string{"name": &o.name, "namespace": &o.namespace}[name]
		case indent == 0 && name == "apiVersion":
			to = &o.apiVersion
		case indent == 0 && name == "kind":
			to = &o.kind
		case value != "" && !isWord(value) && (indent == 2 || name == "metadata"):
			return o, false // it may go on in the next line
		case value != "" && strings.ContainsAny(value[:1], "\"'&*!|>{[%@`?"):
			if value != "{}" && value != "[]" && value[0] != '|' {
				return o, false
			}
		}
		if to == nil {
			continue
		}
		if *to != "" || !isWord(value) {
			return o, false
		}
		*to = value
	}
	return o, o.apiVersion != "" && o.kind != ""
}

// isWord reports whether a text is a string in YAML, whatever is around it.
func isWord(text string) bool {
	if text == "" || text[0]|0x20 < 'a' || text[0]|0x20 > 'z' {
		return false
	}
	for _, r := range text {
		if (r|0x20 < 'a' || r|0x20 > 'z') && (r < '0' || r > '9') && r != '-' && r != '.' && r != '/' {
			return false
		}
	}
	switch strings.ToLower(text) {
	case "null", "true", "false", "yes", "no", "on", "off", "y", "n":
		return false
	}
	return true
}
