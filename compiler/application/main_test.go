//go:build unix

package application_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/compiler/application"
	"github.com/kalypso-io/kalypso/compiler/worker"
	"github.com/kalypso-io/kalypso/internal/testing/commandtest"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

// childEnv is the variable with the child that the test binary runs instead of tests.
const childEnv = "KALYPSO_TEST_PROJECT"

func TestMain(m *testing.M) {
	if text := os.Getenv(childEnv); text != "" {
		if err := runChild(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	isolated.Environment()
	commandtest.Main(m)
}

// child writes an application's tree in a process of its own.
type child struct {
	Dir, To string
	Kill    *kill // nil for never
}

// kill is when a process kills itself, as kill -9 does.
type kill struct {
	Rendering bool // when it first needs a worker
	// Journal is a file, instead of Rendering: once it is there, the process has begun
	// to change its output.
	Journal string
	After   time.Duration // how long after that
}

func runChild(text string) error {
	var c child
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	r := request(c.Dir)
	if c.Kill != nil {
		if c.Kill.Rendering {
			r.Workers = worker.NewPool(1, func() (*exec.Cmd, error) { killSelf(); return nil, errors.New("it lives") })
		}
		if c.Kill.Journal != "" {
			go c.Kill.watch()
		}
	}
	a, _, err := application.Write(context.Background(), r, application.Output{Dir: c.To})
	if err == nil && len(a.Diagnostics) > 0 {
		err = errors.New(strings.Join(lines(a.Diagnostics), "\n"))
	}
	return err
}

func killSelf() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) }

// watch kills the process once the journal is there.
func (k *kill) watch() {
	for {
		if _, err := os.Stat(k.Journal); err == nil {
			for begun := time.Now(); time.Since(begun) < k.After; {
			}
			killSelf()
		}
	}
}

// run runs the process, and reports whether it was killed. The error has the output of the
// process.
func (c child) run() (killed bool, err error) {
	text, err := json.Marshal(c)
	if err != nil {
		return false, err
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	said, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return c.Kill != nil && status.Signal() == syscall.SIGKILL, nil
		}
		return false, errors.New(strings.TrimSpace(string(said)))
	}
	return false, err
}
