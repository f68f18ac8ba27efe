package compose

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/credential"
	"github.com/kalypso-io/kalypso/internal/lazyregexp"
)

// splitSecrets separates composed values into the plain values, and the secret
// references by path, sorted.
func splitSecrets(values model.Value) (plain model.Value, secrets []Secret) {
	if !refersToSecret(values) {
		return values, nil
	}
	plain, _ = split("", values, &secrets)
	return plain, secrets
}

// refersToSecret reports whether structs contain a secret reference.
func refersToSecret(v model.Value) bool {
	if v.Kind() == model.Struct {
		return slices.ContainsFunc(v.Fields(),
			func(f model.Field) bool { return refersToSecret(f.Value) })
	}
	return v.Kind() == model.Secret
}

// Secret is a value that refers to a secret.
type Secret struct {
	Path string
	Ref  model.Value // with the fields of schema.#Secret
}

// split removes the secrets from a value, and reports whether anything remains.
func split(path string, v model.Value, secrets *[]Secret) (model.Value, bool) {
	switch v.Kind() {
	case model.Secret:
		*secrets = append(*secrets, Secret{path, v})
		return v, false
	case model.Struct:
		fields := make([]model.Field, 0, len(v.Fields()))
		for _, f := range v.Fields() {
			if p, keep := split(model.JoinPath(path, model.Label(f.Name)), f.Value, secrets); keep {
				fields = append(fields, model.Field{Name: f.Name, Value: p})
			}
		}
		// A struct of only secrets is removed with them.
		return model.StructOf(fields...), path == "" || len(fields) > 0 || len(v.Fields()) == 0
	}
	return v, true
}

// plaintexts warns of strings that look like secrets.
func (m *merger) plaintexts(layers []layer) {
	for leaf := range m.marked(namedSecret) {
		if !plaintext(leaf.Path, leaf.Value) {
			continue
		}
		if slices.ContainsFunc(layers,
			func(l layer) bool { return slices.Contains(l.config.Plain, leaf.Path) }) {
			continue
		}
		d := diag.New(diag.Plaintext, leaf.Path+looksPlain).On(leaf.Path).
			Hinting("refer to a secret store: schema.#Secret & {store: …, key: …}; " +
				"if it is no secret, list the path under plain")
		for _, o := range leaf.From {
			d = d.At(o.Ref, "("+describe(o)+")") // without the value, which may be a secret
		}
		m.graph.ds = append(m.graph.ds, d)
	}
}

const looksPlain = " looks like a secret in plain text"

// plaintext reports whether a value is a string that looks like a secret.
func plaintext(path string, v model.Value) bool {
	names := model.Elements(path)
	return v.Kind() == model.String && len(names) > 0 &&
		credential.Secret(names[len(names)-1], v.Text())
}

// Shown returns a value at a path for display, with a mask if it looks like a secret.
func Shown(path string, v model.Value) model.Value {
	if plaintext(path, v) {
		return model.StringOf(credential.Masked)
	}
	return v
}

// shown returns a value at a path as text for display.
func shown(path string, v model.Value) string {
	if plaintext(path, v) {
		return credential.Masked
	}
	return short(v.String())
}

// Plaintexts warns of strings that look like secrets in the manifests of a deployment target at
// ref, because kalypso writes them into files unchanged. It ignores strings that name the place of
// a secret, such as existingSecret and passwordFile.
func Plaintexts(given model.Value, ref model.Ref) []diag.Diagnostic {
	var ds []diag.Diagnostic
	var walk func(path string, v model.Value)
	walk = func(path string, v model.Value) {
		if plaintext(path, v) && !tellsWhere(path) {
			at := ref.At(path)
			ds = append(ds, diag.New(diag.Plaintext, at.Path+looksPlain).On(at.String()).At(at, "").
				Hinting("refer to a secret store with schema.#Secret in a config, and let the manifests read "+
					"what the namespace service delivers"))
		}
		for _, f := range v.Fields() {
			walk(model.JoinPath(path, model.Label(f.Name)), f.Value)
		}
		for i, e := range v.Elems() {
			walk(fmt.Sprintf("%s[%d]", path, i), e)
		}
	}
	walk("", given)
	return ds
}

// tellsWhere reports whether a path's last name is the name of a secret's place, as
// charts and roles name it.
func tellsWhere(path string) bool {
	names := model.Elements(path)
	of := credential.Words(names[len(names)-1])
	return slices.Contains(of, "existing") ||
		slices.Contains([]string{"name", "ref", "file", "path", "url"}, of[len(of)-1])
}

