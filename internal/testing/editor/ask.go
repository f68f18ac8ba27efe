package editor

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Cursor marks the position of the cursor in a text.
const Cursor = "^"

// Ask asks about the position of the cursor in a text of an open file. It returns the answer as a
// person would see it, a line for each thing. The question is the last part of the name of a
// request of the protocol; more are its other parameters.
func (e *Editor) Ask(question, name, text string, more map[string]any) ([]string, error) {
	before, after, found := strings.Cut(text, Cursor)
	if !found {
		return nil, fmt.Errorf("%q does not have %s", text, Cursor)
	}
	at := strings.Index(e.text[name], before+after)
	if at < 0 {
		return nil, fmt.Errorf("%s does not have %q", name, before+after)
	}
	here := e.position(name, at+len(before))
	params := map[string]any{
		"textDocument": map[string]any{"uri": e.uri(name)}, "position": here, "range": span{here, here},
		"context": map[string]any{"includeDeclaration": true, "diagnostics": []any{}}, "options": map[string]any{},
	}
	for key, value := range more {
		params[key] = value
	}
	var answer json.RawMessage
	if err := e.call("textDocument/"+question, params, &answer); err != nil {
		return []string{"error: " + err.Error()}, nil
	}
	return e.see(question, name, answer)
}

// see returns the lines of an answer.
func (e *Editor) see(question, name string, answer json.RawMessage) ([]string, error) {
	if string(answer) == "null" {
		return []string{"nothing"}, nil
	}
	switch question {
	case "completion":
		return e.completions(answer)
	case "hover":
		var h struct {
			Contents struct {
				Value string `json:"value"`
			} `json:"contents"`
		}
		err := json.Unmarshal(answer, &h)
		return strings.Split(strings.TrimSpace(e.withoutMachine(h.Contents.Value)), "\n"), err
	case "definition", "references":
		var all []location
		err := json.Unmarshal(answer, &all)
		var lines []string
		for _, l := range all {
			lines = append(lines, e.name(l.URI)+":"+place(l.Range))
		}
		slices.Sort(lines)
		return lines, err
	case "rename":
		return e.edits(answer)
	case "formatting":
		return e.formatted(name, answer)
	case "codeAction":
		return e.actions(answer)
	case "codeLens":
		return e.lenses(answer)
	case "documentSymbol":
		return e.symbols("", answer)
	}
	return []string{string(answer)}, nil
}

// withoutMachine returns a text without the folder of CUE's cache.
func (e *Editor) withoutMachine(text string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "(file://")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		uri, after, _ := strings.Cut(rest, ")")
		uri, _, _ = strings.Cut(uri, "#")
		b.WriteString("(" + e.name("file://"+uri) + ")")
		text = after
	}
}

func (e *Editor) completions(answer json.RawMessage) ([]string, error) {
	var list struct {
		Items []struct {
			Label  string `json:"label"`
			Detail string `json:"detail"`
		} `json:"items"`
	}
	err := json.Unmarshal(answer, &list)
	var lines []string
	for _, i := range list.Items {
		lines = append(lines, strings.TrimSpace(i.Label+" "+i.Detail))
	}
	return lines, err
}

type textEdit struct {
	Range   span   `json:"range"`
	NewText string `json:"newText"`
}

type workspaceEdit struct {
	Changes         map[string][]textEdit `json:"changes"`
	DocumentChanges []struct {
		TextDocument struct {
			URI string `json:"uri"`
		} `json:"textDocument"`
		Edits []textEdit `json:"edits"`
	} `json:"documentChanges"`
}

// edits returns the changes of an edit.
func (e *Editor) edits(answer json.RawMessage) ([]string, error) {
	var w workspaceEdit
	err := json.Unmarshal(answer, &w)
	var lines []string
	add := func(uri string, edits []textEdit) {
		for _, edit := range edits {
			lines = append(lines, fmt.Sprintf("%s:%s: %q", e.name(uri), place(edit.Range), edit.NewText))
		}
	}
	for uri, edits := range w.Changes {
		add(uri, edits)
	}
	for _, d := range w.DocumentChanges {
		add(d.TextDocument.URI, d.Edits)
	}
	slices.Sort(lines)
	return lines, err
}

// formatted is a file after edits.
func (e *Editor) formatted(name string, answer json.RawMessage) ([]string, error) {
	var edits []textEdit
	if err := json.Unmarshal(answer, &edits); err != nil {
		return nil, err
	}
	text := e.text[name]
	for _, edit := range slices.Backward(edits) {
		text = text[:e.offset(name, edit.Range.Start)] + edit.NewText + text[e.offset(name, edit.Range.End):]
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n"), nil
}

func (e *Editor) offset(name string, p position) int {
	for i := range len(e.text[name]) + 1 {
		if e.position(name, i) == p {
			return i
		}
	}
	return len(e.text[name])
}

func (e *Editor) actions(answer json.RawMessage) ([]string, error) {
	var all []struct {
		Title string          `json:"title"`
		Kind  string          `json:"kind"`
		Edit  json.RawMessage `json:"edit"`
	}
	err := json.Unmarshal(answer, &all)
	var lines []string
	for _, a := range all {
		edits, err := e.edits(a.Edit)
		if err != nil {
			return nil, err
		}
		lines = append(lines, a.Kind+": "+a.Title)
		for _, edit := range edits {
			lines = append(lines, "\t"+edit)
		}
	}
	return lines, err
}

func (e *Editor) lenses(answer json.RawMessage) ([]string, error) {
	var all []struct {
		Range   span `json:"range"`
		Command struct {
			Title string `json:"title"`
		} `json:"command"`
	}
	err := json.Unmarshal(answer, &all)
	var lines []string
	for _, l := range all {
		lines = append(lines, place(l.Range)+" "+l.Command.Title)
	}
	return lines, err
}

func (e *Editor) symbols(indent string, answer json.RawMessage) ([]string, error) {
	var all []struct {
		Name     string          `json:"name"`
		Range    span            `json:"range"`
		Children json.RawMessage `json:"children"`
	}
	if len(answer) == 0 {
		return nil, nil
	}
	err := json.Unmarshal(answer, &all)
	var lines []string
	for _, s := range all {
		lines = append(lines, indent+s.Name+" "+place(s.Range))
		below, err := e.symbols(indent+"\t", s.Children)
		if err != nil {
			return nil, err
		}
		lines = append(lines, below...)
	}
	return lines, err
}
