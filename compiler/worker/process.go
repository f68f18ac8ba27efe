package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

// process is a process that calls Serve.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout io.Reader
	stderr *Head
	served int // the number of finished jobs
}

// startProcess starts a process that calls Serve. It has only the environment that start
// sets for it.
func startProcess(start func() (*exec.Cmd, error)) (*process, error) {
	cmd, err := start()
	if err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	if cmd.Env == nil {
		cmd.Env = minimalEnvironment()
	}
	p := &process{cmd: cmd, stderr: &Head{}}
	cmd.Stderr = p.stderr
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	if p.stdout, err = cmd.StdoutPipe(); err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	return p, nil
}

// stop ends the process, whatever it is doing.
func (p *process) stop() {
	p.stdin.Close()
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait() // it was killed
}

// verdict is how a job ended in a worker.
type verdict int

const (
	answered verdict = iota
	died             // the process ended
	late             // it took more of processors' time than it may
	stuck            // it took far longer than that, and used little processor time
	long             // it answered more than it may
	ended            // the context ended
)

// patience is the number of time limits after which a job ends although it uses no
// processor time. By then, whatever it waits for will not happen.
const patience = 20

// do sends a job to the process. The process may be used again only after an answer, unless
// it is spent.
func (p *process) do(ctx context.Context, job request) (reply, verdict) {
	p.stderr.reset()
	var answer reply
	done := make(chan error, 1)
	go func() {
		err := writeFrame(p.stdin, job)
		if err == nil {
			err = readFrame(p.stdout, maxAnswer, &answer)
		}
		done <- err
	}()
	timer := time.NewTimer(patience * time.Duration(job.Limit))
	defer timer.Stop()
	how := answered
	select {
	case err := <-done:
		switch {
		case errors.Is(err, errTooLong):
			return reply{}, long
		case err != nil:
			return reply{}, died
		case answer.Late:
			return reply{}, late
		}
		p.served++
		return answer, answered
	case <-timer.C:
		how = stuck
	case <-ctx.Done():
		how = ended
	}
	_ = p.cmd.Process.Kill()
	<-done // the pipes are closed now
	return reply{}, how
}

const beyondMemory = "it needs more than a gibibyte of memory"

// reason returns the reason why the process ended, as far as its output shows it. The
// process must have ended.
func (p *process) reason() string {
	said := p.stderr.Text()
	switch {
	case containsAny(said, "stack overflow", "stack exceeds"):
		return "it recurses without end"
	case containsAny(said, "out of memory", "cannot allocate memory", "new OS thread",
		"pthread_create failed"):
		// A thread needs memory for its stack.
		return beyondMemory
	case strings.HasPrefix(said, "SIGSEGV: ") && peak(p.cmd.ProcessState) > softMemory/2:
		// An error of a program is a panic. Here Go itself fails: if the system gives it no
		// more memory, it cannot always report the reason.
		return beyondMemory
	}
	first, _, _ := strings.Cut(strings.TrimSpace(said), "\n")
	if first == "" {
		first = "without a word"
	}
	return "the process that works on it ended: " + first
}

func containsAny(s string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(s, part) })
}

// Head keeps the beginning of the text that is written to it. A process that dies reports
// the reason there.
type Head struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

const maxHead = 8 << 10

func (h *Head) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.buf.Write(p[:min(len(p), maxHead-h.buf.Len())])
	return len(p), nil
}

func (h *Head) reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.buf.Reset()
}

// Text returns the kept text.
func (h *Head) Text() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.buf.String()
}
