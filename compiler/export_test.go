package compiler

import "github.com/kalypso-io/kalypso/backends"

// WrapBackends replaces every backend by the result of wrap. It affects builds that start before
// the caller calls restore.
func WrapBackends(wrap func(backends.Backend) backends.Backend) (restore func()) {
	before := allBackends
	allBackends = map[string]backends.Backend{}
	for name, b := range before {
		allBackends[name] = wrap(b)
	}
	return func() { allBackends = before }
}

// Anywhere allows an output to write trees to places other than the ones in their own objects.
func Anywhere(o Output) Output {
	o.anywhere = true
	return o
}
