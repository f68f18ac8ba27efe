package shape

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/credential"
	"github.com/kalypso-io/kalypso/internal/spelling"
)

// Article puts an article before the name of a type, or of several types: (int|string).
func Article(kinds string) string {
	kinds = strings.ReplaceAll(strings.Trim(kinds, "()"), "|", " or ")
	switch {
	case kinds == "null", kinds == "bytes":
		return kinds
	case strings.HasPrefix(kinds, "int"):
		return "an " + kinds
	}
	return "a " + kinds
}

// Plain replaces the schema's patterns in a message with their names.
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

// lower returns a sentence in a form that can be a part of another sentence.
func lower(sentence string) string {
	if sentence == "" {
		return ""
	}
	return strings.ToLower(sentence[:1]) + strings.TrimSuffix(sentence[1:], ".")
}

// Hint returns the documentation of a field as a hint.
func (s *Shape) Hint(name string) string {
	doc := lower(firstSentence(s.Fields[name].Doc))
	if doc == "" || strings.TrimPrefix(doc, "a ") == name {
		return ""
	}
	return name + ": " + doc
}

// Allowed lists the allowed values, if the schema enumerates them.
func (s *Shape) Allowed() string {
	list := strings.Join(s.Enum, ", ")
	if len(s.Fields) > 0 {
		list += ", or a struct with " + strings.Join(s.Names(), ", ")
	}
	return list
}

// pattern is a definition of the schema with a regular expression.
type pattern struct {
	name    string // such as "#Name"
	pattern string // =~"…" in CUE's syntax
}

// patterns are the schema's regular expressions, so that messages can name them.
var patterns = sync.OnceValue(func() []pattern {
	var out []pattern
	for _, field := range fieldsOfSchema() {
		of := field.Value
		if and, ok := of.(*ast.BinaryExpr); ok && and.Op == token.AND {
			of = and.X // the other side is a further bound
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

// firstSentence returns the first sentence of a documentation.
func firstSentence(doc string) string {
	s, _, _ := strings.Cut(doc, ". ")
	return strings.TrimSuffix(s, ".")
}

// Credentials reports credentials in an address of the shape, without repeating them. name is
// the name of the address in messages.
func (s *Shape) Credentials(address, name string) (d diag.Diagnostic, found bool) {
	what := credential.In(address)
	if what == "" && s.Address != "#HTTPURL" && credential.HasQuery(address) {
		what = "the query"
	}
	if what == "" {
		return d, false
	}
	hint := "a reconciler gets a secret by secretRef or credentials, and `kalypso lock` and " +
		"promotion what git, helm and docker know of the host"
	if strings.HasPrefix(address, "ssh:") || !strings.Contains(address, "://") {
		hint = "ssh finds its keys by host"
	}
	return diag.New(diag.URLCredentials, fmt.Sprintf("%s has credentials in its URL: %s", name, what)).
		Hinting("remove them from the URL, and withdraw them if others can see the file; " + hint), true
}

// UnknownField returns the diagnostic that a struct has no such field. parent is nil if the schema
// does not describe the struct.
func UnknownField(name string, parent *Shape) diag.Diagnostic {
	d := diag.New(diag.UnknownField, "unknown field "+name)
	if parent == nil {
		return d
	}
	if _, known := parent.Fields[name]; known {
		d.Message = "a closed definition that it is combined with does not allow the field " + name
		return d.Hinting("add the field to the definition, or open the definition with ...")
	}
	if parent.selects && spelling.Nearest(name, parent.Names()) == "" {
		return d.Hinting(Selecting(name, "labels: "))
	}
	return d.Suggesting(name, parent.Names())
}

// Selecting returns the hint for an unknown field name in a selector. It suggests the selector
// that corresponds to a Kubernetes field or, for other names, a label. labels is the prefix of
// labels.
func Selecting(name, labels string) string {
	switch name {
	case "labels", "matchLabels":
		return fmt.Sprintf(`write each label and its value: %sregion: "…"`, labels)
	case "matchExpressions":
		return fmt.Sprintf(
			`write constraints on the labels: %[1]ssize: "large" | "small" for In, %[1]ssize?: !="large" for NotIn, %[1]ssize: _ for Exists, %[1]ssize?: _|_ for DoesNotExist`, labels)
	}
	return fmt.Sprintf(`if it is a label, write %s%s: "…"`, labels, model.Label(name))
}

// KubernetesObject returns the diagnostic that a Kubernetes object is in the place of something
// else. expected is the end of the message.
func KubernetesObject(expected string) diag.Diagnostic {
	return diag.New(diag.UnknownField, "this is an object of Kubernetes, and "+expected).
		Hinting(`keep it as YAML in a repository, and name the place: workloads: NAME: deploymentTargets: NAME: manifests: git: {repo: "…", branch: "…", path: "…"}`)
}

// MissingField returns the diagnostic that a struct lacks a field. parent has the same meaning
// as for UnknownField.
func MissingField(name string, parent *Shape) diag.Diagnostic {
	d := diag.New(diag.Missing, "required field "+name+" is missing")
	if parent != nil {
		d = d.Hinting(parent.Hint(name))
	}
	return d
}

// BadKey returns the diagnostic that the schema does not allow the name of a field.
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
		return d.Hinting("it is the path of " + of + ": names of letters, digits, '_', '-' and '.' " +
			"with slashes between them, each with a letter, a digit or '_' first")
	}
	return d.Hinting("it is the name of " + of)
}

// BadName returns the diagnostic that the key of an entity is not a #Name.
func BadName(name string) diag.Diagnostic {
	d := diag.New(diag.BadName, fmt.Sprintf("the name %q is not a DNS label", name))
	const rule = "at most 63 lower case letters, digits and dashes, with a letter or digit first " +
		"and last"
	if better := Kebab(name); model.IsName(better) {
		return d.Hinting(fmt.Sprintf("write %q: a name has %s", better, rule))
	}
	return d.Hinting("use " + rule)
}

// Kebab returns a name in lower case letters, digits and dashes.
func Kebab(name string) string {
	var b strings.Builder
	lowerBefore := false
	for _, c := range name {
		isUpper, isLower := 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z' || '0' <= c && c <= '9'
		switch {
		case isUpper && lowerBefore:
			b.WriteString("-" + strings.ToLower(string(c)))
		case isUpper:
			b.WriteString(strings.ToLower(string(c)))
		case isLower:
			b.WriteRune(c)
		default:
			b.WriteRune('-')
		}
		lowerBefore = isLower
	}
	return strings.Trim(b.String(), "-")
}

// CutRevision cuts the tag or the digest off the URL of an OCI artifact, and returns it as the
// field for it. field is "" if the URL has neither.
func CutRevision(url string) (without, field string) {
	if without, digest, found := strings.Cut(url, "@"); found {
		return without, fmt.Sprintf("digest: %q", digest)
	}
	if i := strings.LastIndexByte(url, ':'); i > strings.LastIndexByte(url, '/') {
		return url[:i], fmt.Sprintf("tag: %q", url[i+1:])
	}
	return url, ""
}

// matched returns the regular expression of =~"…". It returns nil for other expressions.
func matched(e ast.Expr) *regexp.Regexp {
	u, ok := e.(*ast.UnaryExpr)
	if !ok || u.Op != token.MAT {
		return nil
	}
	lit, ok := u.X.(*ast.BasicLit)
	if !ok {
		return nil
	}
	text, err := literal.Unquote(lit.Value)
	if err != nil {
		panic(err)
	}
	return regexp.MustCompile(text)
}
