package shape

import (
	"strings"
	"sync"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/token"
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
