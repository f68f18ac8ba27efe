package editor

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// Session plays a session with a server from a file. A line has words, with quotes as in Go. It
// prints each line, and the editor's display after it.
//
//	start FOLDER...            start the server; with no folder in a workspace without folders
//	open FILE                  open a file
//	type FILE OLD NEW          replace a text
//	close FILE                 close it
//	wait FILE TEXT             wait for a diagnostic with a code, or a text in its message
//	gone FILE TEXT             wait until there is no such diagnostic; "" is in every message
//	rename FILE TEXT NAME      rename the word at the cursor in TEXT, as in "wor^kspace"
//	QUESTION FILE TEXT         send a question to the server, as [Editor.Ask] does
func Session(file string, server func() *exec.Cmd, out io.Writer) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var e *Editor
	for line := range strings.Lines(string(data)) {
		words, err := split(line)
		if err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
		if len(words) == 0 {
			continue
		}
		fmt.Fprint(out, "> ", line)
		if words[0] == "start" {
			if e, err = Start(server(), ".", words[1:]...); err != nil {
				return err
			}
			continue
		}
		lines, err := e.play(words)
		if err != nil {
			return fmt.Errorf("%s: %w", strings.TrimSpace(line), err)
		}
		for _, l := range lines {
			fmt.Fprintln(out, l)
		}
	}
	return e.Close()
}

func (e *Editor) play(words []string) ([]string, error) {
	for len(words) < 4 {
		words = append(words, "")
	}
	file, text, more := words[1], words[2], words[3]
	switch words[0] {
	case "open":
		return nil, e.Open(file)
	case "type":
		return nil, e.Type(file, text, more)
	case "close":
		delete(e.text, file)
		return nil, e.notify("textDocument/didClose", map[string]any{"textDocument": map[string]any{"uri": e.uri(file)}})
	case "wait":
		return e.Wait(file, text, false)
	case "gone":
		return e.Wait(file, text, true)
	case "rename":
		return e.Ask("rename", file, text, map[string]any{"newName": more})
	}
	if text == "" {
		text = Cursor // the whole file
	}
	return e.Ask(words[0], file, text, nil)
}

// split returns the words of a line.
func split(line string) (words []string, err error) {
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimSpace(line) {
		word, rest, _ := strings.Cut(line, " ")
		if strings.HasPrefix(line, `"`) {
			if word, err = strconv.QuotedPrefix(line); err != nil {
				return nil, err
			}
			rest = line[len(word):]
			if word, err = strconv.Unquote(word); err != nil {
				return nil, err
			}
		}
		words, line = append(words, word), rest
	}
	return words, nil
}
