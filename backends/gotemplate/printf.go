package gotemplate

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/kalypso-io/kalypso/internal/lazyregexp"
)

// directive is one of a format, with its flags, numbers and verb
// (https://pkg.go.dev/fmt#hdr-Printing). None of the first is a verb, so that what
// follows them is.
var directive = lazyregexp.New(`(?s)%([-+# 0-9.*\[\]]*)(.)`)

// unfit is how fmt writes that a format does not fit.
var unfit = lazyregexp.New(`%!.?\((?:BAD[A-Z]+|MISSING|NOVERB|EXTRA |<nil>|[^()]*=)`)

// printf is fmt.Sprintf, but that a format which does not fit what is formatted is
// an error, and so is one that writes where in memory a value is: that is
// somewhere else in each build.
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
			return "", fmt.Errorf("%s writes where in memory a value is, which is somewhere else in each build", d[0])
		}
	}
	out := fmt.Sprintf(format, args...)
	for _, at := range unfit.FindAllIndex([]byte(out), -1) {
		if !strings.Contains(texts, out[at[0]:at[1]]) { // nothing that is formatted looks like it
			return "", fmt.Errorf("the format does not fit what is formatted: %.62s", out[at[0]:])
		}
	}
	return out, nil
}
