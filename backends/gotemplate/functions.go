package gotemplate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"path"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"mvdan.cc/sh/v3/syntax"

	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/lazyregexp"
)

// functions are the functions that templates may use. They are sprig's, except the refused ones.
// kalypso's own functions replace some of them.
var functions = sync.OnceValue(func() map[string]any {
	all := map[string]any(sprig.TxtFuncMap())
	for name := range refused {
		delete(all, name)
	}
	maps.Copy(all, map[string]any{
		// Of the original Kalypso.
		"toYaml": toYAML, "stringify": stringify, "hash": hash, "unquote": unquote,

		// sprig's functions return their results in the random order of a Go map.
		"keys": keys, "values": values,

		// In sprig these make every number a float.
		"fromJson": lenient(fromJSON), "mustFromJson": fromJSON,

		// The functions of text/template itself, to bound them as the others, and to make index
		// fail on a key that does not exist.
		"print": fmt.Sprint, "printf": printf, "println": fmt.Sprintln, "index": index,
		"html": template.HTMLEscaper, "js": template.JSEscaper, "urlquery": template.URLQueryEscaper,
	})
	return all
})

// toYAML writes a value as YAML without the newline at the end.
func toYAML(x any) (string, error) {
	v, err := valueOf(x)
	if err != nil {
		return "", err
	}
	out, err := yaml.Marshal(v)
	return strings.TrimSuffix(string(out), "\n"), err
}

// stringify writes a mapping as YAML in which every value is a string, for the data of a ConfigMap.
// A scalar becomes its text, null the empty string, and lists and mappings become YAML. Any other
// value becomes its text.
func stringify(x any) (string, error) {
	v, err := valueOf(x)
	if err != nil {
		return "", err
	}
	if v.Kind() != model.Struct {
		return textOf(v)
	}
	fields := make([]model.Field, 0, len(v.Fields()))
	for _, f := range v.Fields() {
		text, err := textOf(f.Value)
		if err != nil {
			return "", err
		}
		fields = append(fields, model.Field{Name: f.Name, Value: model.StringOf(text)})
	}
	out, err := yaml.Marshal(model.StructOf(fields...))
	return strings.TrimSuffix(string(out), "\n"), err
}

func textOf(v model.Value) (string, error) {
	switch {
	case v.Kind() == model.Null:
		return "", nil
	case v.IsScalar():
		return v.Text(), nil
	}
	out, err := yaml.Marshal(v)
	return string(out), err
}

// hash returns a number that identifies a value: the same number as in the original Kalypso, since
// existing trees contain it. The original uses the second format of
// github.com/mitchellh/hashstructure.
func hash(x any) (string, error) {
	sum, err := sumOf(reflect.ValueOf(x))
	return strconv.FormatUint(sum, 10), err
}

// sumOf returns the sum of a value; nil has the sum of the int 0. The sum of a list includes the
// sums of its elements, in order, and the sum of a mapping includes the sums of its fields, in any
// order.
func sumOf(v reflect.Value) (sum uint64, err error) {
	for v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch kind := v.Kind(); {
	case kind == reflect.Invalid:
		return fnv1(int64(0)), nil
	case kind == reflect.Bool && v.Bool():
		return fnv1(int8(1)), nil
	case kind == reflect.Bool:
		return fnv1(int8(0)), nil
	case kind == reflect.Int:
		return fnv1(v.Int()), nil
	case kind == reflect.Uint:
		return fnv1(v.Uint()), nil
	case kind > reflect.Int && kind <= reflect.Float64 && kind != reflect.Uintptr:
		return fnv1(v.Interface()), nil
	case kind == reflect.String:
		return fnv1([]byte(v.String())), nil
	case kind == reflect.Slice, kind == reflect.Array:
		for i := range v.Len() {
			element, err := sumOf(v.Index(i))
			if err != nil {
				return 0, err
			}
			sum = fnv1([]uint64{sum, element})
		}
		return sum, nil
	case kind == reflect.Map:
		for it := v.MapRange(); it.Next(); {
			key, err := sumOf(it.Key())
			if err != nil {
				return 0, err
			}
			value, err := sumOf(it.Value())
			if err != nil {
				return 0, err
			}
			sum ^= fnv1([]uint64{key, value})
		}
		return fnv1(sum), nil
	}
	return 0, fmt.Errorf("a %s has no hash; hash a text, a number, a list or a mapping", v.Type())
}

