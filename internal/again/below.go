package again

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/kalypso-io/kalypso/internal/scratch"
)

// askEnv is the variable with the file in which a process below another one asks to be begun
// again. It holds what is to be in stateEnv.
const askEnv = "KALYPSO_INTERNAL_ASK"

// runBelow runs a program in a process below this one, again for as long as it asks for that,
// and returns how it ends.
func runBelow(program string, args []string) (code int, err error) {
	dir, remove, err := scratch.Dir("again")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	ask := filepath.Join(dir, "state")
	for state := "{}"; ; {
		cmd := &exec.Cmd{Path: program, Args: args, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
		cmd.Env = append(os.Environ(), stateEnv+"="+state, askEnv+"="+ask)
		if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
			return 0, err
		}
		asked, err := os.ReadFile(ask)
		if errors.Is(err, os.ErrNotExist) {
			return cmd.ProcessState.ExitCode(), nil
		}
		if err := errors.Join(err, os.Remove(ask)); err != nil {
			return 0, err
		}
		state = string(asked)
	}
}

// askAgain asks the process above this one to begin it again, with the value of stateEnv among
// some variables. It says whether it could.
func askAgain(variables []string) bool {
	for _, v := range variables {
		if state, is := strings.CutPrefix(v, stateEnv+"="); is && os.Getenv(askEnv) != "" {
			return os.WriteFile(os.Getenv(askEnv), []byte(state), 0o600) == nil
		}
	}
	return false
}