// marked yields all leaves if any leaf has the mark, and nothing otherwise.
func (m *merger) marked(with trait) iter.Seq[Leaf] {
	return func(yield func(Leaf) bool) {
		if m.provenance.marks&with == 0 {
			return
		}
		for _, leaf := range m.leaves() {
			if !yield(leaf) {
				return
			}
		}
	}
}

// undeliverable reports secret references in lists: a secret is delivered under the path of its
// value, and an element of a list has no such path.
func (m *merger) undeliverable() {
	for leaf := range m.marked(secretList) {
		if leaf.Value.Kind() == model.List && holdsSecret(leaf.Value) {
			d := diag.New(diag.UndeliverableSecret,
				leaf.Path+" is a list with a secret reference in it").On(leaf.Path).
				Hinting("give the secret a key of its own")
			for _, o := range leaf.From {
				d = d.At(o.Ref, "("+describe(o)+")")
			}
			m.fail(d)
		}
	}
}

// holdsSecret reports whether a value contains a secret reference, in lists too.
func holdsSecret(v model.Value) bool {
	if v.Kind() == model.Secret {
		return true
	}
	return slices.ContainsFunc(v.Elems(), holdsSecret) ||
		slices.ContainsFunc(v.Fields(), func(f model.Field) bool { return holdsSecret(f.Value) })
}

// variable matches a variable of a shell or of Flux's postBuild, with or without a default. It also
// matches a Helm template expression, but only if it names an object of Helm. Monitoring, Ansible
// and others use {{ and }} for their own text. $${VAR} and \${VAR} stay unchanged on purpose.
var variable = lazyregexp.New(
	`(?:^|[^$\\])(\$\{[A-Za-z_]\w*(?::?[-=][^{}]*)?\})|(\{\{-?\s*\.(?:Values|Release|Chart|Capabilities)\b[^{}]*\}\})`)

// conversion matches parts of log patterns and date formats that occur beside variables.
var conversion = lazyregexp.New(`%[-.0-9]*[a-z]`)

// ofPatterns are words in names of values that another program fills in: log patterns, formats,
// templates, queries and commands.
var ofPatterns = []string{
	"pattern", "layout", "format", "template", "tmpl", "query", "expr", "expression", "regex",
	"regexp", "rewrite",
	"script", "command", "cmd", "args", "entrypoint", "hook",
}

// variableIn returns the first text in a value that looks like a variable and that nothing fills
// in. It returns "" if there is no such text. It ignores texts of several lines, which are files or
// scripts of the application.
func variableIn(name string, v model.Value) string {
	if v.Kind() == model.String {
		text := v.Text()
		if !strings.Contains(text, "${") && !strings.Contains(text, "{{") ||
			strings.Contains(text, "\n") || conversion.MatchString(text) {
			return ""
		}
		m := variable.FindStringSubmatch(text)
		if m == nil || slices.ContainsFunc(credential.Words(name),
			func(word string) bool { return slices.Contains(ofPatterns, word) }) {
			return ""
		}
		return m[1] + m[2]
	}
	for _, e := range v.Elems() {
		if found := variableIn(name, e); found != "" {
			return found
		}
	}
	for _, f := range v.Fields() { // of structs in lists
		if found := variableIn(f.Name, f.Value); found != "" {
			return found
		}
	}
	return ""
}

// unfilled warns of values with variables that nothing fills in, unless a config lists
// their paths under plain.
func (m *merger) unfilled(layers []layer) {
	for leaf := range m.marked(variableText) {
		names := model.Elements(leaf.Path)
		found := variableIn(names[len(names)-1], leaf.Value)
		if found == "" || slices.ContainsFunc(layers,
			func(l layer) bool { return slices.Contains(l.config.Plain, leaf.Path) }) {
			continue
		}
		d := diag.New(diag.Unfilled,
			fmt.Sprintf("%s has %s, which kalypso and the reconciler deliver as it is", leaf.Path,
				found)).On(leaf.Path).
			Hinting(`write a field beside it as "\(NAME)", or a fact as "\(#assignment.environment)"; if the application fills it in, list the path under plain`)
		for _, o := range leaf.From {
			d = d.At(o.Ref, "("+describe(o)+")")
		}
		m.graph.ds = append(m.graph.ds, d)
	}
}
