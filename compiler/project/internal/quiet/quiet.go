// Package quiet keeps libraries from logging. Helm and Kustomize warn through the
// standard logger, of which a program has one: what is worth saying is a
// diagnostic, and stderr is the program's.
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

// Begin drops what the standard logger gets until the returned function was
// called, and until everybody else who called Begin has called theirs. It may be
// called from several goroutines; nobody may set the logger's output meanwhile.
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
