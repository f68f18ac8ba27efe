package diag

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// shown is how many assignments the text of a diagnostic names.
const shown = 3

// WriteText writes resolved diagnostics for people: what, where and what to do.
// bold, if given, sets off the severity and code on a terminal.
func WriteText(w io.Writer, ds []Diagnostic, bold func(Severity, string) string) error {
	var b strings.Builder
	for _, d := range ds {
		head := fmt.Sprintf("%s[%s]:", d.Severity, d.Code)
		if bold != nil {
			head = bold(d.Severity, head)
		}
		fmt.Fprintf(&b, "%s %s%s\n", head, d.Message, d.on())
		width := 0
		for _, s := range d.Sites {
			if s.Note != "" {
				width = max(width, len(place(s.Position)))
			}
		}
		for _, s := range d.Sites {
			if s.Position.IsZero() {
				continue
			}
			fmt.Fprintf(&b, "  %s\n", strings.TrimRight(fmt.Sprintf("%-*s  %s", width, place(s.Position), s.Note), " "))
		}
		if d.Hint != "" {
			fmt.Fprintf(&b, "  hint: %s\n", d.Hint)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (d Diagnostic) on() string {
	switch n := len(d.Assignments); {
	case n == 0 && d.Environment != "" && len(d.Sites) == 0:
		return " in " + d.Environment
	case n == 0:
		return ""
	case n <= shown:
		return " on " + strings.Join(d.Assignments, ", ")
	default:
		return fmt.Sprintf(" on %s and %d more", strings.Join(d.Assignments[:shown], ", "), n-shown)
	}
}

func place(p model.Position) string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column) }

// WriteJSON writes resolved diagnostics as one document.
func WriteJSON(w io.Writer, ds []Diagnostic) error {
	type item struct {
		Code        Code             `json:"code"`
		Severity    Severity         `json:"severity"`
		Message     string           `json:"message"`
		Positions   []model.Position `json:"positions"`
		Assignments []string         `json:"assignments"`
		Path        string           `json:"path"`
		Hint        string           `json:"hint"`
	}
	items := make([]item, len(ds))
	for i, d := range ds {
		items[i] = item{d.Code, d.Severity, d.Message, d.positions(), append([]string{}, d.Assignments...), d.Path, d.Hint}
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Items      []item `json:"items"`
	}{"kalypso.io/v1alpha1", "DiagnosticList", items})
}

func (d Diagnostic) positions() []model.Position {
	out := []model.Position{}
	for _, s := range d.Sites {
		if !s.Position.IsZero() && !slices.Contains(out, s.Position) {
			out = append(out, s.Position)
		}
	}
	return out
}

// WriteGitHub writes resolved diagnostics as workflow commands of GitHub Actions
// (https://docs.github.com/actions/reference/workflow-commands-for-github-actions).
func WriteGitHub(w io.Writer, ds []Diagnostic) error {
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	data := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	var b strings.Builder
	for _, d := range ds {
		fmt.Fprintf(&b, "::%s ", d.Severity)
		if at := d.positions(); len(at) > 0 {
			fmt.Fprintf(&b, "file=%s,line=%d,col=%d,", property.Replace(at[0].File), at[0].Line, at[0].Column)
		}
		message := d.Message + d.on()
		for _, p := range d.positions() {
			message += "\n" + place(p)
		}
		if d.Hint != "" {
			message += "\nhint: " + d.Hint
		}
		fmt.Fprintf(&b, "title=%s::%s\n", property.Replace(string(d.Code)), data.Replace(message))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
