package gotemplate

import (
	"fmt"
	"math"
	"reflect"
	"regexp/syntax"
	"strconv"
	"strings"
)

// The bounds of one run of a template: bytes of output, and steps. They depend only on the
// template and its data, so that a template fails in the same way on every machine.
const (
	maxOutput = 4 << 20 // bytes of output, and of the values of a call
	maxSteps  = 1 << 19 // a round of a loop, a node that writes, and a call are steps
	maxDepth  = 100     // of values in values
	maxCalls  = 200     // of templates in templates: text/template needs hours to return from 100,000

	stepSize  = 128 // bytes that a function reads or makes are a step
	nodeSize  = 16  // bytes, for a value in a value
	maxNumber = 1 << 40
)

// mebibytes writes a bound for people.
func mebibytes(n int) string { return fmt.Sprintf("%d MiB", n>>20) }

// exceeded is the error of a run that is stopped. text/template returns it if a function
// panics with it.
type exceeded string

// Error returns the bound, as a sentence about the template.
func (e exceeded) Error() string { return string(e) }

// spend counts steps, and panics with exceeded beyond the bound.
func (r *run) spend(steps int) {
	if r.steps += steps; r.steps > maxSteps {
		panic(exceeded(
			"it goes on for too long: a loop or a recursion has too many rounds, or works on too much"))
	}
}

// read counts the steps of text/template itself with a value. It compares texts byte by byte, and
// range sorts the keys of a mapping.
func (r *run) read(v reflect.Value) reflect.Value {
	of := v
	if of.Kind() == reflect.Interface {
		of = of.Elem()
	}
	switch of.Kind() {
	case reflect.String:
		r.spend(of.Len() / stepSize)
	case reflect.Map:
		r.spend(of.Len() / 2)
	}
	return v
}

// walk visits a value, and the values in it.
func walk(v reflect.Value, depth int, visit func(v reflect.Value, depth int)) {
	if v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	visit(v, depth)
	switch v.Kind() {
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			walk(v.Index(i), depth+1, visit)
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			walk(it.Key(), depth+1, visit)
			walk(it.Value(), depth+1, visit)
		}
	}
}

// measure returns the approximate number of bytes in the text of values, and adds them to the run's
// use. If there are too many, it panics with exceeded. The function set can make a value that
// contains itself. On such a value fmt would overflow the stack, which ends the process.
func (r *run) measure(values ...reflect.Value) int {
	size := 0
	for _, v := range values {
		walk(v, 0, func(v reflect.Value, depth int) {
			size += nodeSize
			if v.Kind() == reflect.String {
				size += v.Len()
			}
			if size > maxOutput {
				panic(exceeded("a value is larger than " + mebibytes(maxOutput)))
			}
			if depth > maxDepth {
				panic(exceeded(fmt.Sprintf("a value has more than %d levels, or contains itself", maxDepth)))
			}
		})
	}
	r.spend(size / stepSize)
	return size
}

// bounded returns a function of templates within the bounds of the run.
func (r *run) bounded(name string) any {
	f := reflect.ValueOf(functions()[name])
	return reflect.MakeFunc(f.Type(), func(args []reflect.Value) []reflect.Value {
		if last := len(args) - 1; f.Type().IsVariadic() {
			rest := args[last]
			args = args[:last:last]
			for i := range rest.Len() {
				args = append(args, rest.Index(i))
			}
		}
		r.spend(1)
		if shallow[name] {
			return f.Call(args)
		}
		c := call{args, r.measure(args...)}
		if estimate := growth[name]; estimate != nil {
			bytes := estimate(c)
			if bytes > maxOutput {
				panic(exceeded(
					fmt.Sprintf("%s makes more than %s, or works on too much", name, mebibytes(maxOutput))))
			}
			r.spend(int(bytes) / stepSize)
		}
		if arithmetic[name] {
			// Replace decimals by floats.
			for i, a := range args {
				if d, is := a.Interface().(decimal); is {
					if f, err := d.Float64(); err == nil {
						args[i] = reflect.ValueOf(f)
					}
				}
			}
		}
		out := f.Call(args)
		r.measure(out...)
		return out
	}).Interface()
}

func namesOf(text string) map[string]bool {
	all := map[string]bool{}
	for name := range strings.FieldsSeq(text) {
		all[name] = true
	}
	return all
}

// shallow are the functions that read no more of a value than its kind, or one of its fields.
var shallow = namesOf(
	"get hasKey set unset dig index default empty coalesce ternary list tuple dict first mustFirst" +
		" last mustLast kindOf kindIs typeOf typeIs typeIsLike fail")

