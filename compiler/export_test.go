package compiler

import "github.com/kalypso-io/kalypso/backends"

// WrapBackends replaces every backend by what wrap makes of it, for builds that
// begin before the function that it returns is called.
func WrapBackends(wrap func(backends.Backend) backends.Backend) (restore func()) {
	before := allBackends
	allBackends = map[string]backends.Backend{}
	for name, b := range before {
		allBackends[name] = wrap(b)
	}
	return func() { allBackends = before }
}

// Anywhere lets trees be written where their own objects do not point.
func Anywhere(o Output) Output {
	o.anywhere = true
	return o
}
