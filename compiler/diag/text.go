package diag

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// shown is the largest number of assignments that the text of a diagnostic names.
const shown = 3

// WriteText writes resolved diagnostics for people: the problem, its place and a remedy.
// Consequences and repetitions of a diagnostic are written with it. If bold is not nil, it
// highlights the severity and code, and the carets, on a terminal.
func WriteText(w io.Writer, ds []Diagnostic, bold func(Severity, string) string) error {
	if bold == nil {
		bold = func(_ Severity, text string) string { return text }
	}
	var b strings.Builder
	for _, d := range fold(ds) {
		fmt.Fprintf(&b, "%s %s%s\n", bold(d.Severity, fmt.Sprintf("%s[%s]:", d.Severity, d.Code)),
			d.Message, d.scopeText())
		d.writeSites(&b, bold)
		if d.Hint != "" {
			fmt.Fprintf(&b, "  hint: %s\n", d.Hint)
		}
		d.writeMore(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeSites writes the positions, each with its entity, and the line that the first is
// in.
func (d Diagnostic) writeSites(b *strings.Builder, bold func(Severity, string) string) {
	notes := make([]string, len(d.Sites))
	width := 0
	for i, s := range d.Sites {
		if notes[i] = s.Note; i == 0 {
			notes[i] = cmp.Or(s.Note, d.where())
		}
		if notes[i] != "" {
			width = max(width, len(place(s.Position)))
		}
	}
	for i, s := range d.Sites {
		if !s.Position.IsZero() {
			fmt.Fprintf(b, "  %s\n",
				strings.TrimRight(fmt.Sprintf("%-*s  %s", width, place(s.Position), notes[i]), " "))
		}
	}
	if e := d.Excerpt; !e.IsZero() {
		number := strconv.Itoa(d.Sites[0].Position.Line)
		indent, carets := e.carets()
		fmt.Fprintf(b, "   %s | %s\n", number, strings.TrimRight(e.Before+e.At+e.After, " "))
		fmt.Fprintf(b, "   %*s | %s%s\n", len(number), "", indent, bold(d.Severity, carets))
	}
}

// where returns the path of the first position's value; "" if it is an entity that the
// message names.
func (d Diagnostic) where() string {
	at := d.Path
	if ref := d.Sites[0].Ref; ref != (model.Ref{}) && !strings.HasPrefix(at, ref.Entity().String()) {
		at = ref.String()
	}
	names := model.Elements(at)
	if len(names) < 2 || !slices.Contains(model.CollectionNames, names[0]) {
		return ""
	}
	if len(names) == 2 && slices.Contains(strings.Fields(d.Message), names[1]) {
		return ""
	}
	return at
}

func (d Diagnostic) scopeText() string {
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
		Also        []string         `json:"also,omitempty"`
		Hint        string           `json:"hint"`
	}
	items := make([]item, len(ds))
	for i, d := range ds {
		items[i] = item{d.Code, d.Severity, d.Message, d.positions(),
			append([]string{}, d.Assignments...), d.Path, d.Also, d.Hint}
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
			fmt.Fprintf(&b, "file=%s,line=%d,col=%d,", property.Replace(at[0].File), at[0].Line,
				at[0].Column)
		}
		message := d.Message + d.scopeText()
		if more := d.more(nil); more != "" {
			message += "\n" + more
		}
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
