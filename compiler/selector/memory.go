package selector

import (
	"strings"
	"sync"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// Satisfier reports whether a value satisfies an expression. An Index calls it once for
// each expression and value, and never for two at a time. If several indexes share a
// Satisfier and several goroutines use them, these goroutines may call it at the same time.
type Satisfier func(e model.Expr, value string) bool

// memory remembers a Satisfier's answers.
type memory struct {
	ask     Satisfier
	mu      sync.RWMutex
	answers map[question]bool
}

type question struct {
	expr  model.Expr
	value string
}

func (m *memory) satisfies(e model.Expr, value string) bool {
	q := question{e, value}
	m.mu.RLock()
	answer, known := m.answers[q]
	m.mu.RUnlock()
	if known {
		return answer
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if answer, known := m.answers[q]; known {
		return answer
	}
	if m.answers == nil {
		m.answers = make(map[question]bool)
	}
	answer = m.ask(e, value)
	m.answers[q] = answer
	return answer
}

// negated reports whether an expression excludes values, as !=, !~ and matchN(0, …) do,
// instead of requiring one. If a name has several values, one of them can meet a
// requirement. All of them must meet an exclusion.
func negated(e model.Expr) bool {
	text := strings.TrimLeft(string(e), " \t\n(")
	return strings.HasPrefix(text, "!=") || strings.HasPrefix(text, "!~") ||
		strings.HasPrefix(text, "matchN(0,")
}
