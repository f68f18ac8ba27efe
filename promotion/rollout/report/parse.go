package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/origin"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/rollout"
)

const (
	apiVersion = "kalypso.io/v1alpha1"
	kind       = "RolloutReport"
	maxText    = 64 << 10 // bytes of a string
)

// File is the content of a file of reports.
type File struct {
	Cluster string // "" if the file names none
	Commit  git.Hash
	Origin  origin.Origin // the origin of the cluster's folder, as far as the file names it
	Reports []Entry
}

// Entry is one report of a file.
type Entry struct {
	Assignment string
	State      rollout.State // Healthy, Progressing or Failed
	Message    string
	At         time.Time // the zero Time if the file has no time
}

// Parse parses a file's content, which need not be trusted. Unknown and duplicate fields
// are errors; its errors are Errors, for which file is used.
func Parse(file string, data []byte) (*File, error) {
	p := &parser{file: file, data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	f, err := p.parse()
	if err != nil {
		return nil, p.positioned(err)
	}
	return f, nil
}

// parser reads tokens, because only they have positions.
type parser struct {
	file string
	data []byte
	dec  *json.Decoder
	at   int64 // the beginning of the last token
}

// tokenError is an error in the last token.
type tokenError string

func (m tokenError) Error() string { return string(m) }

func wrong(format string, args ...any) error { return tokenError(fmt.Sprintf(format, args...)) }

func (p *parser) parse() (*File, error) {
	if !utf8.Valid(p.data) {
		for i := 0; i < len(p.data); {
			r, size := utf8.DecodeRune(p.data[i:])
			if r == utf8.RuneError && size == 1 {
				p.at = int64(i)
				return nil, wrong("is no UTF-8")
			}
			i += size
		}
	}
	f := &File{}
	var version, is, commit string
	fields := map[string]func() error{
		"apiVersion": p.oneOf(&version, apiVersion),
		"kind":       p.oneOf(&is, kind),
		"cluster":    p.text(&f.Cluster),
		"commit":     p.commit(&commit, &f.Commit),
		"repository": p.text(&f.Origin.Repository),
		"branch":     p.text(&f.Origin.Branch),
		"path":       p.text(&f.Origin.Path),
		"reports":    func() error { return p.array(func() error { return p.entry(f) }) },
	}
	if err := p.object(fields, "apiVersion", "kind", "commit", "reports"); err != nil {
		return nil, err
	}
	if _, err := p.token(); !errors.Is(err, io.EOF) {
		return nil, wrong("there is more after the end")
	}
	for _, text := range []*string{&f.Origin.Repository, &f.Origin.Branch, &f.Origin.Path} {
		*text = terminal.Line(*text)
	}
	if f.Origin.Path != "" {
		f.Origin.Path += "/" + origin.Any
	}
	f.Origin = f.Origin.Clean()
	return f, nil
}

func (p *parser) entry(f *File) error {
	var e Entry
	var state, at string
	fields := map[string]func() error{
		"assignment": p.text(&e.Assignment),
		"state": p.oneOf(&state, string(rollout.Healthy), string(rollout.Progressing),
			string(rollout.Failed)),
		"message": p.text(&e.Message),
		"at": func() (err error) {
			if err = p.text(&at)(); err == nil {
				if e.At, err = time.Parse(time.RFC3339, at); err != nil {
					return wrong("%.40q is no time as 2006-01-02T15:04:05Z", at)
				}
			}
			return err
		},
	}
	err := p.object(fields, "assignment", "state")
	e.State = rollout.State(state)
	f.Reports = append(f.Reports, e)
	return err
}

// object reads an object of some fields, each at most once, with the required ones.
func (p *parser) object(fields map[string]func() error, required ...string) error {
	if err := p.delimiter('{', "an object"); err != nil {
		return err
	}
	begin, seen := p.at, map[string]bool{}
	for p.dec.More() {
		token, err := p.token()
		if err != nil {
			return err
		}
		name, _ := token.(string) // names are strings
		read, known := fields[name]
		switch {
		case !known:
			return wrong("unknown field %.40q", name)
		case seen[name]:
			return wrong("field %s is here twice", name)
		}
		seen[name] = true
		if err := read(); err != nil {
			return err
		}
	}
	if _, err := p.token(); err != nil { // the end, or an error
		return err
	}
	for _, name := range required {
		if !seen[name] {
			p.at = begin
			return wrong("field %s is missing", name)
		}
	}
	return nil
}

func (p *parser) array(read func() error) error {
	if err := p.delimiter('[', "an array"); err != nil {
		return err
	}
	for p.dec.More() {
		if err := read(); err != nil {
			return err
		}
	}
	_, err := p.token()
	return err
}

func (p *parser) delimiter(want json.Delim, what string) error {
	token, err := p.token()
	if err == nil && token != want {
		err = wrong("expected %s", what)
	}
	return err
}

// text reads a string.
func (p *parser) text(into *string) func() error {
	return func() error {
		token, err := p.token()
		if err != nil {
			return err
		}
		text, is := token.(string)
		switch {
		case !is:
			return wrong("expected a string")
		case len(text) > maxText:
			return wrong("has more than %d bytes", maxText)
		}
		*into = text
		return nil
	}
}

// oneOf reads one of some strings.
func (p *parser) oneOf(into *string, allowed ...string) func() error {
	return func() error {
		if err := p.text(into)(); err != nil {
			return err
		}
		for _, a := range allowed {
			if *into == a {
				return nil
			}
		}
		return wrong("%.40q is not %s", *into, strings.Join(allowed, " or "))
	}
}

func (p *parser) commit(text *string, into *git.Hash) func() error {
	return func() error {
		if err := p.text(text)(); err != nil {
			return err
		}
		if *into = plumbing.NewHash(*text); !plumbing.IsHash(*text) || into.IsZero() {
			return wrong("%.40q is no id of a commit, in full", *text)
		}
		return nil
	}
}

// token reads the next token, and finds its position: after white space, and after the
// comma or colon that is not a token.
func (p *parser) token() (json.Token, error) {
	before := p.dec.InputOffset()
	p.at = before + int64(len(p.data[before:])-len(bytes.TrimLeft(p.data[before:], " \t\r\n,:")))
	return p.dec.Token()
}

// positioned returns an error with its place in the file.
func (p *parser) positioned(err error) error {
	at, problem := p.at, err.Error()
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		problem = "is no JSON: " + problem // its Offset may be outside of the file
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		at, problem = int64(len(p.data)), "ends too early"
	}
	before := p.data[:min(at, int64(len(p.data)))]
	line := bytes.Count(before, []byte("\n"))
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return &Error{At: model.Position{File: p.file, Line: line + 1, Column: column}, Problem: problem}
}
