package problem

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/shape"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/lazyregexp"
)

// isConstraint reports whether one side of a conflict is a type or a bound, and not a value.
func isConstraint(text string) bool { return constraint.MatchString(text) }

var constraint = lazyregexp.New(
	`^(string|bytes|bool|int|float|number|struct|list|[=!]~|[<>]=?|!=|\(|#|\*)`)

// breaksType reports whether a conflict is between a value and a constraint of another type.
func (o Problem) breaksType(message string) bool {
	m := conflicting.FindStringSubmatch(message)
	return m != nil && mismatch.MatchString(message) && isConstraint(m[1]) != isConstraint(m[2])
}

// givenFirst returns the positions. If the message names the given value, the position of that
// value comes first.
func (o Problem) givenFirst() []model.Position {
	m := conflicting.FindStringSubmatch(o.Telling())
	if m == nil || !o.breaksType(o.Telling()) {
		return o.At
	}
	value := m[1]
	if isConstraint(value) {
		value = m[2]
	}
	i := slices.IndexFunc(o.At, func(at model.Position) bool { return o.places.IsLiteral(at, value) })
	if i < 1 {
		return o.At
	}
	return slices.Concat(o.At[i:i+1], o.At[:i], o.At[i+1:])
}

// retyped returns a hint on how to write a value of the wrong type in the wanted one. It returns
// "" if the value does not exist in the wanted type.
func retyped(value, given, wanted string, s *shape.Shape) string {
	text, _ := strconv.Unquote(value)
	wants := func(kind string) bool {
		return slices.Contains(
			strings.Split(strings.Trim(wanted, "()"), "|"), kind)
	}
	switch {
	case given == "null":
		return "remove it: a field that is absent has its default, or no value"
	case given == "bytes" && wants("string"):
		return fmt.Sprintf("write it in double quotes: %q", strings.Trim(value, "'"))
	case slices.Contains([]string{"int", "float", "bool", "number"}, given) && wants("string"):
		return asString + strconv.Quote(value)
	case given == "string" && (wants("int") || wants("number") || wants("float")) &&
		number.MatchString(text),
		given == "string" && wants("bool") && (text == "true" || text == "false"):
		return "write it without quotes: " + text
	case given == "string" && wants("list") && (s == nil || s.Elem == nil || len(s.Elem.Fields) == 0):
		return "write it as a list: [" + value + "]"
	}
	return ""
}

const asString = "write it as a string: "

var number = lazyregexp.New(`^-?[0-9]+(\.[0-9]+)?$`)

// notAllowed returns the diagnostic that a value is not one of the values that the schema
// allows. If the schema allows the value, the diagnostic explains what else restricts the
// field.
func (o Problem) notAllowed(s *shape.Shape) diag.Diagnostic {
	for _, sides := range o.conflicts() {
		i := slices.IndexFunc(sides, func(side string) bool {
			text, err := strconv.Unquote(side)
			return err == nil && slices.Contains(s.Enum, text) &&
				slices.ContainsFunc(o.At, func(at model.Position) bool { return o.places.IsLiteral(at, side) })
		})
		if i >= 0 && !isConstraint(sides[1-i]) && o.places.Profile(o.Path) != "" {
			return o.fixed(sides[i], sides[1-i])
		}
	}
	given := o.given(s)
	message := fmt.Sprintf("%s cannot be %s", o.name(), given)
	text := strings.Trim(given, `"`)
	if d := diag.New(diag.NotAllowed, message).Suggesting(text, s.Enum); d.Suggestion.Right != "" {
		return d.Hinting(fmt.Sprintf("%s allowed: %s", d.Hint, s.Allowed()))
	}
	return diag.New(diag.NotAllowed, message).Hinting("allowed: " + s.Allowed())
}

// fixed returns the diagnostic that a value that the schema allows is rejected, because a
// profile of the standard library has fixed the field.
func (o Problem) fixed(given, to string) diag.Diagnostic {
	by := o.places.Profile(o.Path)
	return diag.New(diag.NotAllowed,
		fmt.Sprintf("%s cannot be %s: %s fixes it to %s", o.name(), given, by, to)).
		Hinting("remove it, or write the entity without " + by)
}

// conflicts returns the two sides of each conflict of literals.
func (o Problem) conflicts() (out [][]string) {
	for _, message := range o.Messages {
		if m := conflicting.FindStringSubmatch(message); m != nil {
			out = append(out, m[1:3])
		}
	}
	return out
}

// correction returns a hint on how to correct a value that breaks a constraint because of a
// common mistake. It returns "" if it does not find such a mistake. s may be nil.
func correction(value, breaks string, s *shape.Shape) string {
	text, err := strconv.Unquote(value)
	if err != nil {
		return ""
	}
	if way := diag.FillIn(text); way != "" {
		return way
	}
	var candidates []string
	if s != nil && strings.HasPrefix(s.Is, "a time span") {
		candidates = append(candidates, span.ReplaceAllStringFunc(text, func(m string) string {
			return span.FindStringSubmatch(m)[1] + span.FindStringSubmatch(m)[2][:1]
		}))
	}
	candidates = append(candidates, strings.TrimSpace(text), strings.TrimPrefix(text, "v"))
	if s != nil && (s.Address == "#GitURL" || s.Address == "#HTTPURL") && hosted.MatchString(text) {
		candidates = append(candidates, "https://"+text)
	}
	if s != nil && strings.HasPrefix(s.Is, "a DNS label") {
		candidates = append(candidates, shape.Kebab(text))
	}
	if s != nil && s.Address == "#OCIURL" {
		if url, revision := shape.CutRevision(text); revision != "" {
			return fmt.Sprintf("write %q, and beside it %s", url, revision)
		}
		candidates = append(candidates, "oci://"+text)
	}
	i := slices.IndexFunc(candidates, func(c string) bool { return c != text && meets(c, breaks) })
	if i < 0 {
		return ""
	}
	return fmt.Sprintf("write %q", candidates[i])
}

// hosted matches an address without a scheme that begins with a host name with dots.
var hosted = lazyregexp.New(`^[A-Za-z0-9][-A-Za-z0-9]*(\.[-A-Za-z0-9]+)+(:[0-9]+)?(/|$)`)

var span = lazyregexp.New(`([0-9]+)\s*(s|m|h)[a-z]*\s*`)

// meets reports whether a text satisfies a constraint, as CUE prints it, that another text
// breaks.
func meets(text, breaks string) bool {
	m := pattern.FindStringSubmatch(breaks)
	if m == nil {
		return false
	}
	expr, err := strconv.Unquote(m[1])
	if err != nil {
		return false
	}
	matches, err := regexp.Compile(expr)
	return err == nil && matches.MatchString(text)
}

var pattern = lazyregexp.New(`=~("(?:[^"\\]|\\.)*")`)
