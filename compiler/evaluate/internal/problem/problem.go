// Package problem translates CUE's errors about values into diagnostics. A diagnostic names the
// field, the given value, and the value that the schema requires.
package problem

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue/errors"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/cuevalue"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/loader"
	"github.com/kalypso-io/kalypso/compiler/evaluate/shape"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/lazyregexp"
	"github.com/kalypso-io/kalypso/internal/spelling"
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

// isIndex reports whether an element of a CUE path is the index of a list.
func isIndex(name string) bool { return name != "" && strings.Trim(name, "0123456789") == "" }

// Problem is a problem at one path, with all of CUE's errors about it.
type Problem struct {
	Path     []string
	Messages []string
	At       []model.Position
	places   *loader.Places
}

// Contains reports whether another problem is inside the value of this problem.
func (o Problem) Contains(other Problem) bool {
	return len(other.Path) > len(o.Path) && slices.Equal(other.Path[:len(o.Path)], o.Path)
}

// Alternatives reports whether CUE compares a struct with alternatives of other types, or a
// list with a struct. An error inside the struct or the list excludes the alternative of its
// own type, and CUE then blames the others.
func (o Problem) Alternatives() bool {
	return slices.ContainsFunc(o.Messages, func(m string) bool {
		return strings.Contains(m, "mismatched types struct and ") ||
			strings.Contains(m, "mismatched types list and struct")
	})
}

var emptyDisjunction = lazyregexp.New(`^\d+ errors in empty disjunction`)

// In splits an error of CUE into its parts, and groups them by their paths. It drops errors
// that only announce others.
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

// Locate returns the problem, split by the fields at its positions if CUE reports no path. CUE
// reports none for the error _|_.
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

// credentialsIn reports credentials in addresses that CUE's messages repeat.
func (o Problem) credentialsIn(s *shape.Shape) (d diag.Diagnostic, found bool) {
	if s == nil || s.Address == "" {
		return d, false
	}
	for _, message := range o.Messages {
		values := outside.FindStringSubmatch(message)
		if values == nil {
			values = conflicting.FindStringSubmatch(message)
		}
		for _, text := range values[min(1, len(values)):] {
			if address, err := strconv.Unquote(text); err == nil && !found {
				d, found = s.Credentials(address, o.name())
			}
		}
	}
	return d, found
}

// Diagnostic returns the diagnostic of a problem inside an entity. s is the shape of the value
// that the path names; nil if the schema does not describe it. parent is the shape of the
// struct around it.
func (o Problem) Diagnostic(s, parent *shape.Shape) diag.Diagnostic {
	message := o.Telling()
	name := o.name()
	d, found := o.credentialsIn(s)
	switch {
	case found:
	case strings.Contains(message, "field not allowed"):
		d = shape.UnknownField(name, parent)
	case strings.Contains(message, "required but not present"):
		d = shape.MissingField(name, parent)
	case strings.Contains(message, "incomplete value"):
		constraint := shape.Plain(strings.TrimPrefix(message, "incomplete value "))
		if strings.HasPrefix(constraint, "#") {
			constraint = "of the schema"
		}
		d = valueless(name, constraint, s)
	case s != nil && len(s.Enum) > 0:
		d = o.notAllowed(s)
	case strings.HasPrefix(message, "conflicting values") && len(o.At) > 1 && len(o.Path) > 0 &&
		!schemaType.MatchString(message) && !o.breaksType(message):
		d = diag.New(diag.Conflict, mismatch.ReplaceAllString(shape.Plain(message), "")+" for "+name).
			Hinting("keep one of them: all files of the package unify, and none wins")
	default:
		d = o.wrongValue(s, parent)
	}
	d = d.InEach(o.givenFirst()...)
	return d
}

// valueless returns the diagnostic that a field has only a constraint, and no value. If the
// schema has a default for the field, the platform excludes it. It does so with a constraint,
// or with another default, because CUE takes neither of two defaults.
func valueless(name, constraint string, s *shape.Shape) diag.Diagnostic {
	d := diag.New(diag.NotConcrete,
		name+" has no value, only the constraint "+constraint).Hinting("give it a value")
	if s == nil || s.Usual == "" {
		return d
	}
	alternatives := strings.Split(constraint, " | ")
	if !slices.Contains(alternatives, s.Usual) {
		d.Message += ", which the schema's default " + s.Usual + " does not meet"
		return d
	}
	d.Message = fmt.Sprintf("%s has no value: the schema has the default %s as well, and of several "+
		"defaults CUE takes none", name, s.Usual)
	return d.Hinting(fmt.Sprintf(
		`give it a value, without *; where one entity differs, by a condition, as in [if Name == "one" {%s}, %s][0] under [Name=_]`, s.Usual, alternatives[0]))
}

