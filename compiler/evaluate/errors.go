package evaluate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/errors"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// contains says whether another problem is inside the value that this one is
// about.
func (o problem) contains(other problem) bool {
	return len(other.path) > len(o.path) && slices.Equal(other.path[:len(o.path)], o.path)
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

// alternatives says whether the problem is that a struct is none of the
// alternatives that are no structs, or a list not the struct: with an error inside
// it, it is not the struct or list among them either, and CUE blames the others.
func (o problem) alternatives() bool {
	return slices.ContainsFunc(o.messages, func(m string) bool {
		return strings.Contains(m, "mismatched types struct and ") || strings.Contains(m, "mismatched types list and struct")
	})
}

var emptyDisjunction = regexp.MustCompile(`^\d+ errors in empty disjunction`)

// problemsIn groups an error by path, and drops the lines that only announce others.
func problemsIn(p *places, err error) []problem {
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

// locate returns the problem, by the fields that it is written in where CUE gives no
// path: it does not for the error _|_.
func locate(p *places, o problem) (out []problem) {
	if len(o.path) > 0 || len(o.at) == 0 {
		return []problem{o}
	}
	for _, at := range o.at {
		path := p.pathAt(at)
		i := slices.IndexFunc(out, func(o problem) bool { return slices.Equal(o.path, path) })
		if i < 0 {
			i = len(out)
			out = append(out, problem{path: path, messages: o.messages})
		}
		out[i].at = append(out[i].at, at)
	}
	return out
}

// pathAt returns the names of the fields around a position; nil for one at the top.
func (p *places) pathAt(at model.Position) (path []string) {
	for _, f := range p.files {
		if p.relative(f.Filename) != at.File {
			continue
		}
		ast.Walk(f, func(n ast.Node) bool {
			if field, isField := n.(*ast.Field); isField && p.contain(at, []ast.Node{field}) {
				if name, _, err := ast.LabelName(field.Label); err == nil {
					path = append(path, name)
				}
			}
			return true
		}, nil)
	}
	return path
}

// diagnostic says what a problem inside an entity is. s is the shape of the
// value that the path names, nil where the schema says nothing of it, and
// parent that of the struct around it.
func (o problem) diagnostic(s, parent *shape) diag.Diagnostic {
	message := o.telling()
	name := o.name()
	d, found := o.credentialsIn(s)
	switch {
	case found:
	case strings.Contains(message, "field not allowed"):
		d = unknownField(name, parent)
	case strings.Contains(message, "required but not present"):
		d = missingField(name, parent)
	case strings.Contains(message, "incomplete value"):
		constraint := plain(strings.TrimPrefix(message, "incomplete value "))
		if strings.HasPrefix(constraint, "#") {
			constraint = "of the schema"
		}
		d = valueless(name, constraint, s)
	case s != nil && len(s.enum) > 0:
		d = diag.New(diag.NotAllowed, fmt.Sprintf("%s cannot be %s", name, o.given(s))).Hinting("allowed: " + s.allowed())
	case strings.HasPrefix(message, "conflicting values") && len(o.at) > 1 && len(o.path) > 0 && !schemaType.MatchString(message):
		d = diag.New(diag.Conflict, mismatch.ReplaceAllString(plain(message), "")+" for "+name).
			Hinting("keep one of them: all files of the package unify, and none wins")
	default:
		d = o.wrongValue(s, parent)
	}
	for _, at := range o.at {
		d = d.In(at, "")
	}
	return d
}

// valueless says that a field has no value, only a constraint. Where the schema has a
// default, the platform excludes it: with another default, since CUE chooses between two
// for nobody, or with a constraint.
func valueless(name, constraint string, s *shape) diag.Diagnostic {
	d := diag.New(diag.NotConcrete, name+" has no value, only the constraint "+constraint).Hinting("give it a value")
	if s == nil || s.usual == "" {
		return d
	}
	alternatives := strings.Split(constraint, " | ")
	if !slices.Contains(alternatives, s.usual) {
		d.Message += ", which the schema's default " + s.usual + " does not meet"
		return d
	}
	d.Message = fmt.Sprintf("%s has no value: the schema has the default %s as well, and of several defaults CUE takes none", name, s.usual)
	return d.Hinting(fmt.Sprintf(`give it a value, without *; where one entity differs, by a condition, as in [if Name == "one" {%s}, %s][0] under [Name=_]`, s.usual, alternatives[0]))
}

// name is how messages call what the problem is about.
func (o problem) name() string {
	if len(o.path) == 0 {
		return "the top level"
	}
	i := len(o.path) - 1
	for i > 0 && isIndex(o.path[i]) {
		i--
	}
	return joinPath(o.path[i:])
}

var (
	mismatch = regexp.MustCompile(` \(mismatched types (\S+) and (\S+)\)$`)
	// schemaType matches a conflict with a type that only the schema writes.
	schemaType = regexp.MustCompile(` and (\{\.\.\.\}|\[\.\.\..*\]|\{\[string\]:.*\}) \(`)
	outside    = regexp.MustCompile(`(?s)^invalid value (.+) \((out of bound .+|does not satisfy .+)\)$`)
)

// wrongValue says that a value has the wrong type, or breaks a constraint.
func (o problem) wrongValue(s, parent *shape) diag.Diagnostic {
	message, name := o.telling(), o.name()
	hint := ""
	switch {
	case strings.Contains(message, "undefined field: "):
		_, hint = reason(message)
	case s != nil && s.is != "":
		hint = name + " is " + s.is
	case parent != nil:
		hint = parent.about(name)
	}
	if m := mismatch.FindStringSubmatch(message); m != nil {
		given, wanted := m[1], m[2]
		if len(o.path) == 0 && given == "struct" {
			given, wanted = wanted, given // the struct is what the package's fields are in
		}
		if scalar := conflicting.FindStringSubmatch(message); wanted == "string" && scalar != nil && slices.Contains([]string{"int", "float", "bool", "number"}, given) {
			hint = fmt.Sprintf("write it as a string: %q", scalar[1])
		}
		if len(o.at) > 1 && len(o.path) > 0 && conflicting.MatchString(message) { // of something inside
			name = conflicting.FindStringSubmatch(message)[1] + " in " + name
		}
		must := article(wanted)
		if s != nil && wanted == "struct" && len(s.literal) > 0 {
			must += " or " + strings.Join(s.literal, " or ")
		}
		if s != nil && s.elem != nil && len(s.fields) > 0 {
			must = "a struct or a list of them"
		}
		return diag.New(diag.WrongValue, fmt.Sprintf("%s must be %s, and is %s", name, must, article(given))).Hinting(hint)
	}
	if m := outside.FindStringSubmatch(message); m != nil {
		why := ""
		if hint == "" || s == nil || s.is == "" {
			why = ": it must " + bound(strings.NewReplacer("out of bound ", "", "does not satisfy ", "").Replace(plain(m[2])))
		}
		return diag.New(diag.WrongValue, fmt.Sprintf("%s cannot be %s%s", name, m[1], why)).Hinting(hint)
	}
	if strings.HasPrefix(message, "incompatible list lengths (0 and ") {
		return diag.New(diag.WrongValue, name+" needs at least one element").Hinting(hint)
	}
	why, _ := reason(message)
	return diag.New(diag.WrongValue, name+": "+why).Hinting(hint)
}

// bound reads a constraint as what a value must do.
func bound(constraint string) string {
	if constraint == `!=""` {
		return "not be empty"
	}
	if pattern, ok := strings.CutPrefix(constraint, "=~"); ok {
		return "match " + pattern
	}
	return "be " + constraint
}

// article puts an article before the name of a type, or of several: (int|string).
func article(kinds string) string {
	kinds = strings.ReplaceAll(strings.Trim(kinds, "()"), "|", " or ")
	switch {
	case kinds == "null":
		return kinds
	case strings.HasPrefix(kinds, "int"):
		return "an " + kinds
	}
	return "a " + kinds
}

// telling is the message that says most: of a value with a default, CUE also
// says that the value is not the default, and of one with alternatives that it
// has not the type of the others.
func (o problem) telling() string {
	for _, says := range []string{"out of bound", "mismatched types"} {
		for _, message := range o.messages {
			if strings.Contains(message, says) {
				return message
			}
		}
	}
	return o.messages[0]
}

func unknownField(name string, parent *shape) diag.Diagnostic {
	d := diag.New(diag.UnknownField, "unknown field "+name)
	if parent == nil {
		return d
	}
	if _, known := parent.fields[name]; known {
		d.Message = "a closed definition that it is combined with does not allow the field " + name
		return d.Hinting("add the field to the definition, or open the definition with ...")
	}
	return d.Hinting(diag.DidYouMean(name, parent.names()))
}

func missingField(name string, parent *shape) diag.Diagnostic {
	d := diag.New(diag.Missing, "required field "+name+" is missing")
	if parent != nil {
		d = d.Hinting(parent.about(name))
	}
	return d
}

// badKey says that a field's name is not as the schema wants it.
func badKey(name string, keys keyShape) diag.Diagnostic {
	if keys.names {
		return badName(name)
	}
	d := diag.New(diag.UnknownField, fmt.Sprintf("the field cannot be named %q", name))
	of := strings.SplitN(lower(keys.doc), ",", 2)[0]
	if keys.matches != nil && keys.matches.MatchString("a/b/c") && !keys.matches.MatchString("a:1") {
		return d.Hinting("it is the path of " + of + ": names of letters, digits, '_', '-' and '.' with slashes between them, each with a letter, a digit or '_' first")
	}
	return d.Hinting("it is the name of " + of)
}

func badName(name string) diag.Diagnostic {
	return diag.New(diag.BadName, fmt.Sprintf("the name %q is not a DNS label", name)).
		Hinting("use at most 63 lower case letters, digits and dashes, with a letter or digit first and last")
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
	message = strings.Join(strings.Fields(message), " ")
	const longest = 200
	if r := []rune(message); len(r) > longest {
		message = string(r[:longest]) + "…"
	}
	return message
}

// lower makes a sentence a part of another.
func lower(sentence string) string {
	if sentence == "" {
		return ""
	}
	return strings.ToLower(sentence[:1]) + strings.TrimSuffix(sentence[1:], ".")
}
