package state

import "slices"

// Environments are some environments, by name; nil for all.
type Environments []string

// In returns the environment of a name; all for "".
func In(name string) Environments {
	if name == "" {
		return nil
	}
	return Environments{name}
}

// Has reports whether an environment is among them.
func (e Environments) Has(name string) bool { return e == nil || slices.Contains(e, name) }

// Names returns all environments that the platform has, in the order of promotion, also those of
// which nothing could be read.
func (f *Fleet) Names() []string {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return slices.Clone(f.names)
}
