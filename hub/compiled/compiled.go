// Package compiled answers questions about the commits of an environment that need the compiled
// platform: the origin of values, policies and configs. It compiles the platform in a separate
// process. The process ends, and frees its memory, if no question arrives for a while.
package compiled

import (
	"bufio"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/kalypso-io/kalypso/compiler/supervisor"
	"github.com/kalypso-io/kalypso/compiler/worker"
	"github.com/kalypso-io/kalypso/view"
)

// At identifies a compiled platform: an environment with its commits.
type At struct{ Environment, Base, Own string }

// failed returns the error if the platform cannot be compiled.
func (at *At) failed(err error) error {
	return fmt.Errorf("environment %s cannot be compiled from commit %s: %w", at.Environment, at.Base,
		err)
}

// question is a request to the process. Which is the name of the page.
type question struct{ Which, ClusterType, Target string }

// answer is the process's answer. One of these fields is set.
type answer struct {
	Assignment  *view.Assignment
	Policies    *view.Policies
	Configs     *view.Configs
	Diagnostics *view.Diagnostics
	Missing     string // the message of a *view.NotFoundError
	Problem     string
}

// Serve reads questions from in, and answers each with data from a source. It returns nil at the
// end of in.
func Serve(ctx context.Context, in io.Reader, out io.Writer, s view.Source,
	environment string) error {
	questions, bounded := gob.NewDecoder(in), &limitWriter{out: out}
	answers := gob.NewEncoder(bounded)
	for {
		var q question
		if err := questions.Decode(&q); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		var a answer
		var err error
		switch q.Which {
		case "assignment":
			a.Assignment, err = s.Assignment(ctx, environment, q.ClusterType, q.Target)
		case "policies":
			a.Policies, err = s.Policies(ctx, environment, "")
		case "configs":
			a.Configs, err = s.Configs(ctx, environment, "")
		case "diagnostics":
			a.Diagnostics, err = s.Diagnostics(ctx)
		}
		if missing := (*view.NotFoundError)(nil); errors.As(err, &missing) {
			a = answer{Missing: missing.Message}
		} else if err != nil {
			a = answer{Problem: err.Error()}
		}
		bounded.left = maxAnswer
		if err := answers.Encode(a); err != nil {
			return err
		}
	}
}

// maxAnswer limits the bytes of an answer, because the hub keeps it in memory.
const maxAnswer = 64 << 20

// limitWriter writes an answer, and fails when the answer exceeds the bytes that are left.
type limitWriter struct {
	out  io.Writer
	left int
}

func (b *limitWriter) Write(data []byte) (int, error) {
	if b.left -= len(data); b.left < 0 {
		return 0, fmt.Errorf("a page would have more than %s", supervisor.SizeText(maxAnswer))
	}
	return b.out.Write(data)
}

// Pool is a pool of processes. Each has compiled one environment. Any number of goroutines may use
// it.
type Pool struct {
	// Start returns a process that calls Serve. The process has not started yet.
	Start func(At) (*exec.Cmd, error)
	// Most is how many processes there may be, at least one.
	Most int
	// Idle is the time without a question after which a process ends. Limit is how long a process
	// may take for an answer, including the compilation.
	Idle, Limit time.Duration

	mu        sync.Mutex
	processes map[At]*process
}

type process struct {
	mu        sync.Mutex // held during a question
	command   *exec.Cmd
	questions *gob.Encoder
	answers   *gob.Decoder
	in        io.Closer
	messages  worker.Head
	idle      *time.Timer
	used      time.Time
	ended     bool
}

// Assignment returns an assignment of the compiled platform. Policies, Configs and Diagnostics
// return the data in their names. The error is a *view.NotFoundError if the data does not exist.
func (p *Pool) Assignment(ctx context.Context, at At, clusterType, target string) (*view.Assignment,
	error) {
	a, err := p.ask(ctx, at, question{"assignment", clusterType, target})
	return a.Assignment, err
}

