//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// dialogue is a kalypso on a terminal.
type dialogue struct {
	*testing.T
	cmd             *exec.Cmd
	controller, tty *os.File
	typing          sync.Mutex // one answer, of a person or the terminal, at a time
	output          chan []byte
	seen            bytes.Buffer // output that no expectation has used yet
	exited          chan struct{}
}

// talk starts kalypso in a folder.
func talk(t *testing.T, dir string, args ...string) *dialogue {
	t.Helper()
	d := &dialogue{T: t, cmd: exec.CommandContext(t.Context(), "kalypso", args...), output: make(chan []byte, 1000), exited: make(chan struct{})}
	var err error
	if d.controller, d.tty, err = pty.Open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.controller.Close() })
	d.cmd.Dir, d.cmd.Env = dir, append(os.Environ(), "HOME="+t.TempDir(), "TERM=xterm", "NO_COLOR=1")
	d.cmd.Stdin, d.cmd.Stdout, d.cmd.Stderr = d.tty, d.tty, d.tty
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go d.show()
	go func() {
		_ = d.cmd.Wait() // its state has the exit code
		_ = d.tty.Close()
		close(d.exited)
	}()
	return d
}

// show acts as a terminal, and answers questions about the cursor's position.
func (d *dialogue) show() {
	defer close(d.output)
	for {
		chunk := make([]byte, 4096)
		n, err := d.controller.Read(chunk)
		if err != nil {
			return // the other side is closed
		}
		for range bytes.Count(chunk[:n], []byte("\x1b[6n")) {
			d.send("\x1b[10;40R")
		}
		d.output <- chunk[:n]
	}
}

// send types a text that is read on its own, because text that arrives together with the cursor's
// position is lost.
func (d *dialogue) send(keys string) {
	d.typing.Lock()
	defer d.typing.Unlock()
	unread := []unix.PollFd{{Fd: int32(d.tty.Fd()), Events: unix.POLLIN}}
	for n, err := 1, error(nil); n > 0 && err == nil; n, err = unix.Poll(unread, 0) {
		runtime.Gosched()
	}
	_, _ = d.controller.WriteString(keys) // if the process has ended, the expected text does not appear
}

// expect waits until a text is printed.
func (d *dialogue) expect(text string) {
	d.Helper()
	for !strings.Contains(d.seen.String(), text) {
		select {
		case chunk, ok := <-d.output:
			if !ok {
				d.Fatalf("it ended without %q:\n%q", text, &d.seen)
			}
			d.seen.Write(chunk)
		case <-time.After(20 * time.Second):
			d.Fatalf("there is no %q in\n%q", text, &d.seen)
		}
	}
	_, after, _ := strings.Cut(d.seen.String(), text)
	d.seen.Reset()
	d.seen.WriteString(after)
}

// answer waits for a question, and types an answer.
func (d *dialogue) answer(question, keys string) {
	d.Helper()
	d.expect(question)
	d.send(keys)
}

// ends waits for the end, and returns the exit code.
func (d *dialogue) ends() int {
	d.Helper()
	for range d.output { //nolint:revive // until it is closed
	}
	<-d.exited
	return d.cmd.ProcessState.ExitCode()
}

const (
	enter     = "\r"
	down      = "\x1b[B"
	interrupt = "\x03"
)

// init asks for everything that the flags do not specify, and asks again after an invalid answer.
func TestInitAsks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := talk(t, dir, "init")
	d.answer("What do you begin?", enter)
	d.answer("In which folder? (.)", "shop"+enter)
	d.answer("Which environments, in the order in which commits come to them? (dev, stage, prod)", "dev,Prod"+enter)
	d.expect(`"Prod" is no name`)
	d.answer("Which environments", "test, live"+enter)
	d.answer("How do clusters receive", down+enter)
	d.answer("Who reports whether clusters run a commit", down+enter)
	d.expect("cd shop")
	d.expect("kalypso promote --all --hub URL")
	if code := d.ends(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	text, err := os.ReadFile(filepath.Join(dir, "shop", "platform.cue"))
	if err != nil || !strings.Contains(string(text), "argocd") || !strings.Contains(string(text), `live: {`) ||
		!strings.Contains(string(text), `gates: rollout: source: "hub"`) {
		t.Errorf("%v\n%s", err, text)
	}
	exists(t, dir, "shop/environments/test", "shop/environments/live")
}

// An application has no reconciler. init does not ask about anything that a flag or the argument
// specifies.
func TestInitAsksOfApplication(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := talk(t, dir, "init", "store", "--environments", "dev")
	d.answer("What do you begin?", down+enter)
	d.answer("Who reports whether clusters run a commit", enter)
	d.expect("kalypso project --to out")
	if code := d.ends(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	exists(t, dir, "store/chart", "store/environments/dev")
	for _, args := range [][]string{{"init", "all", "--yes"}, {"init", "flags", "--reconciler", "fleet", "--environments", "dev", "--rollout", "none"}} {
		if code := talk(t, dir, args...).ends(); code != 0 {
			t.Fatalf("%v: exit code %d", args, code)
		}
		exists(t, dir, args[1]+"/platform.cue")
	}
}

// inventory pull writes if the user confirms, and not if the user interrupts.
func TestInventoryPullAsks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../testdata/platform")); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"stores.cue":    "package platform\n\nimport \"kalypso.io/schema\"\n\ninventories: schema.#Inventories\ninventories: stores: {file: \"stores.csv\", clusterType: \"large\"}\n",
		"stores.csv":    "name\n",
		"clusters.yaml": "contexts: [{name: east, context: {cluster: east}}]\nclusters: [{name: east, cluster: {server: \"https://east.example\"}}]\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	pull := []string{"inventory", "pull", "stores", "--from", "kubeconfig", "--file", "clusters.yaml"}
	d := talk(t, dir, pull...)
	d.answer("Write stores.csv?", interrupt)
	d.expect("kalypso: interrupted")
	if code := d.ends(); code != 130 {
		t.Errorf("exit code %d", code)
	}
	d = talk(t, dir, pull...)
	d.answer("Write stores.csv?", "y"+enter)
	d.expect("stores.csv is written")
	if code := d.ends(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func exists(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			t.Error(err)
		}
	}
}

// If the user interrupts the questions, init leaves no files.
func TestInitInterrupted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := talk(t, dir, "init", "shop")
	d.answer("What do you begin?", enter)
	d.answer("Which environments", "dev"+interrupt)
	d.expect("kalypso: interrupted")
	if code := d.ends(); code != 130 {
		t.Errorf("exit code %d", code)
	}
	d = talk(t, dir, "init", "shop")
	d.expect("What do you begin?")
	if err := d.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	d.expect("\x1b[?25h") // the cursor
	d.expect("kalypso: interrupted")
	if code := d.ends(); code != 130 {
		t.Errorf("exit code %d", code)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v %v", left, err)
	}
}
