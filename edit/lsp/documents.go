package lsp

import (
	"bytes"
	"encoding/json"
	"maps"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kalypso-io/kalypso/edit/shown"
)

// document is an open file in the editor. It is immutable.
type document struct {
	uri     string
	version int
	text    text
	shown   *shown.Text // the text for CUE's server
	there   text        // the same text, with its lines
}

// newDocument returns a document of a platform, or of another module.
func newDocument(uri string, version int, t text, ofPlatform bool) *document {
	d := &document{uri: uri, version: version, text: t, shown: shown.Plain(t.string), there: t}
	if ofPlatform {
		d.shown = shown.Of(t.string)
		d.there = newText(d.shown.String())
	}
	return d
}

// documents are the open documents, by their canonical URIs. A map does not change after it was
// made.
type documents map[string]*document

// at returns the document with a URI, or nil.
func (ds documents) at(uri string) *document { return ds[canonical(uri)] }

func (ds documents) with(d *document) documents {
	out := maps.Clone(ds)
	if out == nil {
		out = documents{}
	}
	out[canonical(d.uri)] = d
	return out
}

func (ds documents) without(uri string) documents {
	out := maps.Clone(ds)
	delete(out, canonical(uri))
	return out
}

// text is a text with the offsets of its lines. It is immutable.
type text struct {
	string
	lines []int // offsets
}

func newText(s string) text {
	lines := []int{0}
	for i := range len(s) {
		if s[i] == '\n' {
			lines = append(lines, i+1)
		}
	}
	return text{s, lines}
}

// line returns a line, including its line break.
func (t text) line(n int) string {
	if n+1 < len(t.lines) {
		return t.string[t.lines[n]:t.lines[n+1]]
	}
	return t.string[t.lines[n]:]
}

// offset returns the offset of a position. For a position beyond the end of its line or of the
// text, it returns that end, as the protocol requires.
func (t text) offset(p position) int {
	if p.Line < 0 {
		return 0
	}
	if p.Line >= len(t.lines) {
		return len(t.string)
	}
	line := strings.TrimRight(t.line(p.Line), "\r\n")
	units, i := 0, 0
	for i < len(line) && units < p.Character {
		r, size := utf8.DecodeRuneInString(line[i:])
		units += unitsOf(r)
		i += size
	}
	return t.lines[p.Line] + i
}

// position returns the position of an offset.
func (t text) position(offset int) position {
	offset = min(max(offset, 0), len(t.string))
	line := sort.SearchInts(t.lines, offset+1) - 1
	units := 0
	for _, r := range t.string[t.lines[line]:offset] {
		units += unitsOf(r)
	}
	return position{line, units}
}

func (t text) span(start, end int) span { return span{t.position(start), t.position(end)} }

// wordEnd returns the end of the word or the string that begins at an offset. For other text,
// it returns the end of the first character.
func (t text) wordEnd(offset int) int {
	rest := t.line(t.position(offset).Line)
	rest = rest[min(offset-t.lines[t.position(offset).Line], len(rest)):]
	if strings.HasPrefix(rest, `"`) {
		if end := strings.IndexAny(rest[1:], "\"\n"); end >= 0 && rest[end+1] == '"' {
			return offset + end + 2
		}
	}
	isWord := func(r rune) bool {
		return r == '_' || r == '#' || r == '$' || unicode.IsLetter(r) || unicode.IsDigit(r)
	}
	end := strings.IndexFunc(rest, func(r rune) bool { return !isWord(r) })
	if end < 0 {
		end = len(rest)
	}
	if end == 0 && strings.Trim(rest, "\r\n") != "" {
		_, end = utf8.DecodeRuneInString(rest)
	}
	return offset + end
}

// unitsOf returns the number of UTF-16 code units of a character.
func unitsOf(r rune) int {
	if r > 0xFFFF {
		return 2
	}
	return 1
}

// change returns the text after a change.
func (t text) change(c change) text {
	if c.Range == nil {
		return newText(c.Text)
	}
	start, end := t.offset(c.Range.Start), t.offset(c.Range.End)
	return newText(t.string[:start] + c.Text + t.string[max(start, end):])
}

// translation rewrites the positions in the parameters of requests to CUE's server, and in its
// answers, because the server sees a different text of the documents. It rewrites any JSON, so
// that it only needs to know the protocol's names of files and places.
type translation struct {
	documents documents
	toServer  bool
}

// toServer returns parameters in the form for CUE's server.
func toServer(ds documents, params json.RawMessage) (json.RawMessage, error) {
	out, _, err := translation{ds, true}.raw(params, "")
	return out, err
}

// toEditor returns an answer of CUE's server for the editor. It removes the parts about text
// that is not in the documents.
func toEditor(ds documents, answer json.RawMessage, uri string) (json.RawMessage, error) {
	out, ok, err := translation{ds, false}.raw(answer, uri)
	if !ok {
		return json.RawMessage("null"), err
	}
	return out, err
}

