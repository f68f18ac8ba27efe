package gotemplate

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"text/template"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/internal/lazyregexp"
	"github.com/kalypso-io/kalypso/internal/spelling"
)

// output is the output of a run, with the places of the template that wrote it.
type output struct {
	source
	text  []byte
	trace []outputMark
	from  []place
}

// outputMark marks an offset in the output: the text from there on is from a place of the
// template.
type outputMark struct{ offset, place int }

// origin returns the line of the template that wrote the byte at an offset. It returns 0 if no line
// wrote it.
func (o *output) origin(offset int) int {
	last := -1
	for i := range o.trace {
		if o.trace[i].offset > offset {
			break
		}
		last = i
	}
	if last < 0 {
		return 0
	}
	at := o.from[o.trace[last].place]
	if at.text {
		begin := o.trace[last].offset
		return at.line + strings.Count(string(o.text[begin:max(begin, min(offset, len(o.text)))]), "\n")
	}
	return at.line
}

// run is one run of a program.
type run struct {
	output
	steps int
	calls int // of templates in templates
}

// Write appends the output of text/template, up to the bound.
func (r *run) Write(p []byte) (int, error) {
	if len(r.text)+len(p) > maxOutput {
		return 0, exceeded("it makes more than " + mebibytes(maxOutput))
	}
	r.text = append(r.text, p...)
	return len(p), nil
}

var errNullShown = errors.New("the value is null, and cannot be written")

// mark notes that the run is at a place. It returns the value that an action prints there.
func (r *run) mark(n int, printed ...any) (any, error) {
	r.spend(1)
	if r.calls += r.from[n].calls; r.calls > maxCalls {
		return nil, exceeded(fmt.Sprintf("templates are in templates more than %d times: "+
			"one calls itself without an end", maxCalls))
	}
	if last := len(r.trace) - 1; last >= 0 && r.trace[last].offset == len(r.text) {
		r.trace[last].place = n
	} else {
		r.trace = append(r.trace, outputMark{len(r.text), n})
	}
	switch {
	case len(printed) == 0:
		return "", nil
	case printed[0] == nil:
		return nil, errNullShown
	}
	r.measure(reflect.ValueOf(printed[0]))
	return printed[0], nil
}

// execute runs a program on the data of a template.
func (p *program) execute(s source, data map[string]any) (*output, *diag.Diagnostic) {
	r := &run{output: output{source: s, from: p.places}}
	bound := template.FuncMap{markFunction: r.mark, readFunction: r.read}
	for _, name := range p.used {
		bound[name] = r.bounded(name)
	}
	t, err := p.template.Clone()
	if err == nil {
		err = t.Funcs(bound).Execute(r, data)
	}
	if err == nil {
		return &r.output, nil
	}
	d := s.failure(err, data)
	var stopped exceeded
	if errors.As(err, &stopped) {
		line := strconv.Itoa(r.origin(len(r.text)))
		if m := failed.FindStringSubmatch(err.Error()); m != nil { // not an error of Write
			line = m[1]
		}
		d = s.problem("the template of %s is stopped in line %s: %s", s.path, line, stopped).
			Hinting("make less: what a template works on comes from the platform, and is bounded " +
				"so that one template cannot stop a build")
	}
	return nil, &d
}

// problem returns a diagnostic about the template.
func (s source) problem(format string, args ...any) diag.Diagnostic {
	return diag.New(diag.Template,
		oneLine(fmt.Sprintf(format, args...))).On(s.ref.String()).At(s.ref.At("template"), "")
}

// failed splits the message of text/template about a template that it cannot parse or run.
// The parts are the template's name, the line, the column, the expression, and the problem.
var failed = lazyregexp.New(
	`(?s)^template: [^:]*:(\d+)(?::\d+)?: (?:executing "[^"]*" at <(.*?)>: )?(.*)$`)

// missing matches its message about a key that does not exist.
var missing = lazyregexp.New(`map has no entry for key "(.*)"$`)

// failure returns an error of text/template as a diagnostic. data is the data of the template.
func (s source) failure(err error, data map[string]any) diag.Diagnostic {
	m := failed.FindStringSubmatch(err.Error())
	if m == nil {
		return s.problem("the template of %s fails: %v", s.path, err)
	}
	line, expression, what := m[1], m[2], m[3]
	where := "in line " + line
	if expression != "" && expression != readFunction && !strings.Contains(expression, markFunction) {
		where += ", at " + withoutOwn(expression)
	}
	key := missing.FindStringSubmatch(what)
	if key == nil {
		if errors.Is(err, errNullShown) {
			return s.problem("the template of %s fails %s: %v", s.path, where, errNullShown).
				Hinting("give it a value with default, or leave it out with if")
		}
		return s.problem("the template of %s fails %s: %s", s.path, where, withoutOwn(what))
	}
	hint := "where it may be missing, read it with get or dig, or ask with hasKey"
	if expression == "."+key[1] || expression == "$."+key[1] {
		hint = spelling.DidYouMean(key[1], fieldNames())
	} else if near := spelling.Nearest(key[1], besides(expression, key[1], data)); near != "" {
		hint = "did you mean " + near + "?"
	}
	return s.problem("the template of %s fails %s: there is no key %s", s.path, where,
		strconv.Quote(key[1])).Hinting(hint)
}

// besides returns the keys of the mapping in which a chain of fields, such as
// .ConfigData.REGION, does not find the missing key.
func besides(chain, missing string, data map[string]any) []string {
	for _, name := range strings.Split(strings.Trim(chain, "$."), ".") {
		inner, ok := data[name].(map[string]any)
		if name == missing || !ok {
			return sortedKeys(data)
		}
		data = inner
	}
	return nil
}

// own are the calls in an expression that programOf inserted, and ownRead those with the
// parentheses that they need.
var (
	own     = lazyregexp.New(` \| (?:` + markFunction + ` \d+|` + readFunction + `\b)`)
	ownRead = lazyregexp.New(`\(([^()]*|\([^()]*\)) \| ` + readFunction + `\)`)
)

func withoutOwn(text string) string {
	return own.ReplaceAllString(ownRead.ReplaceAllString(text, "$1"), "")
}

func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }),
		" ")
}
