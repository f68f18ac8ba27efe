// Package problem translates CUE's errors about values into diagnostics that name the field,
// what was given and what the schema wants.
package problem

import (
	"slices"
	"strings"

	"cuelang.org/go/cue/errors"

	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/cuevalue"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/loader"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/lazyregexp"
)

// JoinPath writes the path of a CUE error as model.Ref does.
func JoinPath(path []string) string {
	s := ""
	for _, name := range path {
		if isIndex(name) {
			s += "[" + name + "]"
			continue
		}
		s = model.JoinPath(s, model.Label(strings.Trim(name, `"`)))
	}
	return s
}

// isIndex says whether an element of a path of CUE's is the index of a list.
func isIndex(name string) bool { return name != "" && strings.Trim(name, "0123456789") == "" }

// Problem has all errors of CUE about one path.
type Problem struct {
	Path     []string
	Messages []string
	At       []model.Position
	places   *loader.Places
}

// Contains says whether another problem is inside the value that this one is
// about.
func (o Problem) Contains(other Problem) bool {
	return len(other.Path) > len(o.Path) && slices.Equal(other.Path[:len(o.Path)], o.Path)
}

// Alternatives says whether the problem is that a struct is none of the
// alternatives that are no structs, or a list not the struct: with an error inside
// it, it is not the struct or list among them either, and CUE blames the others.
func (o Problem) Alternatives() bool {
	return slices.ContainsFunc(o.Messages, func(m string) bool {
		return strings.Contains(m, "mismatched types struct and ") || strings.Contains(m, "mismatched types list and struct")
	})
}

var emptyDisjunction = lazyregexp.New(`^\d+ errors in empty disjunction`)

// In groups the errors that one of CUE consists of by their paths, and drops those that
// only announce others.
func In(p *loader.Places, err error) []Problem {
	var out []Problem
	numbers := map[string]int{} // by path
	for _, e := range errors.Errors(err) {
		message := cuevalue.FirstLine(cuevalue.Text(e))
		path := e.Path()
		key := strings.Join(path, "\x00")
		i, seen := numbers[key]
		if !seen {
			out = append(out, Problem{Path: path, places: p})
			i = len(out) - 1
			numbers[key] = i
		}
		if !emptyDisjunction.MatchString(message) && !slices.Contains(out[i].Messages, message) {
			out[i].Messages = append(out[i].Messages, message)
		}
		for _, at := range p.All(errors.Positions(e)) {
			if !slices.Contains(out[i].At, at) {
				out[i].At = append(out[i].At, at)
			}
		}
	}
	for i := range out {
		out[i].At = p.ComprehensionsLast(out[i].At)
	}
	return slices.DeleteFunc(out, func(o Problem) bool { return len(o.Messages) == 0 })
}

// Locate returns the problem, by the fields that it is written in where CUE gives no
// path: it does not for the error _|_.
func Locate(p *loader.Places, o Problem) (out []Problem) {
	if len(o.Path) > 0 || len(o.At) == 0 {
		return []Problem{o}
	}
	for _, at := range o.At {
		path := p.PathAt(at)
		i := slices.IndexFunc(out, func(o Problem) bool { return slices.Equal(o.Path, path) })
		if i < 0 {
			i = len(out)
			out = append(out, Problem{Path: path, Messages: o.Messages, places: o.places})
		}
		out[i].At = append(out[i].At, at)
	}
	return out
}
