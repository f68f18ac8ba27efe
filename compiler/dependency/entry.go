package dependency

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kalypso-io/kalypso/internal/lazyregexp"
	"github.com/kalypso-io/kalypso/internal/spelling"
)

// texts are the text fields of an entry.
func (e *Entry) texts() map[string]*string {
	return map[string]*string{
		"kind": (*string)(&e.Kind), "url": &e.URL, "chart": &e.Chart,
		"branch": &e.Branch, "tag": &e.Tag, "semver": &e.Semver, "commit": &e.Commit,
		"version": &e.Version, "digest": &e.Digest,
		"revision": &e.Revision, "content": (*string)(&e.Content),
	}
}

// fieldNames are all fields of an entry, in the file's order.
var fieldNames = []string{"kind", "url", "chart", "branch", "tag", "semver", "commit", "version",
	"digest", "revision", "content", "size"}

// entry reads an entry, and reports all its errors.
func (r *reader) entry(v value) (Entry, bool) {
	var e Entry
	fields, ok := r.object(v, "a source")
	if !ok {
		return e, false
	}
	before, texts := len(r.diagnostics), e.texts()
	for _, name := range v.names {
		f := fields[name.text]
		switch text, isText := texts[name.text]; {
		case name.text == "size":
			size, err := strconv.ParseInt(f.text, 10, 64)
			if f.kind != '0' || err != nil || size < 0 || size > MaxSize {
				r.report(f.offset, "size is not a number of bytes", hintRelock)
			}
			e.Size = size
		case !isText:
			hint := spelling.DidYouMean(name.text, fieldNames) + "; otherwise " + hintRelock
			r.report(name.offset, fmt.Sprintf("a source has no field %q", name.text), hint)
		case f.kind != '"' || !isPrintable(f.text):
			r.report(f.offset, name.text+" is not a text of one line", hintRelock)
		default:
			*text = f.text
		}
	}
	if len(r.diagnostics) == before {
		r.check(v, fields, e)
	}
	return e, len(r.diagnostics) == before
}

// longest is the maximal length of a text, in bytes.
const longest = 4096

func isPrintable(s string) bool {
	return len(s) <= longest &&
		!strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || !strconv.IsPrint(c) })
}

// asks are the fields of each kind of source that select the content.
var asks = map[Kind][]string{
	Git:    {"branch", "tag", "semver", "commit"},
	Chart:  {"version"},
	OCI:    {"tag", "semver", "digest"},
	Module: {"version"},
}

// check reports fields of an entry that contradict each other.
func (r *reader) check(v value, fields map[string]value, e Entry) {
	at := func(name string) int {
		if f, ok := fields[name]; ok {
			return f.offset
		}
		return v.offset
	}
	allowed, known := asks[e.Kind]
	if !known {
		r.report(at("kind"), fmt.Sprintf("kind is %q, and not git, chart, oci or module", e.Kind),
			hintRelock)
		return
	}
	for _, f := range e.revisionFields() {
		if !slices.Contains(allowed, f.name) {
			r.report(at(f.name), fmt.Sprintf("a source of the kind %s has no %s", e.Kind, f.name),
				hintRelock)
		}
	}
	switch isOCI := strings.HasPrefix(e.URL, "oci://"); {
	case e.URL == "":
		r.report(at("url"), "a source has no url", hintRelock)
	case e.Kind == OCI && !isOCI:
		r.report(at("url"), "the url of an OCI artifact does not begin with oci://", hintRelock)
	case e.Kind == Chart && (e.Chart != "") == isOCI, e.Kind != Chart && e.Chart != "":
		r.report(at("chart"), "chart is the name of a chart of a chart repository, and of nothing else",
			hintRelock)
	case len(e.revisionFields()) != 1:
		r.report(v.offset, fmt.Sprintf("a source of the kind %s has not exactly one of: %s", e.Kind,
			strings.Join(allowed, ", ")), hintRelock)
	}
	if !e.soundRevision() {
		r.report(at("revision"), "revision is not "+revisions[e.Kind].what, hintRelock)
	}
	if exact := exactOf(e.Source); exact != "" && exact != e.Revision {
		r.report(at("revision"), "revision is not what is asked for, "+exact, hintRelock)
	}
	if !e.Content.Valid() {
		r.report(at("content"), "content is not sha256: and 64 hexadecimal digits", hintRelock)
	}
}

// exactOf returns the only revision that a source can have; "" if it may have any.
func exactOf(s Source) string {
	switch s.Kind {
	case Git:
		return s.Commit
	case OCI:
		return s.Digest
	case Module:
		return s.Version
	}
	return ""
}

// revisions are the descriptions of the revision of each kind.
var revisions = map[Kind]struct {
	pattern lazyregexp.Regexp
	what    string
}{
	Git:    {lazyregexp.New(`^[0-9a-f]{40}([0-9a-f]{24})?$`), "the full id of a commit"},
	Chart:  {lazyregexp.New(`^v?[0-9][0-9A-Za-z.+_-]*$`), "the version of a chart"},
	OCI:    {lazyregexp.New(`^sha256:[0-9a-f]{64}$`), "sha256: and 64 hexadecimal digits"},
	Module: {lazyregexp.New(`^v[0-9]+\.[0-9]+\.[0-9]+[0-9A-Za-z.+-]*$`), "the version of a module"},
}

func (e *Entry) soundRevision() bool { return revisions[e.Kind].pattern.MatchString(e.Revision) }
