package names

import (
	"bytes"
	"slices"
	"strings"

	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/scanner"
	"cuelang.org/go/cue/token"
)

// word is a name or a text in a file, and where it stands.
type word struct {
	kind wordKind
	// path is that of the field that a label makes, or that a text is a value or a part of a
	// value of; of a reference, the identifier that it begins with and what is selected. An element of
	// a list has the name "[]", and what is computed or a pattern has "*".
	path       []string
	text       string
	start, end int
	quoted     bool // start and end have quotes
	open       bool // the last quote is missing
	in         *frame
	field      *field // of a label
}

type wordKind int

const (
	label     wordKind = iota
	text               // a string that is a value
	reference          // an identifier in an expression, or what is selected from it
	bare               // an identifier in the place of a value, of which path is the value's
)

// frame is a struct, or a field that is one without braces.
type frame struct {
	parent *frame
	path   []string
	labels []string // those that identifiers can refer to
}

// resolve returns the path that an identifier leads to, and what is selected from it: that of
// the nearest field of its name, else of one of another file.
func (f *frame) resolve(path []string) []string {
	for ; f != nil; f = f.parent {
		if slices.Contains(f.labels, path[0]) {
			return slices.Concat(f.path, path)
		}
	}
	return path
}

// field is a field as it is written: labels, each with a colon, and a value.
type field struct {
	start, value, end int // of its first label, its value, and its end
	words             []int
}

// piece is a token, with its place.
type piece struct {
	tok        token.Token
	lit        string
	start, end int
}

// endOfText ends the expressions of an interpolation.
const endOfText = token.ILLEGAL

// pieces are the tokens of a text. What is no token is left out.
func pieces(src []byte) []piece {
	var s scanner.Scanner
	file := token.NewFile("", -1, len(src))
	s.Init(file, src, func(token.Pos, string, []any) {}, 0)
	var out []piece
	var parens []int // open parentheses of each interpolation
	for {
		pos, tok, lit := s.Scan()
		start := file.Offset(pos)
		end := s.Offset()
		switch {
		case tok == token.EOF:
			return out
		case tok == token.ILLEGAL:
			continue
		case tok == token.INTERPOLATION:
			parens = append(parens, 0)
		case tok == token.LPAREN && len(parens) > 0:
			parens[len(parens)-1]++
		case tok == token.RPAREN && len(parens) > 0:
			if parens[len(parens)-1]--; parens[len(parens)-1] == 0 {
				if rest := s.ResumeInterpolation(); !strings.HasSuffix(rest, "(") {
					parens = parens[:len(parens)-1]
					tok = endOfText
				}
				end = s.Offset()
				out = append(out, piece{token.COMMA, "", start, start})
			}
		}
		out = append(out, piece{tok, lit, start, end})
	}
}

// scan reads the words of a file, also of one that is not complete: it knows where a word
// stands by the labels and brackets before it.
func scan(src []byte) ([]word, []*field) {
	s := &reader{src: src, pieces: pieces(src)}
	root := &frame{path: []string{}}
	for s.i < len(s.pieces) {
		s.declarations(root)
		s.i++ // a bracket that nothing opened
	}
	return s.words, s.fields
}

type reader struct {
	src    []byte
	pieces []piece
	i      int
	open   []token.Token // the brackets that have to close what is open
	words  []word
	fields []*field
}

// at returns the token that is n further; EOF behind the last.
func (s *reader) at(i int) token.Token {
	if i >= len(s.pieces) {
		return token.EOF
	}
	return s.pieces[i].tok
}

func (s *reader) tok() token.Token { return s.at(s.i) }

// ends says whether the token closes something that is open, or ends the file.
func (s *reader) ends() bool {
	t := s.tok()
	return t == token.EOF || slices.Contains(s.open, t)
}

// within reads what is between brackets, of which the first is the token at hand.
func (s *reader) within(last token.Token, read func()) {
	s.i++
	s.open = append(s.open, last)
	for !s.ends() {
		before := s.i
		read()
		if s.i == before {
			s.i++
		}
	}
	s.open = s.open[:len(s.open)-1]
	if s.tok() == last {
		s.i++
	}
}

func (s *reader) declarations(f *frame) {
	for !s.ends() {
		before := s.i
		s.declaration(f)
		if s.i == before {
			s.i++ // a closing bracket that nothing opened
		}
	}
}

