package lsp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/kalypso-io/kalypso/edit/lsp"
)

// fakeEnv is the environment variable of a process that acts as CUE's language server. Its
// value is a file in which the process counts the starts.
const fakeEnv = "KALYPSO_TEST_CUE"

func TestMain(m *testing.M) {
	if file := os.Getenv(fakeEnv); file != "" {
		if err := fake(file); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// fakeServer answers the request for symbols with one symbol. Its name has the number of times
// that a server was started, the open files, and the numbers of requests about hang.cue and of
// cancelled ones. For end.cue it ends without an answer. For hang.cue it does not answer before
// the request is cancelled.
type fakeServer struct {
	mu        sync.Mutex
	starts    int
	open      []string
	cancelled int
	hanging   map[string]chan struct{}
}

func fake(file string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.WriteString("x"); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	starts, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	s := &fakeServer{starts: len(starts), hanging: map[string]chan struct{}{}}
	conn := jsonrpc2.NewConn(context.Background(), jsonrpc2.NewBufferedStream(stdio{os.Stdin, os.Stdout}, jsonrpc2.VSCodeObjectCodec{}), s)
	<-conn.DisconnectNotify()
	return nil
}

type stdio struct {
	io.ReadCloser
	io.Writer
}

type aboutDocument struct {
	TextDocument struct {
		URI string `json:"uri"`
	} `json:"textDocument"`
	ID jsonrpc2.ID `json:"id"`
}

// Handle handles messages in their order.
func (s *fakeServer) Handle(ctx context.Context, conn *jsonrpc2.Conn, r *jsonrpc2.Request) {
	var p aboutDocument
	if r.Params != nil {
		_ = json.Unmarshal(*r.Params, &p) // only methods about a document need it
	}
	name := path.Base(p.TextDocument.URI)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.Method {
	case "textDocument/didOpen":
		s.open = append(s.open, name)
	case "$/cancelRequest":
		s.cancelled++
		if hangs := s.hanging[p.ID.String()]; hangs != nil {
			close(hangs)
		}
	case "textDocument/documentSymbol":
		switch name {
		case "end.cue":
			os.Exit(1)
		case "hang.cue":
			hangs := make(chan struct{})
			s.hanging[r.ID.String()] = hangs
			go func() {
				<-hangs
				_ = conn.ReplyWithError(ctx, r.ID, &jsonrpc2.Error{Code: -32800, Message: "cancelled"})
			}()
			return
		}
		at := map[string]any{"start": map[string]int{"line": 0, "character": 0}, "end": map[string]int{"line": 0, "character": 1}}
		says := fmt.Sprintf("start %d, open %s, asked %d, cancelled %d", s.starts, strings.Join(s.open, " "), len(s.hanging), s.cancelled)
		_ = conn.Reply(ctx, r.ID, []any{map[string]any{"name": says, "kind": 13, "range": at, "selectionRange": at}})
	default:
		if !r.Notif {
			_ = conn.Reply(ctx, r.ID, map[string]any{})
		}
	}
}

// serve starts the language server with the fake one as its child. It returns the editor's end
// of the connection, with a.cue, end.cue and hang.cue open.
func serve(t *testing.T) *session {
	t.Helper()
	dir := t.TempDir()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	fromEditor, toServer := io.Pipe()
	fromServer, toEditor := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- lsp.Serve(context.Background(), fromEditor, toEditor, lsp.Options{
			CUE: func() (*exec.Cmd, error) {
				cmd := exec.Command(program)
				cmd.Env = append(os.Environ(), fakeEnv+"="+filepath.Join(dir, "starts"))
				cmd.Stderr = os.Stderr
				return cmd, nil
			},
			Compile: func(string, string) (*exec.Cmd, error) { return nil, errors.New("there is no platform") },
		})
	}()
	ignore := jsonrpc2.HandlerWithError(func(context.Context, *jsonrpc2.Conn, *jsonrpc2.Request) (any, error) { return nil, nil })
	s := &session{t, dir, jsonrpc2.NewConn(context.Background(), jsonrpc2.NewBufferedStream(struct {
		io.ReadCloser
		io.Writer
	}{fromServer, toServer}, jsonrpc2.VSCodeObjectCodec{}), ignore)}
	t.Cleanup(func() {
		ctx := context.Background()
		if err := s.conn.Call(ctx, "shutdown", nil, nil); err != nil {
			t.Error(err)
		}
		if err := s.conn.Notify(ctx, "exit", nil); err != nil {
			t.Error(err)
		}
		if err := toServer.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	if err := s.conn.Call(t.Context(), "initialize", map[string]any{"capabilities": map[string]any{}}, nil); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.cue", "end.cue", "hang.cue"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("a: 1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		err := s.conn.Notify(t.Context(), "textDocument/didOpen", map[string]any{"textDocument": map[string]any{
			"uri": s.uri(name), "languageId": "cue", "version": 1, "text": "a: 1\n"}})
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

type session struct {
	*testing.T
	dir  string
	conn *jsonrpc2.Conn
}

func (s *session) uri(name string) string {
	return "file://" + filepath.ToSlash(filepath.Join(s.dir, name))
}

func (s *session) about(name string) any {
	return map[string]any{"textDocument": map[string]any{"uri": s.uri(name)}}
}

// symbol returns the name of the symbol of a file. It returns "" if there is no answer.
func (s *session) symbol(name string) string {
	s.Helper()
	var symbols []struct {
		Name string `json:"name"`
	}
	if err := s.conn.Call(s.Context(), "textDocument/documentSymbol", s.about(name), &symbols); err != nil {
		s.Fatal(err)
	}
	if len(symbols) == 0 {
		return ""
	}
	return symbols[0].Name
}

// until requests the symbol of a.cue until it is the wanted one.
func (s *session) until(want string) {
	s.Helper()
	for got := ""; got != want; got = s.symbol("a.cue") {
		if err := s.Context().Err(); err != nil {
			s.Fatal(err)
		}
	}
}

// TestRestart checks that a server that ends is started again, and gets the open documents.
func TestRestart(t *testing.T) {
	s := serve(t)
	s.until("start 1, open a.cue end.cue hang.cue, asked 0, cancelled 0")
	if got := s.symbol("end.cue"); got != "" {
		t.Errorf("a server that ends answers %q", got)
	}
	s.until("start 2, open a.cue end.cue hang.cue, asked 0, cancelled 0")
}

// TestCancel checks that a request that the editor cancels is answered at once, and also
// cancelled in the child.
func TestCancel(t *testing.T) {
	s := serve(t)
	id := jsonrpc2.ID{Num: 1 << 20}
	call, err := s.conn.DispatchCall(t.Context(), "textDocument/documentSymbol", s.about("hang.cue"), jsonrpc2.PickID(id))
	if err != nil {
		t.Fatal(err)
	}
	s.until("start 1, open a.cue end.cue hang.cue, asked 1, cancelled 0")
	if err := s.conn.Notify(t.Context(), "$/cancelRequest", map[string]any{"id": id}); err != nil {
		t.Fatal(err)
	}
	var e *jsonrpc2.Error
	if err := call.Wait(t.Context(), nil); !errors.As(err, &e) || e.Code != -32800 {
		t.Errorf("a request that is cancelled gets %v", err)
	}
	s.until("start 1, open a.cue end.cue hang.cue, asked 1, cancelled 1")
}
