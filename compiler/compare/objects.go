package compare

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
)

// objects counts the objects of one pair by kind. Documents that are not Kubernetes objects
// count as File.
type objects struct {
	created, updated, deleted map[string]int
	// namespaces and definitions are the names of the Namespaces and the
	// CustomResourceDefinitions among the deleted objects, sorted. claims counts
	// PersistentVolumeClaims, including those that StatefulSets of a deleted namespace
	// make. custom counts objects of custom kinds.
	namespaces, definitions []string
	claims, custom          int
}

// countObjects counts the differing objects of two folders. One of them may be missing.
// Objects that outlive their assignment are not deleted.
func countObjects(before, after map[string]backends.File, was, is *Folder) objects {
	o := objects{created: map[string]int{}, updated: map[string]int{}, deleted: map[string]int{}}
	differing := func(files, others map[string]backends.File) map[object][]byte {
		out := map[object][]byte{}
		for path, f := range files {
			if other, there := others[path]; there && bytes.Equal(f.Data, other.Data) {
				continue
			}
			found := manifestsIn(path, f.Data)
			if len(found) == 0 {
				out[object{kind: "File", name: path}] = f.Data
			}
			maps.Copy(out, found)
		}
		return out
	}
	old, now := differing(before, after), differing(after, before)
	for id, text := range now {
		switch was, there := old[id]; {
		case !there:
			o.created[id.kind]++
		case !bytes.Equal(was, text):
			o.updated[id.kind]++
		}
	}
	gone := map[string]bool{} // namespaces
	for id := range old {
		if _, stays := now[id]; !stays && id.kind == "Namespace" && id.isBuiltIn() &&
			(was.Info == nil || !was.Info.Orphan) {
			gone[id.name] = true
		}
	}
	for id, text := range old {
		_, stays := now[id]
		if inGone := gone[id.namespace]; inGone && id.kind == "StatefulSet" {
			o.claims += claimsOf(text)
		}
		if stays || outlives(was, id) && !gone[id.namespace] || id.kind == "Namespace" && !gone[id.name] {
			continue
		}
		o.deleted[id.kind]++
		switch {
		case id.kind == "Namespace":
			o.namespaces = append(o.namespaces, id.name)
		case id.kind == "CustomResourceDefinition":
			o.definitions = append(o.definitions, id.name)
		case id.kind == "PersistentVolumeClaim":
			o.claims++
		case id.kind != "File" && !id.isBuiltIn() && !id.reconciles(was):
			o.custom++
		}
	}
	slices.Sort(o.namespaces)
	slices.Sort(o.definitions)
	return o
}

// stays reports whether the job's cluster keeps its deployments although it is no longer
// listed.
func (j *job) stays() bool {
	b := known()[j.before.Backend]
	return b != nil && !b.Traits().DeletesUnlisted
}

// outlives reports whether an object stays on the cluster when its assignment is removed.
func outlives(f *Folder, id object) bool {
	if f.Info == nil {
		return false
	}
	name := id.kind + " " + id.name
	if id.namespace != "" {
		name = id.kind + " " + id.namespace + "/" + id.name
	}
	return slices.Contains(f.Info.Retained, name) &&
		!(kubernetes.InNamespace(name, f.Info.Namespace) && !f.Info.Orphan)
}

// claimsOf returns the number of PersistentVolumeClaims that a StatefulSet makes.
func claimsOf(doc []byte) int {
	var set struct {
		Spec struct {
			Replicas  *int  `yaml:"replicas"`
			Templates []any `yaml:"volumeClaimTemplates"`
		} `yaml:"spec"`
	}
	if !bytes.Contains(doc, []byte("volumeClaimTemplates")) || yaml.Unmarshal(doc, &set) != nil {
		return 0
	}
	replicas := 1
	if set.Spec.Replicas != nil {
		replicas = *set.Spec.Replicas
	}
	return replicas * len(set.Spec.Templates)
}

// object identifies the object that a manifest describes.
type object struct{ apiVersion, kind, namespace, name string }

// isBuiltIn reports whether the kind is Kubernetes' own, by its API group.
func (o object) isBuiltIn() bool {
	group, _, grouped := strings.Cut(o.apiVersion, "/")
	return !grouped || !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
}

// reconciles reports whether the object only makes the reconciler deliver the
// assignment.
func (o object) reconciles(f *Folder) bool {
	b := known()[f.Backend]
	group, _, _ := strings.Cut(o.apiVersion, "/")
	return b != nil && (slices.Contains(b.Traits().Groups, group) ||
		strings.HasSuffix(group, ".fluxcd.io") || group == "fleet.cattle.io")
}

// manifestsIn returns the Kubernetes objects of a file that kalypso wrote.
func manifestsIn(path string, data []byte) map[object][]byte {
	if !strings.HasSuffix(path, ".yaml") && !strings.HasSuffix(path, ".yml") {
		return nil
	}
	return objectsIn(data)
}

// objectsIn returns the Kubernetes objects of a YAML stream with their documents.
func objectsIn(data []byte) map[object][]byte {
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

// parsed returns the object that a document is, or the zero object.
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
		if text == "" || indent > 2 && first <= 2 || indent > 0 && within != "metadata" ||
			text[0] == '-' && within != "metadata" && within != "" {
			continue
		}
		name, value, isField := strings.Cut(text, ":")
		value, spaced := strings.CutPrefix(value, " ")
		if !isField || !spaced && value != "" || !isPlain(name) || indent == 1 || indent > 2 {
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
		case value != "" && !isPlain(value) && (indent == 2 || name == "metadata"):
			return o, false // it may go on in the next line
		case value != "" && strings.ContainsAny(value[:1], "\"'&*!|>{[%@`?"):
			if value != "{}" && value != "[]" && value[0] != '|' {
				return o, false
			}
		}
		if to == nil {
			continue
		}
		if *to != "" || !isPlain(value) {
			return o, false
		}
		*to = value
	}
	return o, o.apiVersion != "" && o.kind != ""
}

// isPlain reports whether a text is a string in YAML, whatever is around it.
func isPlain(text string) bool {
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
