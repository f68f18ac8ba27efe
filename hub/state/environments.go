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
