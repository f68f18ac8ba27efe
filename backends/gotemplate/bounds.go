package gotemplate

import (
	"fmt"
	"reflect"
	"strings"
)

// What one run of a template may take. Work is about a nanosecond, and the
// weight of a value about the bytes of its text.
const (
	maxWork   = 1 << 26
	maxWeight = 4 << 20
	maxDepth  = 100     // of values in values
	maxCalls  = 200     // of templates in templates
	maxOutput = 4 << 20 // bytes that a template makes

	stepWork  = 64 // of a node, and of a call
	nodeWork  = 16 // of a value in a value
	maxNumber = 1 << 40
)

// mebibytes writes a bound for people.
func mebibytes(n int) string { return fmt.Sprintf("%d MiB", n>>20) }

// exceeded is the error of a run that is stopped.
type exceeded string

func (e exceeded) Error() string { return string(e) }

// meter counts the work of one run. text/template makes errors of panics in
// functions, so that is how a run is stopped.
type meter struct {
	work    int
	calls   int // of templates in templates
	stopped error
}

func (m *meter) stop(format string, args ...any) {
	m.stopped = exceeded(fmt.Sprintf(format, args...))
	panic(m.stopped)
}

func (m *meter) spend(work int) {
	if m.work += work; m.work > maxWork {
		m.stop("it goes on for too long: a loop or a recursion has too many rounds, or works on too much")
	}
}

// enter and leave count the templates that a run is in.
func (m *meter) enter() string {
	if m.calls++; m.calls > maxCalls {
		m.stop("templates are in templates more than %d times: one calls itself without an end", maxCalls)
	}
	return ""
}

func (m *meter) leave() string {
	m.calls--
	return ""
}

// weigh spends the work of going through a value once, which every use of it
// does. A value of values may be far larger than what it is made of, or contain
// itself.
func (m *meter) weigh(v reflect.Value) int {
	weight := m.weight(v, 0, 0)
	m.spend(weight)
	return weight
}

func (m *meter) weight(v reflect.Value, so, depth int) int {
	if so += nodeWork; so > maxWeight {
		m.stop("a value is larger than %s", mebibytes(maxWeight))
	}
	if depth > maxDepth {
		m.stop("a value has more than %d levels, or contains itself", maxDepth)
	}
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if !v.IsNil() {
			if addressed(v) {
				m.stop("a %s has no text but where it is in memory", v.Type())
			}
			return m.weight(v.Elem(), so, depth+1)
		}
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		m.stop("a %s has no text but where it is in memory", v.Type())
	case reflect.String:
		if so += v.Len(); so > maxWeight {
			m.stop("a value is larger than %s", mebibytes(maxWeight))
		}
	case reflect.Slice, reflect.Array:
		if k := v.Type().Elem().Kind(); k <= reflect.Complex128 {
			return so + v.Len()*nodeWork
		}
		for i := range v.Len() {
			so = m.weight(v.Index(i), so, depth+1)
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			so = m.weight(it.Value(), m.weight(it.Key(), so, depth+1), depth+1)
		}
	}
	return so
}

// bound returns a function that does what another does, within bounds: what it is
// given is weighed, what it makes of it is estimated before it does, and what it
// gives is weighed again.
func (m *meter) bound(name string, function any) any {
	f := reflect.ValueOf(function)
	return reflect.MakeFunc(f.Type(), func(args []reflect.Value) []reflect.Value {
		m.spend(stepWork)
		given := 0
		if !shallow[name] {
			for _, a := range args {
				given += m.weigh(a)
			}
		}
		if makes, grows := growth[name]; grows {
			estimate := makes(call{flat(args), given})
			if estimate > maxWeight {
				m.stop("%s makes more than %s, or works on too much", name, mebibytes(maxWeight))
			}
			m.spend(estimate)
		}
		var out []reflect.Value
		if f.Type().IsVariadic() {
			out = f.CallSlice(args)
		} else {
			out = f.Call(args)
		}
		if !shallow[name] {
			for _, v := range out {
				m.weigh(v)
			}
		}
		return out
	}).Interface()
}

// flat returns the arguments of a call one by one.
func flat(args []reflect.Value) []any {
	var out []any
	for i, a := range args {
		if i == len(args)-1 && a.Kind() == reflect.Slice {
			for j := range a.Len() {
				out = append(out, a.Index(j).Interface())
			}
			return out
		}
		out = append(out, a.Interface())
	}
	return out
}

// shallow are the functions that look at no more of a value than its kind, or one
// of its fields.
var shallow = func() map[string]bool {
	all := map[string]bool{}
	for name := range strings.FieldsSeq("get hasKey set unset dig index default empty coalesce ternary list tuple dict first mustFirst last mustLast " +
		"kindOf kindIs typeOf typeIs typeIsLike fail") {
		all[name] = true
	}
	return all
}()
