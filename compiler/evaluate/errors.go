package evaluate

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"cuelang.org/go/cue/errors"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// loadErrors translates what makes a whole package unreadable; code is for the
// errors that say nothing more exact of themselves.
func (p *places) loadErrors(err error, code diag.Code) []diag.Diagnostic {
	var ds []diag.Diagnostic
	for _, e := range errors.Errors(err) {
		message := strings.ReplaceAll(firstLine(text(e)), p.root+string(filepath.Separator), "")
		d := diag.New(code, message)
		switch {
		case strings.Contains(message, "cannot find package"), strings.Contains(message, "cannot find module"),
			strings.Contains(message, "import failed"), strings.Contains(message, "no dependency found"):
			d = diag.New(diag.Import, message).
				Hinting("fetch the module with `cue mod tidy`, or correct the import path; a build itself never reaches the network")
		case strings.Contains(message, "not found"), strings.Contains(message, "not used"):
			d = diag.New(diag.Compile, message)
		}
		for _, at := range p.all(errors.Positions(e)) {
			d = d.In(at, "")
		}
		if len(d.Sites) == 0 {
			d = d.In(model.Position{File: "cue.mod/module.cue", Line: 1, Column: 1}, "")
		}
		if !slices.ContainsFunc(ds, func(o diag.Diagnostic) bool { return o.Message == d.Message && slices.Equal(o.Sites, d.Sites) }) {
			ds = append(ds, d)
		}
	}
	return ds
}

// text is an error's message, with those that it wraps, and without the path
// that CUE puts before it.
func text(e errors.Error) string {
	message := e.Error()
	if path := strings.Join(e.Path(), "."); path != "" {
		message = strings.TrimPrefix(message, path+": ")
	}
	return message
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return strings.TrimSuffix(strings.TrimSpace(s), ":")
}

// problem is all that CUE says of one path.
type problem struct {
	path     []string
	messages []string
	at       []model.Position
}

var emptyDisjunction = regexp.MustCompile(`^\d+ errors in empty disjunction`)

// problems groups an error by path, and drops the lines that only announce others.
func (p *places) problems(err error) []problem {
	var out []problem
	for _, e := range errors.Errors(err) {
		message := firstLine(text(e))
		i := slices.IndexFunc(out, func(o problem) bool { return slices.Equal(o.path, e.Path()) })
		if i < 0 {
			out = append(out, problem{path: e.Path()})
			i = len(out) - 1
		}
		if !emptyDisjunction.MatchString(message) && !slices.Contains(out[i].messages, message) {
			out[i].messages = append(out[i].messages, message)
		}
		for _, at := range p.all(errors.Positions(e)) {
			if !slices.Contains(out[i].at, at) {
				out[i].at = append(out[i].at, at)
			}
		}
	}
	return slices.DeleteFunc(out, func(o problem) bool { return len(o.messages) == 0 })
}

// diagnostic says what a problem inside an entity is. s is the shape of the
// value that the path names, nil where the schema says nothing of it, and
// parent that of the struct around it.
func (o problem) diagnostic(s, parent *shape) diag.Diagnostic {
	message := o.telling()
	name := o.path[len(o.path)-1]
	var d diag.Diagnostic
	switch {
	case strings.Contains(message, "field not allowed"):
		d = unknownField(name, parent)
	case strings.Contains(message, "required but not present"):
		d = diag.New(diag.Missing, "required field "+name+" is missing")
	case strings.Contains(message, "incomplete value"):
		d = diag.New(diag.NotConcrete, name+" has no value: "+strings.TrimPrefix(message, "incomplete value "))
	case s != nil && len(s.enum) > 0:
		d = diag.New(diag.NotAllowed, fmt.Sprintf("%s cannot be %s", name, o.given(s))).
			Hinting("allowed: " + strings.Join(s.enum, ", "))
	case strings.Contains(message, "conflicting values") && len(o.at) > 1:
		d = diag.New(diag.Conflict, plain(message)+" for "+name)
	default:
		d = diag.New(diag.WrongValue, name+": "+plain(message)).Hinting(definitionHint(message))
	}
	for _, at := range o.at {
		d = d.In(at, "")
	}
	return d
}

// telling is the message that says most: of a value with a default, CUE also
// says that the value is not the default.
func (o problem) telling() string {
	for _, message := range o.messages {
		if strings.Contains(message, "out of bound") || strings.Contains(message, "mismatched types") {
			return message
		}
	}
	return o.messages[0]
}

func unknownField(name string, parent *shape) diag.Diagnostic {
	d := diag.New(diag.UnknownField, "unknown field "+name)
	if parent != nil {
		d = d.Hinting(diag.DidYouMean(name, parent.names()))
	}
	return d
}

var conflicting = regexp.MustCompile(`conflicting values ("(?:[^"\\]|\\.)*"|\S+) and (.+?)( \(mismatched types .*)?$`)

// given finds the value that the user gave, which is in every line of a failed
// disjunction, beside an alternative of the schema.
func (o problem) given(s *shape) string {
	for _, message := range o.messages {
		m := conflicting.FindStringSubmatch(message)
		if m == nil {
			continue
		}
		for _, side := range m[1:3] {
			if !slices.Contains(s.enum, strings.Trim(side, `"`)) && !strings.HasPrefix(side, "{") && !strings.HasPrefix(side, "=~") {
				return side
			}
		}
	}
	return "this"
}

// plain names the schema's patterns instead of writing them out.
func plain(message string) string {
	for _, d := range patterns() {
		message = strings.ReplaceAll(message, d.pattern, d.name)
	}
	message = strings.ReplaceAll(message, "(out of bound ", "(does not satisfy ")
	const longest = 300
	if r := []rune(message); len(r) > longest {
		message = string(r[:longest]) + "…"
	}
	return message
}

// definitionHint explains the pattern that a message mentions.
func definitionHint(message string) string {
	for _, d := range patterns() {
		if strings.Contains(message, d.pattern) {
			return d.doc
		}
	}
	return ""
}