// Policies returns the scheduling policies.
func (p *Pool) Policies(ctx context.Context, at At) (*view.Policies, error) {
	a, err := p.ask(ctx, at, question{Which: "policies"})
	return a.Policies, err
}

// Configs returns the configs.
func (p *Pool) Configs(ctx context.Context, at At) (*view.Configs, error) {
	a, err := p.ask(ctx, at, question{Which: "configs"})
	return a.Configs, err
}

// Diagnostics returns the errors and warnings.
func (p *Pool) Diagnostics(ctx context.Context, at At) (*view.Diagnostics, error) {
	a, err := p.ask(ctx, at, question{Which: "diagnostics"})
	return a.Diagnostics, err
}

func (p *Pool) ask(ctx context.Context, at At, q question) (answer, error) {
	one, err := p.process(at)
	if err != nil {
		return answer{}, err
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.ended {
		return answer{}, errors.New("the platform is compiled again: ask once more")
	}
	ctx, cancel := context.WithTimeout(ctx, p.Limit)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = one.command.Process.Kill() })
	var a answer
	err = one.questions.Encode(q)
	if err == nil {
		err = one.answers.Decode(&a)
	}
	stop()
	if err != nil {
		p.end(at, one)
		text := strings.TrimSpace(one.messages.Text())
		text = strings.TrimPrefix(text, "kalypso-hub: ")
		switch {
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			return a, at.failed(fmt.Errorf("it takes longer than %s", p.Limit))
		case ctx.Err() != nil:
			return a, ctx.Err()
		case text == "":
			return a, at.failed(fmt.Errorf("its process has ended: %s", one.command.ProcessState))
		}
		return a, at.failed(errors.New(text))
	}
	one.idle.Reset(p.Idle)
	switch {
	case a.Missing != "":
		return a, &view.NotFoundError{Message: a.Missing}
	case a.Problem != "":
		return a, errors.New(a.Problem)
	}
	return a, nil
}

// process returns the process of a compiled environment, which may still be compiling.
func (p *Pool) process(at At) (*process, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.processes == nil {
		p.processes = map[At]*process{}
	}
	if one := p.processes[at]; one != nil {
		one.used = time.Now()
		return one, nil
	}
	p.makeRoom()
	command, err := p.Start(at)
	if err != nil {
		return nil, err
	}
	one := &process{command: command, used: time.Now()}
	command.Stderr = &one.messages
	in, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	one.in, one.questions, one.answers = in, gob.NewEncoder(in), gob.NewDecoder(bufio.NewReader(out))
	one.idle = time.AfterFunc(p.Idle, func() {
		one.mu.Lock()
		defer one.mu.Unlock()
		p.end(at, one)
	})
	p.processes[at] = one
	return one, nil
}

// makeRoom ends the process that was not used for the longest time.
func (p *Pool) makeRoom() {
	for len(p.processes) >= max(p.Most, 1) {
		var oldest At
		for at, one := range p.processes {
			if was := p.processes[oldest]; was == nil || one.used.Before(was.used) {
				oldest = at
			}
		}
		one := p.processes[oldest]
		delete(p.processes, oldest)
		go func() { // the caller that is waiting gets its answer first
			one.mu.Lock()
			defer one.mu.Unlock()
			one.stop()
		}()
	}
}

// end ends a process. The caller must hold its lock.
func (p *Pool) end(at At, one *process) {
	p.mu.Lock()
	if p.processes[at] == one {
		delete(p.processes, at)
	}
	p.mu.Unlock()
	one.stop()
}

func (one *process) stop() {
	if one.ended {
		return
	}
	one.ended = true
	one.idle.Stop()
	_ = one.in.Close()
	_ = one.command.Process.Kill()
	_ = one.command.Wait()
}

// Close ends all processes.
func (p *Pool) Close() {
	p.mu.Lock()
	var all []*process
	for _, one := range p.processes {
		all = append(all, one)
	}
	p.processes = nil
	p.mu.Unlock()
	for _, one := range all {
		_ = one.command.Process.Kill()
		one.mu.Lock()
		one.stop()
		one.mu.Unlock()
	}
}
