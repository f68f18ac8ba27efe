package shape

import (
	"fmt"
	"strings"
	"sync"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/token"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/internal/credential"
)

// Article puts an article before the name of a type, or of several: (int|string).
func Article(kinds string) string {
	kinds = strings.ReplaceAll(strings.Trim(kinds, "()"), "|", " or ")
	switch {
	case kinds == "null":
		return kinds
	case strings.HasPrefix(kinds, "int"):
		return "an " + kinds
	}
	return "a " + kinds
}

// Plain names the schema's patterns instead of writing them out.
func Plain(message string) string {
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

// pattern is a definition of the schema that is a regular expression.
type pattern struct {
	name    string // "#Name"
	pattern string // =~"…" as CUE prints it
}

// patterns are the schema's regular expressions, so that messages can name them.
var patterns = sync.OnceValue(func() []pattern {
	var out []pattern
	for _, field := range fieldsOfSchema() {
		of := field.Value
		if and, ok := of.(*ast.BinaryExpr); ok && and.Op == token.AND {
			of = and.X // the other side bounds it further
		}
		u, ok := of.(*ast.UnaryExpr)
		if !ok || u.Op != token.MAT {
			continue
		}
		b, err := format.Node(u)
		if err != nil {
			panic(err)
		}
		label, _, _ := ast.LabelName(field.Label)
		out = append(out, pattern{label, string(b)})
	}
	return out
})

// firstSentence cuts a documentation after its first sentence.
func firstSentence(doc string) string {
	s, _, _ := strings.Cut(doc, ". ")
	return strings.TrimSuffix(s, ".")
}

// Credentials reports that an address of the shape has credentials, without repeating
// it. name is what messages call it.
func (s *Shape) Credentials(address, name string) (d diag.Diagnostic, found bool) {
	what := credential.In(address)
	if what == "" && s.Address != "#HTTPURL" && credential.HasQuery(address) {
		what = "the query"
	}
	if what == "" {
		return d, false
	}
	hint := "a reconciler gets a secret by secretRef or credentials, and `kalypso lock` and promotion what git, helm and docker know of the host"
	if strings.HasPrefix(address, "ssh:") || !strings.Contains(address, "://") {
		hint = "ssh finds its keys by host"
	}
	return diag.New(diag.URLCredentials, fmt.Sprintf("%s has credentials in its URL: %s", name, what)).
		Hinting("remove them from the URL, and withdraw them if others can see the file; " + hint), true
}

// UnknownField says that a struct has no such field; parent is nil where the schema does not
// know the struct.
func UnknownField(name string, parent *Shape) diag.Diagnostic {
	d := diag.New(diag.UnknownField, "unknown field "+name)
	if parent == nil {
		return d
	}
	if _, known := parent.Fields[name]; known {
		d.Message = "a closed definition that it is combined with does not allow the field " + name
		return d.Hinting("add the field to the definition, or open the definition with ...")
	}
	return d.Suggesting(name, parent.Names())
}

// MissingField says that a struct lacks a field; parent is as for UnknownField.
func MissingField(name string, parent *Shape) diag.Diagnostic {
	d := diag.New(diag.Missing, "required field "+name+" is missing")
	if parent != nil {
		d = d.Hinting(parent.About(name))
	}
	return d
}

// BadKey says that a field's name is not as the schema wants it.
func BadKey(name string, keys Keys) diag.Diagnostic {
	if keys.names {
		return BadName(name)
	}
	if keys.doc == "A test." {
		return diag.New(diag.BadName, fmt.Sprintf("a test cannot be named %q", name)).
			Hinting("use one line of text, without white space at its ends")
	}
	d := diag.New(diag.UnknownField, fmt.Sprintf("the field cannot be named %q", name))
	of := strings.SplitN(lower(keys.doc), ",", 2)[0]
	if keys.matches != nil && keys.matches.MatchString("a/b/c") && !keys.matches.MatchString("a:1") {
		return d.Hinting("it is the path of " + of + ": names of letters, digits, '_', '-' and '.' with slashes between them, each with a letter, a digit or '_' first")
	}
	return d.Hinting("it is the name of " + of)
}

// BadName says that the key of an entity is no #Name.
func BadName(name string) diag.Diagnostic {
	return diag.New(diag.BadName, fmt.Sprintf("the name %q is not a DNS label", name)).
		Hinting("use at most 63 lower case letters, digits and dashes, with a letter or digit first and last")
}
