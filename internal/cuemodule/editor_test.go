package cuemodule_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// edit acts as an editor in one call. `edit definition FILE TEXT` opens FILE with `cue lsp`,
// and prints the place of the definition of the word at the end of TEXT. `edit completion FILE
// TEXT` prints the completions there.
func edit(args []string) error {
	request, file, text := args[0], args[1], args[2]
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, _, found := strings.Cut(string(content), text)
	if !found {
		return fmt.Errorf("%s does not hold %q", file, text)
	}
	before += text
	line := strings.Count(before, "\n")
	column := len(before) - 1 - strings.LastIndex(before, "\n")
	if request == "definition" {
		column-- // on the last character, not after it
	}

	s, err := startServer()
	if err != nil {
		return err
	}
	rootURI, fileURI := uri(root), uri(filepath.Join(root, file))
	if _, err := s.call("initialize", map[string]any{
		"processId": os.Getpid(), "rootUri": rootURI, "capabilities": map[string]any{},
		"workspaceFolders": []any{map[string]any{"uri": rootURI, "name": "platform"}},
	}); err != nil {
		return err
	}
	if err := s.notify("initialized", map[string]any{}); err != nil {
		return err
	}
	if err := s.notify("textDocument/didOpen", map[string]any{"textDocument": map[string]any{
		"uri": fileURI, "languageId": "cue", "version": 1, "text": string(content),
	}}); err != nil {
		return err
	}
	answer, err := s.call("textDocument/"+request, map[string]any{
		"textDocument": map[string]any{"uri": fileURI},
		"position":     map[string]any{"line": line, "character": column},
	})
	if err != nil {
		return err
	}
	lines, err := answers[request](root, answer)
	if err != nil {
		return err
	}
	for _, line := range lines {
		fmt.Println(line)
	}
	return s.stop()
}

// answers turn the server's answers into lines.
var answers = map[string]func(root string, answer json.RawMessage) ([]string, error){
	"definition": func(root string, answer json.RawMessage) (lines []string, err error) {
		var locations []struct {
			URI   string `json:"uri"`
			Range struct {
				Start struct {
					Line int `json:"line"`
				} `json:"start"`
			} `json:"range"`
		}
		err = json.Unmarshal(answer, &locations)
		for _, l := range locations {
			u, err := url.Parse(l.URI)
			if err != nil {
				return nil, err
			}
			content, err := os.ReadFile(filepath.FromSlash(u.Path))
			if err != nil {
				return nil, err
			}
			at := strings.Split(string(content), "\n")[l.Range.Start.Line]
			lines = append(lines, rel(root, filepath.FromSlash(u.Path))+": "+at)
		}
		return lines, err
	},
	"completion": func(_ string, answer json.RawMessage) (lines []string, err error) {
		var list struct {
			Items []struct {
				Label string `json:"label"`
			} `json:"items"`
		}
		err = json.Unmarshal(answer, &list)
		for _, item := range list.Items {
			lines = append(lines, item.Label)
		}
		slices.Sort(lines)
		return lines, err
	},
}

func uri(file string) string {
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(file)}).String()
}

// server is a running `cue lsp`, which speaks the Language Server Protocol
// (https://microsoft.github.io/language-server-protocol/, base protocol) over
// its standard streams.
type server struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	last int // id of the last request
}

type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

func startServer() (*server, error) {
	cmd := exec.Command("cue", "lsp")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &server{cmd: cmd, in: in, out: bufio.NewReader(out)}, cmd.Start()
}

func (s *server) stop() error {
	if _, err := s.call("shutdown", nil); err != nil {
		return err
	}
	err := s.notify("exit", nil)
	return errors.Join(err, s.in.Close(), s.cmd.Wait())
}

func (s *server) notify(method string, params any) error {
	return s.send(message{Method: method, Params: params})
}

// call sends a request and returns its result. Meanwhile it answers the server's own requests.
func (s *server) call(method string, params any) (json.RawMessage, error) {
	s.last++
	id := json.RawMessage(strconv.Itoa(s.last))
	if err := s.send(message{ID: id, Method: method, Params: params}); err != nil {
		return nil, err
	}
	for {
		m, err := s.receive()
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %w", method, err)
		case m.Method != "" && m.ID != nil:
			// Answer null for each configuration item, and for all other requests.
			result := json.RawMessage("null")
			if m.Method == "workspace/configuration" {
				result = json.RawMessage("[null]")
			}
			if err := s.send(message{ID: m.ID, Result: result}); err != nil {
				return nil, err
			}
		case m.Method == "" && string(m.ID) == string(id):
			if m.Error != nil {
				return nil, fmt.Errorf("%s: %s", method, m.Error)
			}
			return m.Result, nil
		}
	}
}

func (s *server) send(m message) error {
	m.Version = "2.0"
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.in, "Content-Length: %d\r\n\r\n%s", len(body), body)
	return err
}

func (s *server) receive() (m message, err error) {
	header, err := textproto.NewReader(s.out).ReadMIMEHeader()
	if err != nil {
		return m, err
	}
	length, err := strconv.Atoi(header.Get("Content-Length"))
	if err != nil {
		return m, err
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(s.out, body); err != nil {
		return m, err
	}
	return m, json.Unmarshal(body, &m)
}
