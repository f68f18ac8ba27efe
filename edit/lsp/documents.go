package lsp

import (
	"maps"

	"github.com/kalypso-io/kalypso/edit/shown"
)

// document is a file that is open in the editor. It does not change.
type document struct {
	uri     string
	version int
	text    text
	shown   *shown.Text // what CUE's server sees of it
	there   text        // that, with its lines
}

// newDocument returns a document of a platform, or of something else.
func newDocument(uri string, version int, t text, ofPlatform bool) *document {
	d := &document{uri: uri, version: version, text: t, shown: shown.Plain(t.string), there: t}
	if ofPlatform {
		d.shown = shown.Of(t.string)
		d.there = newText(d.shown.String())
	}
	return d
}

// documents are those that are open, by their canonical URIs. A map does not change once it
// was made.
type documents map[string]*document

// at returns the document of a URI, or nil.
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
