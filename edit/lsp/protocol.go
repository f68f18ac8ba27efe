package lsp

import (
	"net/url"
	"path/filepath"
	"runtime"
	"strings"
)

// These are what is used of the types of the Language Server Protocol 3.17
// (https://microsoft.github.io/language-server-protocol/specifications/lsp/3.17/specification/).

// position is a place in a text. Both count from 0; characters are UTF-16 code units.
type position struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

type span struct {
	Start position `json:"start"`
	End   position `json:"end"`
}

type location struct {
	URI   string `json:"uri"`
	Range span   `json:"range"`
}

type textEdit struct {
	Range   span   `json:"range"`
	NewText string `json:"newText"`
}

type textDocument struct {
	URI     string `json:"uri"`
	Version int    `json:"version"`
	Text    string `json:"text"`
}

type didOpen struct {
	TextDocument textDocument `json:"textDocument"`
}

type didChange struct {
	TextDocument   textDocument `json:"textDocument"`
	ContentChanges []change     `json:"contentChanges"`
}

// change is new text for a range, or for the whole where there is none.
type change struct {
	Range *span  `json:"range,omitempty"`
	Text  string `json:"text"`
}

// inDocument are the parameters of what is about a document, or a place in it.
type inDocument struct {
	TextDocument struct {
		URI string `json:"uri"`
	} `json:"textDocument"`
	Position position `json:"position"`
}

// The severities of diagnostics.
const (
	severityError   = 1
	severityWarning = 2
)

type diagnostic struct {
	Range       span              `json:"range"`
	Severity    int               `json:"severity"`
	Code        string            `json:"code,omitempty"`
	Description *codeDescription  `json:"codeDescription,omitempty"`
	Source      string            `json:"source"`
	Message     string            `json:"message"`
	Related     []relatedLocation `json:"relatedInformation,omitempty"`
}

type codeDescription struct {
	Href string `json:"href"`
}

type relatedLocation struct {
	Location location `json:"location"`
	Message  string   `json:"message"`
}

type publishDiagnostics struct {
	URI         string       `json:"uri"`
	Version     *int         `json:"version,omitempty"`
	Diagnostics []diagnostic `json:"diagnostics"`
}

type workspaceFolder struct {
	URI  string `json:"uri"`
	Name string `json:"name"`
}

// uriOf returns the URI of a file by its absolute path.
func uriOf(file string) string {
	file = filepath.ToSlash(file)
	if !strings.HasPrefix(file, "/") { // a drive of Windows
		file = "/" + file
	}
	return (&url.URL{Scheme: "file", Path: file}).String()
}

// canonical returns one of the URIs that name the same file: what is escaped differs from
// program to program.
func canonical(uri string) string {
	if file := fileOf(uri); file != "" {
		return uriOf(file)
	}
	return uri
}

// fileOf returns the path of a file by its URI; "" for what is no file.
func fileOf(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" {
		return ""
	}
	file := u.Path
	if runtime.GOOS == "windows" {
		file = strings.TrimPrefix(file, "/")
	}
	return filepath.FromSlash(file)
}
