// Package again starts a program again from its beginning, with a state that the program passes
// on to itself. The work until then cannot be stopped in any other way.
package again

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/internal/scratch"
)

// stateEnv is the variable with which the program begins again: its state.
const stateEnv = "KALYPSO_INTERNAL_AGAIN"

// Begin must be called at the beginning of a program that may call With. If the program has
// started again, Begin decodes the state into a pointer.
func Begin(state any) error {
	if err := makeReplaceable(); err != nil {
		return fmt.Errorf("begin in a process of its own: %w", err)
	}
	text := os.Getenv(stateEnv)
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), state); err != nil {
		return fmt.Errorf("%s is for this program itself, which begins again with it: %w", stateEnv, err)
	}
	scratch.Sweep() // the state at the restart
	return os.Unsetenv(stateEnv)
}

// With makes the program begin again with a state. It returns only with an error.
func With(state any) error {
	r, err := replacementWith(state)
	if err != nil {
		return err
	}
	return replaceProcess(r.program, r.args, r.variables)
}

// replacement is the program that replaces the process.
type replacement struct {
	program         string
	args, variables []string
	state           string // the value of stateEnv among the variables
}

// replacementWith returns this program, with a state.
func replacementWith(state any) (r replacement, err error) {
	text, err := json.Marshal(state)
	if err != nil {
		return r, err
	}
	if r.program, err = os.Executable(); err != nil {
		return r, err
	}
	r.variables = slices.DeleteFunc(os.Environ(),
		func(v string) bool { return strings.HasPrefix(v, stateEnv+"=") })
	r.args, r.state = os.Args, string(text)
	r.variables = append(r.variables, stateEnv+"="+r.state)
	return r, nil
}
