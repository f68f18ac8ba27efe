package gotemplate

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/internal/lazyregexp"
)

// directive is one of a format, with its flags, numbers and verb
// (https://pkg.go.dev/fmt#hdr-Printing). None of the first is a verb, so that what
// follows them is.
var directive = lazyregexp.New(`(?s)%([-+# 0-9.*\[\]]*)(.)`)

// printf is fmt.Sprintf, but that a format which does not fit what is formatted is
// an error, and so is one that writes where in memory a value is: that is
// somewhere else in each build.
func printf(format string, args ...any) (string, error) {
	nested := slices.ContainsFunc(args, func(x any) bool { return pointed(reflect.ValueOf(x), 0) })
	for _, d := range directive.FindAllStringSubmatch(format, -1) {
		// A pointer in a list is its text for these verbs, and a number for others.
		text := strings.Contains("vsqT%", d[2]) && !strings.Contains(d[1], "#")
		if d[2] == "p" || nested && !text {
			return "", fmt.Errorf("%s writes where in memory a value is, which is somewhere else in each build", d[0])
		}
	}
	out := fmt.Sprintf(format, args...)
	// Only fmt itself writes %! where neither the format nor a value has a !.
	if strings.Contains(out, "%!") {
		plain := make([]any, len(args))
		for i, a := range args {
			if a != nil {
				plain[i] = unmarked(reflect.ValueOf(a)).Interface()
			}
		}
		checked := fmt.Sprintf(strings.ReplaceAll(format, "!", "_"), plain...)
		if _, bad, found := strings.Cut(checked, "%!"); found {
			return "", errors.New("the format does not fit what is formatted: %!" + upTo(bad, 60))
		}
	}
	return out, nil
}

func upTo(text string, n int) string {
	if runes := []rune(text); len(runes) > n {
		return string(runes[:n]) + "..."
	}
	return text
}

// addressed says whether a value is a pointer that fmt writes as an address.
func addressed(v reflect.Value) bool {
	if v.Kind() != reflect.Pointer || !v.CanInterface() {
		return false
	}
	switch v.Interface().(type) {
	case fmt.Stringer, error:
		return false
	}
	return true
}

// pointed says whether there is a pointer in a value.
func pointed(v reflect.Value, depth int) bool {
	switch v.Kind() {
	case reflect.Interface:
		return pointed(v.Elem(), depth)
	case reflect.Pointer:
		return depth > 0
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if pointed(v.Index(i), depth+1) {
				return true
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if pointed(it.Value(), depth+1) {
				return true
			}
		}
	}
	return false
}

// unmarked returns a value of the same type, with another character in the place
// of each ! in it.
func unmarked(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.String:
		out.SetString(strings.ReplaceAll(v.String(), "!", "_"))
		return out
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if v.Int() == '!' {
			out.SetInt('_')
			return out
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if v.Uint() == '!' {
			out.SetUint('_')
			return out
		}
	case reflect.Interface:
		if !v.IsNil() {
			out.Set(unmarked(v.Elem()))
			return out
		}
	case reflect.Slice:
		out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		for i := range v.Len() {
			out.Index(i).Set(unmarked(v.Index(i)))
		}
		return out
	case reflect.Map:
		out.Set(reflect.MakeMap(v.Type()))
		for it := v.MapRange(); it.Next(); {
			out.SetMapIndex(unmarked(it.Key()), unmarked(it.Value()))
		}
		return out
	}
	return v
}
