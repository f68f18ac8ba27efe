package lsp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os/exec"

	"github.com/sourcegraph/jsonrpc2"
)

// child is a process of CUE's language server. What it is sent it gets in the order in which it
// was queued, so that nobody has to wait for it.
type child struct {
	cmd   *exec.Cmd
	conn  *jsonrpc2.Conn
	queue chan message
	done  chan struct{} // closed once the process has ended
}

// message is a request, or a notification where answer is nil.
type message struct {
	ctx    context.Context
	id     uint64
	method string
	params json.RawMessage
	answer chan<- answer
}

type answer struct {
	result json.RawMessage
	err    error
}

// waiting is how many messages may wait for the server. One that has not taken that many
// does not answer any more.
const waiting = 4096

var errEnded = errors.New("CUE's language server has ended")

// startChild starts a server, which first gets the messages given. handle gets what it sends.
func startChild(cmd *exec.Cmd, first []message, handle jsonrpc2.Handler) (*child, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &child{cmd: cmd, queue: make(chan message, waiting), done: make(chan struct{})}
	c.conn = jsonrpc2.NewConn(context.Background(), streamOf(out, in), handle, jsonrpc2.SetLogger(silent{}))
	for _, m := range first {
		c.send(m)
	}
	go c.deliver()
	go func() {
		<-c.conn.DisconnectNotify()
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait() // it was killed
		close(c.done)
	}()
	return c, nil
}

// send queues a message.
func (c *child) send(m message) {
	select {
	case c.queue <- m:
	default:
		c.stop() // it takes nothing any more
		m.reply(answer{err: errEnded})
	}
	select {
	case <-c.done:
		c.refuse() // deliver may have refused what was queued before
	default:
	}
}

func (m message) reply(a answer) {
	if m.answer != nil {
		m.answer <- a
	}
}

// stop ends the process, and with it all requests.
func (c *child) stop() { _ = c.conn.Close() }

// deliver sends what is queued, until the process ends.
func (c *child) deliver() {
	for {
		select {
		case <-c.done:
			c.refuse()
			return
		case m := <-c.queue:
			c.give(m)
		}
	}
}

// refuse answers what is queued still.
func (c *child) refuse() {
	for {
		select {
		case m := <-c.queue:
			m.reply(answer{err: errEnded})
		default:
			return
		}
	}
}

func (c *child) give(m message) {
	if m.answer == nil {
		_ = c.conn.Notify(m.ctx, m.method, m.params) // an error is the process's end
		return
	}
	if m.ctx.Err() != nil {
		m.reply(answer{err: m.ctx.Err()})
		return
	}
	id := jsonrpc2.ID{Num: m.id}
	call, err := c.conn.DispatchCall(m.ctx, m.method, m.params, jsonrpc2.PickID(id))
	if err != nil {
		m.reply(answer{err: errEnded})
		return
	}
	wait := func() {
		var result json.RawMessage
		err := call.Wait(m.ctx, &result)
		if m.ctx.Err() != nil {
			_ = c.conn.Notify(context.Background(), "$/cancelRequest", map[string]any{"id": id})
		}
		m.reply(answer{result, err})
	}
	if m.method == "initialize" {
		wait() // nothing else may come before its answer
		return
	}
	go wait()
}

// streamOf returns the stream of messages that two pipes carry.
func streamOf(in io.ReadCloser, out io.WriteCloser) jsonrpc2.ObjectStream {
	return jsonrpc2.NewBufferedStream(pipes{in, out}, jsonrpc2.VSCodeObjectCodec{})
}

// pipes are two pipes as one connection.
type pipes struct {
	io.ReadCloser
	out io.WriteCloser
}

func (p pipes) Write(b []byte) (int, error) { return p.out.Write(b) }

func (p pipes) Close() error { return errors.Join(p.out.Close(), p.ReadCloser.Close()) }

// silent logs nothing: what fails on a connection is seen by its end.
type silent struct{}

func (silent) Printf(string, ...any) {}
