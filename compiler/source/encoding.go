package source

import (
	"bytes"
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// utf16Of returns the byte order of a file in UTF-16, which CUE reads, by the mark at its
// beginning. It returns nil if the file has no mark.
func utf16Of(data []byte) binary.ByteOrder {
	switch {
	case bytes.HasPrefix(data, []byte("\xff\xfe")):
		return binary.LittleEndian
	case bytes.HasPrefix(data, []byte("\xfe\xff")):
		return binary.BigEndian
	}
	return nil
}

// toUTF8 returns the text of a file in UTF-16 as CUE reads it, and any other as it
// is.
func toUTF8(data []byte) []byte {
	order := utf16Of(data)
	if order == nil {
		return data
	}
	var units []uint16
	for rest := data[2:]; len(rest) >= 2; rest = rest[2:] {
		units = append(units, order.Uint16(rest))
	}
	return []byte(string(utf16.Decode(units)))
}

// notUTF8 reports text that CUE would replace without a word. Files of UTF-16
// begin with a mark, and CUE reads them.
func notUTF8(data []byte, rel string) (diag.Diagnostic, bool) {
	if utf8.Valid(data) || utf16Of(data) != nil {
		return diag.Diagnostic{}, false
	}
	at := model.Position{File: rel, Line: 1, Column: 1}
	for rest := data; ; {
		r, size := utf8.DecodeRune(rest)
		if r == utf8.RuneError && size == 1 {
			break
		}
		if at.Column += size; r == '\n' {
			at.Line, at.Column = at.Line+1, 1
		}
		rest = rest[size:]
	}
	return diag.New(diag.Syntax, "the file is not UTF-8").In(at, "").Hinting("save the file as UTF-8"),
		true
}