// name returns the name of the problem's subject in messages.
func (o Problem) name() string {
	if len(o.Path) == 0 {
		return "the top level"
	}
	i := len(o.Path) - 1
	for i > 0 && isIndex(o.Path[i]) {
		i--
	}
	return JoinPath(o.Path[i:])
}

var (
	mismatch = lazyregexp.New(` \(mismatched types (\S+) and (\S+)\)$`)
	// schemaType matches a conflict with a type that occurs only in the schema.
	schemaType = lazyregexp.New(` and (\{\.\.\.\}|\[\.\.\..*\]|\{\[string\]:.*\}) \(`)
	outside    = lazyregexp.New(`(?s)^invalid value (.+) \((out of bound .+|does not satisfy .+)\)$`)
)

// wrongValue returns the diagnostic that a value has the wrong type, or breaks a constraint.
func (o Problem) wrongValue(s, parent *shape.Shape) diag.Diagnostic {
	message, name := o.Telling(), o.name()
	hint := ""
	switch {
	case s != nil && s.Is != "":
		hint = name + " is " + s.Is
	case parent != nil:
		hint = parent.Hint(name)
	}
	if m := mismatch.FindStringSubmatch(message); m != nil {
		return o.wrongType(m[1], m[2], s, hint)
	}
	if m := outside.FindStringSubmatch(message); m != nil {
		why := ""
		if hint == "" || s == nil || s.Is == "" {
			why = ": it must " + bound(strings.NewReplacer("out of bound ", "", "does not satisfy ",
				"").Replace(shape.Plain(m[2])))
		}
		if way := correction(m[1], m[2], s); way != "" {
			hint = strings.TrimSuffix(way+": "+hint, ": ")
		}
		return diag.New(diag.WrongValue, fmt.Sprintf("%s cannot be %s%s", name, m[1], why)).Hinting(hint)
	}
	if strings.HasPrefix(message, "incompatible list lengths (0 and ") {
		return diag.New(diag.WrongValue, name+" needs at least one element").Hinting(hint)
	}
	if dashed.MatchString(message) {
		return diag.New(diag.WrongValue,
			name+": a list stands between brackets, and its elements have no dashes").
			Hinting("write " + name + ": [a, b], and of structs [{…}, {…}]")
	}
	why, way := o.Reason()
	if strings.Contains(message, "undefined field: ") {
		hint = way
	}
	return diag.New(diag.WrongValue, name+": "+why).Hinting(hint)
}

// dashed matches CUE's error for an element of a YAML list, - "x".
var dashed = lazyregexp.New(`^invalid operation -.+ \(- (string|struct|bool|list|null)\)$`)

// wrongType returns the diagnostic that a value has the wrong type. hint is the schema's
// description of the value.
func (o Problem) wrongType(given, wanted string, s *shape.Shape, hint string) diag.Diagnostic {
	name := o.name()
	if len(o.Path) == 0 && given == "struct" {
		given, wanted = wanted, given // the struct contains the package's fields
	}
	scalar := conflicting.FindStringSubmatch(o.Telling())
	if scalar != nil {
		if isConstraint(scalar[1]) && !isConstraint(scalar[2]) && !strings.HasPrefix(scalar[2], "{") &&
			!strings.HasPrefix(scalar[2], "[") {
			scalar[1], scalar[2], given, wanted = scalar[2], scalar[1], wanted, given
		}
		if way := retyped(scalar[1], given, wanted, s); strings.HasPrefix(way, asString) && s != nil &&
			s.Is != "" && !meets(scalar[1], scalar[2]) {
			hint = "write a string: " + hint // another one, not this one
		} else if way != "" {
			hint = way
		}
		if len(o.At) > 1 && len(o.Path) > 0 && !isConstraint(scalar[2]) { // of a value inside
			name = scalar[1] + " in " + name
		}
	}
	if given == "list" && s != nil && s.Pattern != nil {
		hint = "write each by its name: " + o.name() + ": NAME: {…}"
	}
	if field := s.OnlyRequired(); wanted == "struct" && field != "" && scalar != nil {
		hint = strings.TrimSuffix(fmt.Sprintf("write %s: {%s: %s}; %s", o.name(), field, scalar[1], hint),
			"; ")
	}
	if given == "struct" && wanted == "list" {
		hint = strings.TrimSuffix(fmt.Sprintf("write %s: [{…}]; %s", o.name(), hint), "; ")
	}
	for _, at := range o.At {
		if url := o.places.UnquotedURL(at); given == "struct" && url != "" {
			hint = fmt.Sprintf("write it in quotes: %q", url)
		}
	}
	must := shape.Article(wanted)
	if s != nil && wanted == "struct" && len(s.Literal) > 0 {
		must += " or " + strings.Join(s.Literal, " or ")
	}
	if s != nil && s.Elem != nil && len(s.Fields) > 0 {
		must = "a struct or a list of them"
	}
	return diag.New(diag.WrongValue,
		fmt.Sprintf("%s must be %s, and is %s", name, must, shape.Article(given))).Hinting(hint)
}

