package gotemplate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	kubeyaml "sigs.k8s.io/yaml"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// yaml reads every document as API servers do (sigs.k8s.io/yaml), and leaves out
// those that are empty. Kubernetes objects are written anew, so that no reader can
// take them for anything else; other documents stay as the template wrote them,
// since their readers are not known.
func (o *output) yaml(a *backends.Assignment) (content, *diag.Diagnostic) {
	out := content{resource: true}
	var written [][]byte
	for _, doc := range split(string(o.text)) {
		v, line, err := doc.read()
		if err != nil {
			return content{}, o.broken("YAML", line, err.Error())
		}
		if v.Kind() == model.Null {
			continue
		}
		t, err := kubernetes.Trace(a, v)
		if err != nil {
			return content{}, o.broken("Kubernetes object", doc.first(), err.Error())
		}
		if t.Objects == nil {
			out.resource = false
			written = append(written, []byte(doc.text))
			continue
		}
		data, err := yaml.Marshal(t.Docs...)
		if err != nil {
			return content{}, o.broken("YAML", doc.first(), err.Error())
		}
		written = append(written, data)
		out.objects = append(out.objects, t.Objects...)
		out.plaintext = append(out.plaintext, kubernetes.PlainSecrets(v)...)
		out.encrypted = append(out.encrypted, kubernetes.Encrypted(a, v)...)
	}
	if len(written) == 0 {
		return content{}, nil
	}
	out.data = bytes.Join(written, []byte("---\n"))
	return out, nil
}

// document is one of a stream: its text without the line of --- before it, and
// the number of the line that it begins at.
type document struct {
	text string
	line int
}

// blank are the characters of YAML that say nothing. Other white space of Unicode is text.
const blank = " \t\r\n"

// split takes a stream apart at its markers, which stand at the beginning of a
// line wherever they are (YAML 1.2.2, 9.1.2). A marker with something after it
// becomes white space, which changes nothing.
func split(stream string) []document {
	var docs []document
	current := document{line: 1}
	var text strings.Builder
	end := func(line int) {
		if current.text = text.String(); strings.Trim(current.text, blank) != "" {
			docs = append(docs, current)
		}
		text.Reset()
		current = document{line: line}
	}
	number := 0
	for line := range strings.Lines(stream) {
		number++
		switch {
		case isMarker(line, "---"):
			end(number)
			if strings.Trim(line[3:], blank) == "" {
				current.line++
				continue
			}
			line = "   " + line[3:]
		case isMarker(line, "..."):
			end(number + 1)
			continue
		}
		text.WriteString(line)
		if !strings.HasSuffix(line, "\n") {
			text.WriteString("\n")
		}
	}
	end(number)
	return docs
}

func isMarker(line, marker string) bool {
	rest, ok := strings.CutPrefix(line, marker)
	return ok && (rest == "" || strings.ContainsRune(blank, rune(rest[0])))
}

// first returns the number of the document's first line that says something.
func (d document) first() int {
	line := d.line
	for text := range strings.Lines(d.text) {
		if t := strings.Trim(text, blank); t != "" && !strings.HasPrefix(t, "#") {
			break
		}
		line++
	}
	return line
}

// read returns the document's value; null for one without any. A key that is
// there twice is an error, and so is what another reader takes for more than one
// document.
func (d document) read() (v model.Value, line int, err error) {
	fail := func(err error) (model.Value, int, error) {
		line, message := lineIn(err.Error())
		if line > 0 {
			line += d.line - 1
		}
		return model.Value{}, line, errors.New(message)
	}
	text, err := kubeyaml.YAMLToJSONStrict([]byte(d.text))
	if err != nil {
		return fail(err)
	}
	reader := yamlv3.NewDecoder(strings.NewReader(d.text))
	var node yamlv3.Node
	if err := reader.Decode(&node); err != nil && err != io.EOF {
		return fail(err)
	}
	if err := reader.Decode(&node); err != io.EOF {
		return fail(fmt.Errorf("line %d: there is more than one document, and no line of --- between them", 1))
	}
	if len(text) > maxOutput {
		return fail(fmt.Errorf("its anchors make more than %s of it", mebibytes(maxOutput)))
	}
	if err := v.UnmarshalJSON(text); err != nil {
		return fail(err)
	}
	return v, 0, nil
}
