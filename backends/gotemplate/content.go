package gotemplate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	strictjson "sigs.k8s.io/json"
	kubeyaml "sigs.k8s.io/yaml"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/files"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/lazyregexp"
)

// content is the content of a file.
type content struct {
	data     []byte // empty if there is no file to write
	objects  []backends.Object
	resource bool // it is YAML with only Kubernetes objects

	plaintext []string // the names of Secrets in it
	// of its objects with ciphertext that no one decrypts; without positions
	encrypted []diag.Diagnostic
}

// content checks that the output matches its content type, and adds kalypso's label and
// annotation to the Kubernetes objects in it.
func (o *output) content(a *backends.Assignment) (content, *diag.Diagnostic) {
	switch o.contentType {
	case "text":
		return content{data: o.text}, nil
	case "json":
		return o.json(a)
	case "sh":
		return content{data: o.text}, o.shell()
	case "yaml":
		return o.yaml(a)
	}
	d := o.problem("the template of %s has the content type %s, and there are yaml, json, sh and text",
		o.path, o.contentType).
		Hinting("text is for what kalypso does not know")
	return content{}, &d
}

func (o *output) json(a *backends.Assignment) (content, *diag.Diagnostic) {
	var v model.Value
	if err := json.Unmarshal(o.text, &v); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return content{},
				o.broken("JSON", 1+bytes.Count(o.text[:max(int(syntax.Offset)-1, 0)], []byte("\n")),
					err.Error())
		}
		return content{}, o.broken("JSON", 1, err.Error())
	}
	var whatever any
	if twice, err := strictjson.UnmarshalStrict(o.text, &whatever); err != nil || len(twice) > 0 {
		return content{}, o.broken("JSON", 0, errors.Join(append(twice, err)...).Error())
	}
	t, err := kubernetes.Trace(a, v)
	if err != nil {
		return content{}, o.broken("Kubernetes object", 0, err.Error())
	}
	if t.Objects == nil {
		return content{data: o.text}, nil
	}
	data, err := files.JSON(t.Value)
	if err != nil {
		return content{}, o.broken("JSON", 0, err.Error())
	}
	return content{data: data, objects: t.Objects, plaintext: kubernetes.PlainSecrets(v),
		encrypted: kubernetes.Encrypted(a, v)}, nil
}

// broken returns the diagnostic of an output that does not match its content type. line is the line
// in the output, or 0 if it is not known. The diagnostic also names the line of the template that
// wrote it.
func (o *output) broken(what string, line int, why string) *diag.Diagnostic {
	where := ""
	if line > 0 {
		where = fmt.Sprintf(", in line %d", line)
		if from := o.origin(o.beginning(line)); from > 0 {
			where += fmt.Sprintf(" from line %d of the template", from)
		}
	}
	d := o.problem("the template of %s makes what is no %s%s: %s", o.path, what, where, why)
	switch {
	case strings.Contains(why, "quote it"):
		d = d.Hinting("quote the value in the template, write it with quote or toYaml, or a mapping of " +
			"strings with stringify")
	case strings.Contains(why, ", which is no "):
		d = d.Hinting(
			"write a value of the type that API servers read there, or give the file the content type text")
	case what == "YAML" || what == "JSON":
		d = d.Hinting("write values with toYaml, toJson or quote, or give the file the content type text")
	}
	return &d
}

// beginning returns the offset of the first character of a line of the output.
func (o *output) beginning(line int) int {
	at := 0
	for ; line > 1; line-- {
		next := bytes.IndexByte(o.text[at:], '\n')
		if next < 0 {
			break
		}
		at += next + 1
	}
	for at < len(o.text) && o.text[at] == ' ' {
		at++
	}
	return at
}

// numbered matches the line number in the messages of YAML readers. They count lines from the
// beginning of their input.
var numbered = lazyregexp.New(`line (\d+): `)

// parser matches the messages of go.yaml.in/yaml/v2 for failures of its parser. They name the line
// before the failure: its parser counts lines from 0, and its scanner counts them from 1.
var parser = lazyregexp.New(
	`did not find expected (',' or '[\]}]'|'-' indicator|<document start>|key|node content)|found (duplicate %|incompatible YAML|undefined tag)`)

// lineIn returns the line that a message names, and the message without it.
func lineIn(message string) (line int, rest string) {
	message = strings.TrimPrefix(message, "error converting YAML to JSON: ")
	message = strings.TrimPrefix(message, "yaml: ")
	message = strings.TrimPrefix(message, "unmarshal errors:\n  ")
	message, _, _ = strings.Cut(message, "\n")
	m := numbered.FindStringSubmatchIndex(message)
	if m == nil {
		return 0, message
	}
	line, _ = strconv.Atoi(message[m[2]:m[3]])
	if parser.MatchString(message) {
		line++
	}
	return line, message[:m[0]] + message[m[1]:]
}

// yaml reads every document as API servers do (sigs.k8s.io/yaml), and leaves out empty
// documents. It writes Kubernetes objects again, so that every reader reads them the same
// way. Other documents stay as the template wrote them, because their readers are not known.
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

// blank are the characters of YAML without a meaning. Other white space of Unicode is text.
const blank = " \t\r\n"

// split splits a stream at its markers, which are always at the beginning of a line (YAML 1.2.2,
// 9.1.2). If text follows a marker in its line, split replaces the marker with white space, which
// changes nothing.
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

// first returns the number of the document's first line that is not blank or a comment.
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

// read returns the document's value, or null for an empty document. It returns an error for a
// duplicate key, and for a text that another reader would split into several documents.
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
		return fail(fmt.Errorf(
			"line %d: there is more than one document, and no line of --- between them", 1))
	}
	if len(text) > maxOutput {
		return fail(fmt.Errorf("its anchors make more than %s of it", mebibytes(maxOutput)))
	}
	if err := v.UnmarshalJSON(text); err != nil {
		return fail(err)
	}
	return v, 0, nil
}