// fnv1 returns 64 bits of FNV-1 of numbers, the least significant byte first.
func fnv1(numbers any) uint64 {
	h := fnv.New64()
	if err := binary.Write(h, binary.LittleEndian, numbers); err != nil {
		panic(err) // the hash accepts all bytes, and numbers have a fixed size
	}
	return h.Sum64()
}

// unquote removes quotes and white space from both ends of a text.
func unquote(x any) string { return strings.Trim(fmt.Sprint(x), "\"' \t\r\n") }

// keys returns the keys of mappings. The keys of each mapping are sorted.
func keys(maps ...map[string]any) []string {
	out := []string{}
	for _, m := range maps {
		out = append(out, sortedKeys(m)...)
	}
	return out
}

// values returns the values of a mapping, in the order of its keys.
func values(m map[string]any) []any {
	out := []any{}
	for _, k := range sortedKeys(m) {
		out = append(out, m[k])
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func fromJSON(text string) (any, error) {
	var v model.Value
	if err := v.UnmarshalJSON([]byte(text)); err != nil {
		return nil, err
	}
	return plain(v), nil
}

// lenient returns a function that returns nil if f fails, as sprig's functions without
// "must" do.
func lenient(f func(string) (any, error)) func(string) any {
	return func(text string) any {
		out, _ := f(text)
		return out
	}
}

var errNil = errors.New("index of a value that is null")

// index is the function of text/template, except that a key must exist.
func index(item any, indexes ...any) (any, error) {
	for _, i := range indexes {
		v := reflect.ValueOf(item)
		switch v.Kind() {
		case reflect.Map:
			key := reflect.ValueOf(i)
			if !key.IsValid() || !key.Type().AssignableTo(v.Type().Key()) {
				return nil, fmt.Errorf("a key of a %s cannot be a %T", v.Type(), i)
			}
			of := v.MapIndex(key)
			if !of.IsValid() {
				return nil, fmt.Errorf("map has no entry for key %q", fmt.Sprint(i))
			}
			item = of.Interface()
		case reflect.Slice, reflect.Array, reflect.String:
			n, err := numberOf(i)
			if err != nil || n < 0 || n >= v.Len() {
				return nil, fmt.Errorf("there is no element %v of %d", i, v.Len())
			}
			item = v.Index(n).Interface()
		case reflect.Invalid:
			return nil, errNil
		default:
			return nil, fmt.Errorf("a %s has no elements", v.Type())
		}
	}
	return item, nil
}

func numberOf(x any) (int, error) {
	v := reflect.ValueOf(x)
	if !v.IsValid() || !v.CanInt() {
		return 0, fmt.Errorf("%v is no whole number", x)
	}
	return int(v.Int()), nil
}

// shells are the languages that scripts are checked as, by the interpreter that
// their first line names.
var shells = map[string]syntax.LangVariant{
	"sh": syntax.LangPOSIX, "dash": syntax.LangPOSIX, "ash": syntax.LangPOSIX,
	"bash": syntax.LangBash, "ksh": syntax.LangMirBSDKorn, "mksh": syntax.LangMirBSDKorn,
}

// shell checks the output's syntax for the shell that its first line names, or for sh if it
// names no program. An unknown shell is a diagnostic.
func (o *output) shell() *diag.Diagnostic {
	interpreter := interpreterOf(string(o.text))
	language, known := shells[interpreter]
	if !known {
		d := o.broken("shell script", 1,
			"its first line names "+interpreter).Hinting("name sh or bash, or give the file the content " +
			"type text, which is not looked at")
		return &d
	}
	_, err := syntax.NewParser(syntax.Variant(language)).Parse(
		&shallowReader{strings.NewReader(string(o.text))}, o.path)
	if err == nil {
		return nil
	}
	line, message := 0, err.Error()
	var parse syntax.ParseError
	var other syntax.LangError
	switch {
	case errors.As(err, &parse):
		line, message = int(parse.Pos.Line()), parse.Text
	case errors.As(err, &other):
		line = int(other.Pos.Line())
		message = strings.TrimPrefix(message, o.path+":"+other.Pos.String()+": ")
	}
	d := o.broken("script for "+interpreter, line, message)
	if language == syntax.LangPOSIX {
		*d = d.Hinting("begin with #!/bin/bash where the script is for bash")
	}
	return d
}

// interpreterOf returns the program that a script's first line names. It returns sh if the line
// does not name a program.
func interpreterOf(script string) string {
	first, _, _ := strings.Cut(script, "\n")
	command, named := strings.CutPrefix(first, "#!")
	words := strings.Fields(command)
	if !named || len(words) == 0 {
		return "sh"
	}
	name := path.Base(words[0])
	for _, word := range words[1:] {
		if name != "env" {
			break
		}
		if !strings.HasPrefix(word, "-") && !strings.Contains(word, "=") {
			name = path.Base(word)
		}
	}
	return name
}

// deepest is how many calls of functions the parser may be in.
const deepest = 10_000

// shallowReader stops the parser if it is in too many calls. The parser calls itself for nested
// input, without a bound, and a program does not survive the end of its stack.
type shallowReader struct{ io.Reader }

func (r *shallowReader) Read(p []byte) (int, error) {
	var caller [1]uintptr
	if runtime.Callers(deepest, caller[:]) > 0 {
		return 0, errors.New("it is nested too deeply")
	}
	return r.Reader.Read(p)
}

// directive matches a directive of a format, with its flags, numbers and verb
// (https://pkg.go.dev/fmt#hdr-Printing). The characters of the first group are not verbs, so
// the character after them is the verb.
var directive = lazyregexp.New(`(?s)%([-+# 0-9.*\[\]]*)(.)`)

// unfit is how fmt writes that a format does not fit.
var unfit = lazyregexp.New(`%!.?\((?:BAD[A-Z]+|MISSING|NOVERB|EXTRA |<nil>|[^()]*=)`)

// printf is fmt.Sprintf with two more errors. One is for a format that does not fit its arguments.
// The other is for a format that writes the memory address of a value, because the address differs
// in each build.
func printf(format string, args ...any) (string, error) {
	nested := false
	texts := strings.ReplaceAll(format, "%%", "%")
	for _, a := range args {
		texts += "\n" + fmt.Sprint(a)
		walk(reflect.ValueOf(a), 0, func(v reflect.Value, depth int) {
			nested = nested || depth > 0 && v.Kind() == reflect.Pointer
		})
	}
	for _, d := range directive.FindAllStringSubmatch(format, -1) {
		// A pointer in a list is its text for these verbs, and a number for others.
		text := strings.Contains("vsqT%", d[2]) && !strings.Contains(d[1], "#")
		if d[2] == "p" || nested && !text {
			return "", fmt.Errorf(
				"%s writes where in memory a value is, which is somewhere else in each build", d[0])
		}
	}
	out := fmt.Sprintf(format, args...)
	for _, at := range unfit.FindAllIndex([]byte(out), -1) {
		if !strings.Contains(texts, out[at[0]:at[1]]) { // no formatted text looks like it
			return "", fmt.Errorf("the format does not fit what is formatted: %.62s", out[at[0]:])
		}
	}
	return out, nil
}

// decimal is a float as its author wrote it. Templates write the same text. The verbs of
// printf for floats, and arithmetic functions, use its number.
type decimal string

// Float64 returns the number, with the method that sprig's functions look for.
func (d decimal) Float64() (float64, error) { return strconv.ParseFloat(string(d), 64) }

// MarshalJSON writes the number as its author did.
func (d decimal) MarshalJSON() ([]byte, error) { return []byte(d), nil }

// Format writes the text, or for the verbs of floats the number.
func (d decimal) Format(state fmt.State, verb rune) {
	var x any = string(d)
	switch verb {
	case 'e', 'E', 'f', 'F', 'g', 'G':
		if f, err := d.Float64(); err == nil {
			x = f
		}
	}
	_, _ = fmt.Fprintf(state, fmt.FormatString(state, verb), x) // to a buffer of fmt's
}

// arithmetic are the functions of sprig that count. Their arguments are floats for decimals.
var arithmetic = namesOf("int int64 float64 add1 add sub div mod mul biggest max min" +
	" add1f addf subf divf mulf maxf minf ceil floor round")
