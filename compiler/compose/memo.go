package compose

import (
	"sync"

	"github.com/kalypso-io/kalypso/compiler/expr"
)

// memo remembers answers of CUE for the goroutines of one composition.
type memo struct {
	mu      sync.RWMutex
	results map[string]expr.Result
}

func (m *memo) load(key string) (expr.Result, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	r, ok := m.results[key]
	return r, ok
}

func (m *memo) store(key string, r expr.Result) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.results[key] = r
}
