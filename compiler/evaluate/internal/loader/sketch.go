package loader

import (
	"slices"
	"strings"

	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/scanner"
	"cuelang.org/go/cue/token"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// sketch is what can be said of a file that is no CUE: its lines, its words, and which of
// them are brackets that are not closed.
type sketch struct {
	lines []string
	words []word
	open  []int // brackets that are not closed, by their numbers
}

// word is a token of CUE, with the numbers of the bracket around it and of that which it
// closes, -1 for none.
type word struct {
	token.Token
	text         string
	line, column int
	first        bool // in its line
	in, closed   int
}

// closers are the brackets that close others.
var closers = map[token.Token]token.Token{token.LBRACE: token.RBRACE, token.LBRACK: token.RBRACK,
	token.LPAREN: token.RPAREN}

// closes says whether a word is a bracket that closes another.
func (w word) closes() bool {
	return w.Token == token.RBRACE || w.Token == token.RBRACK || w.Token == token.RPAREN
}

// sketchOf reads a file.
func sketchOf(data []byte) *sketch {
	s := &sketch{lines: strings.Split(string(data), "\n")}
	var scan scanner.Scanner
	scan.Init(token.NewFile("", 0, len(data)), data, func(token.Pos, string, []any) {}, 0)
	var around []int           // the brackets around the next word
	inText := map[int]bool{}   // brackets of expressions in strings
	line, expected := 0, false // whether such a bracket comes next
	for {
		pos, tok, text := scan.Scan()
		if tok == token.EOF {
			s.open = append(s.open, around...)
			slices.Sort(s.open)
			return s
		}
		w := word{tok, text, pos.Line(), pos.Column(), pos.Line() != line, -1, -1}
		line = w.line
		if w.closes() {
			before := around
			around = s.close(around, tok)
			if outer := len(around); outer < len(before) {
				w.closed = before[outer]
				if inText[w.closed] {
					// the scanner does not see by itself where an expression ends
					expected = strings.HasSuffix(scan.ResumeInterpolation(), "(")
				}
			}
		}
		if len(around) > 0 {
			w.in = around[len(around)-1]
		}
		if closers[tok] != 0 {
			around = append(around[:len(around):len(around)], len(s.words))
			inText[len(s.words)], expected = expected, false
		}
		expected = expected || tok == token.INTERPOLATION
		s.words = append(s.words, w)
	}
}

// close removes from the brackets around a word the one that it closes. Those inside of that
// are not closed.
func (s *sketch) close(around []int, by token.Token) []int {
	for i, bracket := range slices.Backward(around) {
		if closers[s.words[bracket].Token] == by {
			s.open = append(s.open, around[i+1:]...)
			return around[:i]
		}
	}
	return around
}

// line returns a line by its number, "" for none.
func (s *sketch) line(number int) string {
	if number < 1 || number > len(s.lines) {
		return ""
	}
	return s.lines[number-1]
}

// indent returns the column of the first word of a line.
func (s *sketch) indent(line int) int {
	text := s.line(line)
	return len(text) - len(strings.TrimLeft(text, " \t")) + 1
}

// path returns the names of the fields around a position, as far as they are written as
// names.
func (s *sketch) path(at model.Position) string {
	of := map[int]string{} // by bracket: the path of the field in it that the words are of
	around := map[int]string{}
	in := -1
	for i, w := range s.words {
		if w.line > at.Line || w.line == at.Line && w.column > at.Column {
			break
		}
		in = w.in
		switch {
		case closers[w.Token] != 0:
			around[i], of[i], in = of[w.in], of[w.in], i
		case w.Token == token.COMMA:
			of[w.in] = around[w.in]
		case w.Token == token.COLON:
			if name, ok := s.label(i - 1); ok {
				of[w.in] = model.JoinPath(of[w.in], model.Label(name))
			}
		}
	}
	return of[in]
}

// label returns the name that is written as the word of a number, or before it where that
// says that the field is optional or required.
func (s *sketch) label(number int) (string, bool) {
	if number > 0 && (s.words[number].Token == token.OPTION || s.words[number].Token == token.NOT) {
		number--
	}
	if number < 0 {
		return "", false
	}
	switch w := s.words[number]; w.Token {
	case token.IDENT:
		return w.text, true
	case token.STRING:
		name, err := literal.Unquote(w.text)
		return name, err == nil
	}
	return "", false
}
