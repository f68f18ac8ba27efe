package compose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/credential"
	"github.com/kalypso-io/kalypso/internal/lazyregexp"
)

// variable matches a variable of a shell or of Flux's postBuild, with or without a default, and an
// expression of a template of Helm: only those that name an object of Helm, since what monitoring,
// Ansible and others write between {{ and }} is for them. $${VAR} and \${VAR} are meant to stay.
var variable = lazyregexp.New(
	`(?:^|[^$\\])(\$\{[A-Za-z_]\w*(?::?[-=][^{}]*)?\})|(\{\{-?\s*\.(?:Values|Release|Chart|Capabilities)\b[^{}]*\}\})`)

// conversion matches what patterns of logs and formats of dates have beside variables.
var conversion = lazyregexp.New(`%[-.0-9]*[a-z]`)

// ofPatterns are words in names of values that another program fills in: patterns of logs, formats,
// templates, queries and commands.
var ofPatterns = []string{
	"pattern", "layout", "format", "template", "tmpl", "query", "expr", "expression", "regex", "regexp", "rewrite",
	"script", "command", "cmd", "args", "entrypoint", "hook",
}

// variableIn returns what looks like a variable in a value that nothing fills in; "" for none. Texts
// of several lines are files or scripts of the application.
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

// unfilled warns of values with variables that nothing fills in, unless a config lists their paths
// under plain.
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
