package again

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/kalypso-io/kalypso/internal/scratch"
)

// askEnv is the variable with the file in which a child process requests to be started again. The
// file has the value for stateEnv.
const askEnv = "KALYPSO_INTERNAL_ASK"

// Below runs this program in a child process, which begins with a state, and returns its output.
// The input of the child ends when this process ends.
func Below(ctx context.Context, state any) ([]byte, error) {
	r, err := replacementWith(state)
	if err != nil {
		return nil, err
	}
	in, held, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	defer held.Close()
	var out bytes.Buffer
	code, err := runBelow(ctx, replacement{r.program, r.args, nil, r.state}, in, &out)
	if err == nil && code != 0 {
		err = fmt.Errorf("it ended with exit code %d", code)
	}
	return out.Bytes(), err
}

// runBelow runs a program in a child process. It runs the program again as long as it requests
// that, and returns its exit code.
func runBelow(ctx context.Context, r replacement, in *os.File, out io.Writer) (code int,
	err error) {
	dir, remove, err := scratch.Dir("again")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	ask := filepath.Join(dir, "state")
	for {
		cmd := exec.CommandContext(ctx, r.program)
		cmd.Args, cmd.Stdin, cmd.Stdout, cmd.Stderr = r.args, in, out, os.Stderr
		cmd.Env = append(os.Environ(), stateEnv+"="+r.state, askEnv+"="+ask)
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
		r.state = string(asked)
	}
}

// askAgain requests that the parent process starts this one again, with the value of stateEnv in
// variables. It reports whether it could.
func askAgain(variables []string) bool {
	for _, v := range variables {
		if state, is := strings.CutPrefix(v, stateEnv+"="); is && os.Getenv(askEnv) != "" {
			return os.WriteFile(os.Getenv(askEnv), []byte(state), 0o600) == nil
		}
	}
	return false
}