func (s *reader) declaration(f *frame) {
	switch {
	case s.tok() == token.COMMA, s.tok() == token.ATTRIBUTE, s.tok() == token.ELLIPSIS:
		s.i++
	case s.labelEnd(s.i) > 0:
		s.labelled(f)
	case s.tok() == token.FOR, s.tok() == token.IF, s.tok() == token.LET:
		s.clause(f)
	case f.parent == nil && s.tok() == token.IDENT && (s.pieces[s.i].lit == "package" || s.pieces[s.i].lit == "import"):
		s.preamble()
	default:
		s.expression(f.path, f)
	}
}

// preamble skips a package clause or imports.
func (s *reader) preamble() {
	for s.i++; !s.ends() && s.tok() != token.COMMA; {
		if s.tok() == token.LPAREN {
			s.within(token.RPAREN, func() { s.i++ })
			continue
		}
		s.i++
	}
}

// clause reads a for, an if or a let, up to the struct that follows, which reads itself.
func (s *reader) clause(f *frame) {
	s.i++
	for !s.ends() && s.tok() != token.COMMA && s.tok() != token.LBRACE {
		before := s.i
		if s.operand(nil, f); s.i == before {
			return
		}
	}
}

// labelEnd returns where the colon of a label is that begins at a token; 0 for none.
func (s *reader) labelEnd(i int) int {
	if s.at(i) == token.IDENT && s.at(i+1) == token.BIND {
		i += 2 // an alias
	}
	switch t := s.at(i); {
	case t == token.LBRACK:
		i = s.matching(i, token.LBRACK, token.RBRACK)
	case t == token.LPAREN:
		i = s.matching(i, token.LPAREN, token.RPAREN)
	case t == token.INTERPOLATION:
		i = s.matching(i, token.INTERPOLATION, endOfText)
	case t != token.IDENT && t != token.STRING && !t.IsKeyword():
		return 0
	}
	if i++; s.at(i) == token.TILDE {
		if i++; s.at(i) == token.LPAREN {
			i = s.matching(i, token.LPAREN, token.RPAREN)
		}
		i++
	}
	if s.at(i) == token.OPTION || s.at(i) == token.NOT {
		i++
	}
	if s.at(i) != token.COLON {
		return 0
	}
	return i
}

