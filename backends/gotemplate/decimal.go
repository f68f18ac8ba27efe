package gotemplate

import (
	"fmt"
	"reflect"
	"strconv"
)

// decimal is a float as its author wrote it. Templates write it so; the verbs of
// printf for floats, and what counts, take its number.
type decimal string

// Float64 returns the number, as sprig's functions ask for it.
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

// floats replaces decimals by floats.
func floats(args []reflect.Value) {
	for i, a := range args {
		if d, is := a.Interface().(decimal); is {
			if f, err := d.Float64(); err == nil {
				args[i] = reflect.ValueOf(f)
			}
		}
	}
}