// call is a call of a function, with the size of its arguments. Its numbers are floats,
// which do not overflow.
type call struct {
	args []reflect.Value
	size int
}

func (c call) number(i int) float64 { return float64(c.args[i].Int()) }

// length returns the length of an argument that is a text or a list.
func (c call) length(i int) float64 {
	v := c.args[i]
	if v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.String, reflect.Slice, reflect.Array:
		return float64(v.Len())
	}
	return 0
}

// count returns how often a text is in an argument.
func (c call) count(i int, text string) float64 {
	return float64(strings.Count(c.args[i].String(), text))
}

// growth are the functions whose result or work may be much larger than their arguments,
// with an estimate of its bytes.
var growth = map[string]func(call) float64{
	"repeat":    func(c call) float64 { return c.number(0) * c.length(1) },
	"indent":    indented,
	"nindent":   indented,
	"join":      func(c call) float64 { return c.length(0) * c.length(1) },
	"until":     func(c call) float64 { return counted(0, c.number(0), 1) },
	"untilStep": func(c call) float64 { return counted(c.number(0), c.number(1), c.number(2)) },
	"seq": func(c call) float64 {
		switch len(c.args) {
		case 1:
			return counted(1, c.number(0), 1)
		case 2:
			return counted(c.number(0), c.number(1), 1)
		case 3:
			return counted(c.number(0), c.number(2), c.number(1))
		}
		return 0
	},
	"replace":  func(c call) float64 { return c.count(2, c.args[0].String()) * c.length(1) },
	"wrapWith": func(c call) float64 { return (c.length(2)/max(c.number(0), 1) + 1) * c.length(1) },
	"printf":   formatted,

	"uniq": square, "mustUniq": square, "without": square, "mustWithout": square,

	"regexMatch": searchedOnce, "mustRegexMatch": searchedOnce, "regexFind": searchedOnce,
	"mustRegexFind": searchedOnce,
	"regexFindAll":  searched, "mustRegexFindAll": searched, "regexSplit": searched,
	"mustRegexSplit":  searched,
	"regexReplaceAll": replaced, "mustRegexReplaceAll": replaced,
	"regexReplaceAllLiteral": replaced, "mustRegexReplaceAllLiteral": replaced,
}

func indented(c call) float64 { return (c.count(1, "\n") + 1) * c.number(0) }

// counted is for a list of numbers.
func counted(from, to, step float64) float64 {
	if max(math.Abs(from), math.Abs(to), math.Abs(step)) >= maxNumber {
		return math.Inf(1) // adding up to it may overflow, and begin again below
	}
	return (math.Abs(to-from)/max(math.Abs(step), 1) + 2) * 2 * nodeSize
}

// square is for functions that compare all values with all others.
func square(c call) float64 {
	values := float64(c.size / nodeSize)
	return values * values / 64
}

// formatted is for printf: directives have widths, numbers or arguments, and may all write the same
// argument.
func formatted(c call) float64 {
	star := 0.0
	for _, a := range c.args[1:] {
		if n, err := numberOf(a.Interface()); err == nil {
			star = max(star, math.Abs(float64(n)))
		}
	}
	bytes := float64(c.size)
	for _, d := range directive.FindAllStringSubmatch(c.args[0].String(), -1) {
		for _, digits := range strings.FieldsFunc(d[1], func(r rune) bool { return r < '0' || r > '9' }) {
			width, _ := strconv.ParseFloat(digits, 64) // infinite if it does not fit
			bytes += width
		}
		bytes += float64(strings.Count(d[1], "*"))*star + float64(strings.Count(d[1], "[")*c.size)
	}
	return bytes
}

// searchedOnce is the work of one search with a regular expression: each instruction of its
// program runs for each character. Sixteen instructions take the time of a byte.
func searchedOnce(c call) float64 {
	re, err := syntax.Parse(c.args[0].String(), syntax.Perl)
	if err != nil {
		return 0
	}
	program, err := syntax.Compile(re.Simplify())
	if err != nil {
		return 0
	}
	return float64(len(program.Inst)) * (c.length(1) + 1) / 16
}

// searched is for all matches: the search for each may read the whole rest.
func searched(c call) float64 { return searchedOnce(c) * (c.length(1)/64 + 1) }

// replaced assumes a match at every character, and that each $ in the replacement stands for
// the whole text.
func replaced(c call) float64 {
	return searched(c) + (c.length(1)+1)*c.length(2) + c.count(2, "$")*c.length(1)
}
