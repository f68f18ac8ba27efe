package state

import (
	"fmt"
	"slices"
)

// State is the state of an assignment on a cluster. Its numbers are those in databases.
type State uint8

// The states.
const (
	OK          State = iota // runs what is wanted, and is ready
	Progressing              // is about to
	Behind                   // runs what its branch had before
	Drifted                  // runs what was never promoted, or was changed on the cluster
	Stale                    // the cluster has reported, but not lately
	Missing                  // nobody has reported, or it is not on the cluster
	Failed                   // runs what is wanted, and fails, or could not apply anything
	Suspended                // somebody suspended it in its reconciler
	numStates
)

var names = [numStates]string{"ok", "progressing", "behind", "drifted", "stale", "missing", "failed", "suspended"}

// order has all states, the worst last.
var order = [numStates]State{OK, Progressing, Behind, Drifted, Suspended, Stale, Missing, Failed}

// States returns all states, the worst last.
func States() []State {
	return slices.Clone(order[:])
}

// worse reports whether a state is worse than another one.
func (s State) worse(other State) bool {
	return slices.Index(order[:], s) > slices.Index(order[:], other)
}

// Names returns the names of all states, in their order.
func Names() (out []string) {
	for _, s := range order {
		out = append(out, s.String())
	}
	return out
}

// String returns the name that the API uses.
func (s State) String() string { return names[s] }

// MarshalText returns the name of the state.
func (s State) MarshalText() ([]byte, error) { return []byte(names[s]), nil }

// UnmarshalText reads the name of a state.
func (s *State) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	*s = parsed
	return err
}

// Parse returns the state of a name.
func Parse(name string) (State, error) {
	for i, n := range names {
		if n == name {
			return State(i), nil
		}
	}
	return 0, fmt.Errorf("%.40q is no state: there are %v", name, Names())
}

// Tally counts assignments on clusters by their state. The states add up to Wanted.
type Tally [numStates]int

// Wanted returns how many there are in all states.
func (t *Tally) Wanted() int {
	n := 0
	for _, c := range t {
		n += c
	}
	return n
}

// Add adds the counts of another tally.
func (t *Tally) Add(other *Tally) {
	for i := range t {
		t[i] += other[i]
	}
}