// matching returns where the bracket is that closes the one at i.
func (s *reader) matching(i int, first, last token.Token) int {
	for depth := 0; i < len(s.pieces); i++ {
		switch s.at(i) {
		case first:
			depth++
		case last:
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return i
}

// labelled reads a field: one label or several, and a value.
func (s *reader) labelled(f *frame) {
	of := &field{start: s.pieces[s.i].start}
	lacks := false
	for colon := s.labelEnd(s.i); colon > 0 && !lacks; colon = s.labelEnd(s.i) {
		f = s.label(f, of, colon)
		lacks = s.lacksValue(of)
	}
	of.value = s.pieces[s.i-1].end
	if s.i < len(s.pieces) && !lacks {
		of.value = s.pieces[s.i].start
		s.expression(f.path, f)
	}
	of.end = max(s.pieces[s.i-1].end, of.value)
	s.fields = append(s.fields, of)
}

// lacksValue says whether nothing is written yet behind the colon of a label: the next line
// begins with a label, and is not indented further.
func (s *reader) lacksValue(of *field) bool {
	if s.i >= len(s.pieces) || s.labelEnd(s.i) == 0 {
		return false
	}
	colon, next := s.pieces[s.i-1].end, s.pieces[s.i].start
	return bytes.IndexByte(s.src[colon:next], '\n') >= 0 && len(indent(s.src, next)) <= len(indent(s.src, of.start))
}

// indent returns the white space at the beginning of the line that an offset is in.
func indent(src []byte, offset int) string {
	line := src[bytes.LastIndexByte(src[:offset], '\n')+1:]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// label reads a label, and returns the frame of what has it.
func (s *reader) label(f *frame, of *field, colon int) *frame {
	if s.at(s.i+1) == token.BIND {
		s.i += 2
	}
	p, name := s.pieces[s.i], "*"
	if p.tok == token.IDENT || p.tok == token.STRING || p.tok.IsKeyword() {
		w := newWord(p)
		name = w.text
		w.kind, w.path, w.in, w.field = label, slices.Concat(f.path, []string{name}), f, of
		of.words = append(of.words, len(s.words))
		s.words = append(s.words, w)
		if !w.quoted {
			f.labels = append(f.labels, name)
		}
	} else {
		// What a pattern or a computed name refers to.
		for s.i < colon {
			before := s.i
			if s.operand(nil, f); s.i == before {
				s.i++
			}
		}
	}
	s.i = max(s.i, colon+1)
	return &frame{parent: f, path: slices.Concat(f.path, []string{name})}
}

// expression reads a value of the field with a path; nil for what is none.
func (s *reader) expression(path []string, f *frame) {
	for !s.ends() && s.tok() != token.COMMA {
		before := s.i
		if s.operand(path, f); s.i == before {
			return
		}
	}
}

// operand reads a part of an expression.
func (s *reader) operand(path []string, f *frame) {
	switch s.tok() {
	case token.LBRACE:
		in := &frame{parent: f, path: known(path)}
		s.within(token.RBRACE, func() { s.declaration(in) })
	case token.LBRACK:
		element := slices.Concat(known(path), []string{"[]"})
		s.within(token.RBRACK, func() { s.element(element, f) })
	case token.LPAREN:
		of := path
		if s.i > 0 && (s.at(s.i-1) == token.IDENT || s.at(s.i-1) == token.RPAREN) {
			of = nil // the arguments of a call
		}
		s.within(token.RPAREN, func() { s.element(of, f) })
	case token.INTERPOLATION:
		s.within(endOfText, func() { s.element(nil, f) })
	case token.STRING:
		w := newWord(s.pieces[s.i])
		w.kind, w.path, w.in = text, path, f
		if fact := s.compared(); fact != nil {
			w.path = fact
		}
		s.words = append(s.words, w)
		s.i++
	case token.IDENT:
		s.reference(path, f)
	case token.RBRACE, token.RBRACK, token.RPAREN:
	default:
		s.i++
	}
}

// known returns a path, and that of something computed for none.
func known(path []string) []string {
	if path == nil {
		return []string{"*"}
	}
	return path
}

// element reads one of several values.
func (s *reader) element(path []string, f *frame) {
	switch s.tok() {
	case token.COMMA:
		s.i++
	case token.FOR, token.IF, token.LET:
		s.clause(f)
	default:
		s.expression(path, f)
	}
}

// compared returns the path of the fact that the text at hand is compared with, as in
// #assignment.clusterType == "drone"; nil for none.
func (s *reader) compared() []string {
	if i := s.i; i >= 4 && (s.at(i-1) == token.EQL || s.at(i-1) == token.NEQ) &&
		s.at(i-2) == token.IDENT && s.at(i-3) == token.PERIOD && s.pieces[i-4].lit == "#assignment" {
		return []string{"#assignment", s.pieces[i-2].lit}
	}
	return nil
}

// reference reads an identifier and what is selected from it, by names and by texts.
func (s *reader) reference(value []string, f *frame) {
	first := newWord(s.pieces[s.i])
	first.kind, first.path, first.in = bare, value, f
	s.words = append(s.words, first)
	path := []string{first.text}
	if s.i++; s.at(s.i) == token.BIND {
		s.i++ // it is the alias of a value
		return
	}
	for {
		n := s.i + 1
		switch s.tok() {
		case token.PERIOD:
			if s.at(n) != token.IDENT && s.at(n) != token.STRING && !s.at(n).IsKeyword() {
				s.i++
				return
			}
		case token.LBRACK:
			if s.at(n) != token.STRING || s.at(n+1) != token.RBRACK || s.pieces[s.i].start != s.pieces[s.i-1].end {
				return
			}
		default:
			return
		}
		w := newWord(s.pieces[n])
		path = slices.Concat(path, []string{w.text})
		w.kind, w.path, w.in = reference, path, f
		s.words = append(s.words, w)
		if s.i = n + 1; s.tok() == token.RBRACK && s.at(n-1) == token.LBRACK {
			s.i++
		}
	}
}

// newWord returns a word with its text and place.
func newWord(p piece) word {
	w := word{text: p.lit, start: p.start, end: p.end}
	if p.tok != token.STRING {
		w.end = p.start + len(p.lit)
		return w
	}
	w.quoted, w.end = true, p.start+len(p.lit)
	if unquoted, err := literal.Unquote(p.lit); err == nil {
		w.text = unquoted
		return w
	}
	w.open = len(p.lit) < 2 || !strings.HasSuffix(p.lit, `"`)
	w.text = strings.Trim(p.lit, `"`)
	return w
}
