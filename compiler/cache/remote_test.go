package cache

import (
	"bytes"
	"context"
	"sync"
)

// memory is a Remote in memory. change, if set, changes what it gives.
type memory struct {
	mu       sync.Mutex
	data     map[string][]byte
	readOnly bool
	gets     int
	change   func(key string, data []byte) ([]byte, error)
	refuse   error // of Put
}

func newMemory() *memory { return &memory{data: map[string][]byte{}} }

func (m *memory) Get(_ context.Context, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gets++
	data, ok := m.data[key]
	if m.change != nil {
		return m.change(key, bytes.Clone(data))
	}
	if !ok {
		return nil, ErrNotFound
	}
	return bytes.Clone(data), nil
}

func (m *memory) Put(_ context.Context, key string, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refuse != nil {
		return m.refuse
	}
	m.data[key] = bytes.Clone(data)
	return nil
}

func (m *memory) ReadOnly() bool { return m.readOnly }
