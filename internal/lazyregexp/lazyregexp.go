// Package lazyregexp has regular expressions that are compiled when they are first
// used. One that is compiled as a package is initialized costs every command time.
package lazyregexp

import (
	"os"
	"regexp"
	"strings"
	"sync"
)

// Regexp is a regular expression that is compiled at the first call of a method. It has
// methods of regexp.Regexp, and goroutines may share it.
type Regexp struct{ compiled func() *regexp.Regexp }

// tested is true in the process of a test. Package testing would know that, but is not part of a
// program.
var tested = len(os.Args) > 0 && strings.HasSuffix(os.Args[0], ".test")

// New returns a regular expression. If it is malformed, its first use panics, and in tests New
// itself panics.
func New(expr string) Regexp {
	r := Regexp{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })}
	if tested {
		r.compiled()
	}
	return r
}

func (r Regexp) MatchString(s string) bool { return r.compiled().MatchString(s) }

func (r Regexp) Match(b []byte) bool { return r.compiled().Match(b) }

func (r Regexp) Find(b []byte) []byte { return r.compiled().Find(b) }

func (r Regexp) FindString(s string) string { return r.compiled().FindString(s) }

func (r Regexp) FindStringSubmatch(s string) []string { return r.compiled().FindStringSubmatch(s) }

func (r Regexp) FindStringSubmatchIndex(s string) []int {
	return r.compiled().FindStringSubmatchIndex(s)
}

func (r Regexp) FindAllIndex(b []byte, n int) [][]int { return r.compiled().FindAllIndex(b, n) }

func (r Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	return r.compiled().FindAllStringSubmatch(s, n)
}

func (r Regexp) ReplaceAllString(s,
	by string) string {
	return r.compiled().ReplaceAllString(s, by)
}

func (r Regexp) ReplaceAllStringFunc(s string, by func(string) string) string {
	return r.compiled().ReplaceAllStringFunc(s, by)
}
