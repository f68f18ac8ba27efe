package compose

import (
	"strings"
	"sync"

	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/model"
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

// ask has CUE answer a call, once for all tuples.
func (m *merger) ask(c expr.Call) expr.Result {
	var b strings.Builder
	b.WriteString(string(c.Contract))
	for _, t := range c.Terms {
		b.WriteByte(0)
		b.WriteString(string(t))
	}
	if c.Value != nil {
		b.WriteByte(1)
		b.WriteString(textOf(*c.Value))
	}
	key := b.String()
	if r, seen := m.memo.load(key); seen {
		return r
	}
	r := m.eval.Eval([]expr.Call{c})[0]
	m.memo.store(key, r)
	return r
}

// textOf identifies a value. JSON does not tell a secret from a struct.
func textOf(v model.Value) string {
	if holdsSecret(v) {
		return expr.Text(v)
	}
	return v.String()
}