// bound returns a constraint as the words after "must" in a message.
func bound(constraint string) string {
	if constraint == `!=""` {
		return "not be empty"
	}
	if pattern, ok := strings.CutPrefix(constraint, "=~"); ok {
		return "match " + pattern
	}
	return "be " + constraint
}

// Telling returns the most exact message. For a value with a default, CUE also reports that the
// value differs from the default. For a value with alternatives, CUE also reports that it does
// not have the types of the others.
func (o Problem) Telling() string {
	for _, says := range []string{"out of bound", "mismatched types"} {
		for _, message := range o.Messages {
			if strings.Contains(message, says) {
				return message
			}
		}
	}
	return o.Messages[0]
}

var conflicting = lazyregexp.New(
	`conflicting values ("(?:[^"\\]|\\.)*"|\S+) and (.+?)( \(mismatched types .*)?$`)

// given returns the value that the user gave. Every line of a failed disjunction has it,
// together with an alternative of the schema.
func (o Problem) given(s *shape.Shape) string {
	for _, message := range o.Messages {
		m := conflicting.FindStringSubmatch(message)
		if m == nil {
			continue
		}
		for _, side := range m[1:3] {
			if !slices.Contains(s.Enum, strings.Trim(side, `"`)) && !strings.HasPrefix(side, "{") &&
				!strings.HasPrefix(side, "=~") {
				return side
			}
		}
	}
	return "this"
}

// failed matches errors that remain when more values are given.
var failed = lazyregexp.New(`division by zero|index out of range|invalid operands`)

// Reason returns why CUE could not finish a value, in plain words, and a hint.
func (o Problem) Reason() (why, hint string) {
	message := strings.TrimPrefix(o.Telling(), "invalid interpolation: ")
	if name, ok := strings.CutPrefix(message, "undefined field: "); ok {
		if of, names := o.places.Members(o.At, name); of != "" {
			return fmt.Sprintf("package %s has no %s", of, name), spelling.DidYouMean(of+"."+name, names)
		}
		if near := spelling.Nearest(name, shape.FactNames()); near != "" {
			return "there is no field " + name, "did you mean " + near + "?"
		}
		if i := slices.IndexFunc(o.places.Labels(),
			func(label string) bool { return spelling.Misspelt(name, label) }); i >= 0 {
			return "there is no field " + name, "did you mean " + o.places.Labels()[i] + "?"
		}
		return "there is no field " + name, "correct the reference, or declare " + name
	}
	if name, ok := strings.CutPrefix(message, "cannot reference optional field: "); ok {
		return name + " may be absent", "give " + name + " a value, or use it only where it is " +
			"present: if " + name + " != _|_"
	}
	if of, ok := strings.CutPrefix(message, "unresolved disjunction "); ok {
		return "it may be any of " + shape.Plain(of), "choose one, or mark a default with *"
	}
	if message == "structural cycle" {
		return "it contains itself", "remove the reference"
	}
	if field, ok := strings.CutPrefix(message, "cycle with field: "); ok {
		return "it depends on itself, by way of " + field, "give one of the fields in the circle a value"
	}
	if message == "explicit error (_|_ literal) in source" {
		return "it is the error _|_", ""
	}
	if failed.MatchString(message) {
		return shape.Plain(message), ""
	}
	return shape.Plain(message), "give what it depends on a value"
}
