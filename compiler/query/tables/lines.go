package tables

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// WriteLine writes a row of a table as a JSON object on a line, with its keys in the order of
// columns. Characters that cannot be seen are escaped, so that nothing of it moves a
// terminal's cursor.
func (t *Table) WriteLine(w io.Writer, cells []any) error {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	line.WriteByte('{')
	for i, c := range t.Columns {
		if i > 0 {
			line.WriteByte(',')
		}
		line.WriteString(`"` + c.Name + `":`)
		if err := encoder.Encode(cells[i]); err != nil {
			return fmt.Errorf("column %s: %w", c.Name, err)
		}
		line.Truncate(line.Len() - 1) // its end of line
	}
	_, err := w.Write(append(escaped(line.Bytes()), "}\n"...))
	return err
}

// escaped is JSON with all characters escaped that cannot be seen.
func escaped(text []byte) []byte {
	if !bytes.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return text
	}
	var out []byte
	for _, r := range string(text) {
		switch high, low := utf16.EncodeRune(r); {
		case unicode.IsPrint(r):
			out = utf8.AppendRune(out, r)
		case high != unicode.ReplacementChar:
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}
