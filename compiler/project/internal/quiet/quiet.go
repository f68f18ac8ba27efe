// Package quiet keeps libraries from logging. Helm and Kustomize print warnings through the
// standard logger, and a program has only one. kalypso reports problems as diagnostics, and
// stderr belongs to the program.
package quiet

import (
	"io"
	"log"
	"sync"
)

var (
	mu     sync.Mutex
	users  int
	before io.Writer
)

// Begin drops the output of the standard logger until the caller calls the returned function,
// and until all other callers of Begin have called theirs. It may be called from several
// goroutines. Nobody may set the logger's output meanwhile.
func Begin() (end func()) {
	mu.Lock()
	defer mu.Unlock()
	if users++; users == 1 {
		before = log.Writer()
		log.SetOutput(io.Discard)
	}
	return func() {
		mu.Lock()
		defer mu.Unlock()
		if users--; users == 0 {
			log.SetOutput(before)
		}
	}
}