func (t translation) raw(data json.RawMessage, uri string) (json.RawMessage, bool, error) {
	if len(data) == 0 {
		return data, true, nil
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, false, err
	}
	v, ok := t.value(v, uri)
	out, err := json.Marshal(v)
	return out, ok, err
}

// value translates a value to the other side. It returns false if no part of it exists there.
// It is about the document uri, unless it names another one.
func (t translation) value(v any, uri string) (any, bool) {
	switch v := v.(type) {
	case []any:
		return t.all(v, uri), true
	case map[string]any:
		return t.object(v, uri)
	}
	return v, true
}

func (t translation) object(o map[string]any, uri string) (any, bool) {
	uri = uriIn(o, uri)
	if p, ok := positionOf(o); ok {
		return t.position(p, uri)
	}
	if s, ok := spanOf(o); ok {
		start, ok := t.position(s.Start, uri)
		end, also := t.position(s.End, uri)
		return map[string]any{"start": start, "end": end}, ok && also
	}
	if o["label"] == shown.Schema { // a completion
		return nil, false
	}
	out := maps.Clone(o)
	for key, v := range o {
		about := uri
		if key == "targetRange" || key == "targetSelectionRange" {
			about, _ = o["targetUri"].(string)
		}
		if changes, ok := v.(map[string]any); ok && key == "changes" {
			var all bool
			if out[key], all = t.changes(changes); !all {
				return nil, false
			}
			continue
		}
		translated, ok := t.value(v, about)
		switch {
		case ok && key == "range" && o["newText"] != nil:
			ok = t.exact(v, uri)
		case key == "edits" || key == "documentChanges": // either all of them or none
			ok = size(translated) == size(v)
		}
		switch {
		case ok:
			out[key] = translated
		case key == "range" && o["contents"] != nil: // of a hover, which is valid without a range
			delete(out, key)
		default:
			return nil, false
		}
	}
	if v, ok := out["version"].(json.Number); ok && v == "0" && t.documents.at(uri) == nil &&
		!t.toServer {
		out["version"] = nil // CUE's server has no version of a closed document
	}
	return out, true
}

// all translates a list to the other side, without the elements that do not exist there.
func (t translation) all(list []any, uri string) []any {
	out := make([]any, 0, len(list))
	for _, e := range list {
		if e, ok := t.value(e, uri); ok {
			out = append(out, e)
		}
	}
	return out
}

func size(v any) int {
	list, _ := v.([]any)
	return len(list)
}

// changes returns edits by the URIs of their documents. It returns false if some edits are
// impossible.
func (t translation) changes(changes map[string]any) (map[string]any, bool) {
	out := map[string]any{}
	for uri, edits := range changes {
		translated, _ := t.value(edits, uri)
		if size(translated) != size(edits) {
			return nil, false
		}
		out[uri] = translated
	}
	return out, true
}

func (t translation) position(p position, uri string) (any, bool) {
	d := t.documents.at(uri)
	if d == nil {
		return p, true
	}
	if t.toServer {
		return d.there.position(d.shown.Shown(d.text.offset(p))), true
	}
	offset, ok := d.shown.Real(d.there.offset(p))
	return d.text.position(offset), ok
}

// exact reports whether a range of the server's text is a range of the document, without
// inserted text in between. Only then can it be replaced.
func (t translation) exact(v any, uri string) bool {
	d := t.documents.at(uri)
	o, _ := v.(map[string]any)
	s, ok := spanOf(o)
	if d == nil || !ok || t.toServer {
		return true
	}
	_, _, ok = d.shown.RealRange(d.there.offset(s.Start), d.there.offset(s.End))
	return ok
}

// uriIn returns the URI of the document of an object, or otherwise if it names none.
func uriIn(o map[string]any, otherwise string) string {
	if uri, ok := o["uri"].(string); ok {
		return uri
	}
	if d, ok := o["textDocument"].(map[string]any); ok {
		if uri, ok := d["uri"].(string); ok {
			return uri
		}
	}
	return otherwise
}

func positionOf(o map[string]any) (p position, ok bool) {
	line, isLine := o["line"].(json.Number)
	character, isCharacter := o["character"].(json.Number)
	if !isLine || !isCharacter {
		return p, false
	}
	l, err := line.Int64()
	c, also := character.Int64()
	return position{int(l), int(c)}, err == nil && also == nil
}

func spanOf(o map[string]any) (s span, ok bool) {
	start, isStart := o["start"].(map[string]any)
	end, isEnd := o["end"].(map[string]any)
	if !isStart || !isEnd {
		return s, false
	}
	s.Start, isStart = positionOf(start)
	s.End, isEnd = positionOf(end)
	return s, isStart && isEnd
}
