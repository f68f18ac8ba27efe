package shown

import (
	"strings"

	"cuelang.org/go/cue/scanner"
	"cuelang.org/go/cue/token"
)

// lexeme is a token with where it is. A string with interpolations is one.
type lexeme struct {
	token      token.Token
	start, end int
	text       string
}

// lexemes returns the tokens of a text, the last of which is EOF.
func lexemes(text string) []lexeme {
	var s scanner.Scanner
	s.Init(token.NewFile("", -1, len(text)), []byte(text), func(token.Pos, string, []any) {}, 0)
	var out []lexeme
	for {
		pos, tok, lit := s.Scan()
		l := lexeme{tok, min(pos.Offset(), len(text)), s.Offset(), lit}
		switch {
		case tok == token.EOF:
			return append(out, lexeme{token.EOF, len(text), len(text), ""})
		case tok == token.INTERPOLATION:
			interpolated(&s, text)
			l.token, l.end, l.text = token.STRING, s.Offset(), ""
		case tok == token.COMMA && lit == "\n":
			l.end = l.start // nobody wrote it
		}
		out = append(out, l)
	}
}

// interpolated reads the rest of a string that has begun with an interpolation.
func interpolated(s *scanner.Scanner, text string) {
	for depth := 0; ; {
		switch _, tok, _ := s.Scan(); tok {
		case token.EOF:
			return
		case token.LPAREN:
			depth++
		case token.INTERPOLATION:
			interpolated(s, text)
		case token.RPAREN:
			if depth--; depth == 0 {
				// A string that its line cuts off may end like this too.
				if more := strings.HasSuffix(s.ResumeInterpolation(), "("); !more || !strings.HasPrefix(text[s.Offset():], "(") {
					return
				}
			}
		}
	}
}

// find returns what has to be inserted into the text of a platform's file.
func find(text string) []insertion {
	w := walker{text: text, all: lexemes(text)}
	name := w.preamble()
	if name == 0 {
		return nil // no package, no platform
	}
	w.declarations(platform())
	for w.at(token.RBRACE, token.RBRACK, token.RPAREN) { // one too many
		w.next()
		w.declarations(platform())
	}
	if len(w.insertions) == 0 && len(w.open()) == 0 {
		return nil
	}
	w.insert(name, importOfSchema, false)
	if open := w.open(); len(open) > 0 {
		w.insert(len(text), "\n"+open, false)
	}
	return w.insertions
}

// walker reads the tokens of a file from the first to the last.
type walker struct {
	text       string
	all        []lexeme
	i          int
	insertions []insertion
}

func (w *walker) now() lexeme { return w.all[w.i] }

func (w *walker) next() {
	if w.i < len(w.all)-1 {
		w.i++
	}
}

func (w *walker) at(tokens ...token.Token) bool {
	for _, t := range tokens {
		if w.now().token == t {
			return true
		}
	}
	return false
}

func (w *walker) insert(at int, text string, before bool) {
	w.insertions = append(w.insertions, insertion{at: at, text: text, before: before})
}

// open returns what closes the braces and brackets that nothing closes.
func (w *walker) open() string {
	closing := map[token.Token]string{token.LBRACE: "}", token.LBRACK: "]", token.LPAREN: ")"}
	var open []string
	for _, l := range w.all {
		if c, ok := closing[l.token]; ok {
			open = append(open, c)
		} else if n := len(open) - 1; n >= 0 && l.token.String() == open[n] {
			open = open[:n]
		}
	}
	var b strings.Builder
	for i := len(open) - 1; i >= 0; i-- {
		b.WriteString(open[i])
	}
	return b.String()
}

// preamble goes behind the package clause, and returns where it ends; 0 for none.
func (w *walker) preamble() int {
	for w.at(token.ATTRIBUTE, token.COMMA) {
		w.next()
	}
	if w.now().text != "package" && w.now().token.String() != "package" {
		return 0
	}
	w.next()
	if !w.at(token.IDENT) {
		return 0
	}
	end := w.now().end
	w.next()
	return end
}

// declarations reads those of a struct of a shape, up to what closes it.
func (w *walker) declarations(in *shape) {
	for !w.at(token.RBRACE, token.RBRACK, token.RPAREN, token.EOF) {
		if w.at(token.COMMA, token.ATTRIBUTE) {
			w.next()
			continue
		}
		w.declaration(in)
	}
}

// declaration reads one declaration of a struct of a shape.
func (w *walker) declaration(in *shape) {
	if name, ok := w.label(); ok {
		child, definition := in.field(name)
		w.value(child, definition)
		return
	}
	// An embedded struct has the same shape, and so has that of a comprehension.
	before := w.i
	w.expression(in)
	if w.i == before {
		w.next() // nothing that CUE knows
	}
}

// label goes behind the colon of a label, if there is one here, and returns its name: "" for
// a pattern and what is computed.
func (w *walker) label() (string, bool) {
	end, name := w.labelEnd(w.i)
	if end == 0 {
		return "", false
	}
	w.i = end
	return name, true
}

// labelEnd returns the index of the token behind the label that begins at an index, and its
// name; 0 if there is none.
func (w *walker) labelEnd(i int) (int, string) {
	name := ""
	if i+1 < len(w.all) && w.all[i].token == token.IDENT && w.all[i+1].token == token.BIND {
		i += 2 // an alias
	}
	switch l := w.all[i]; {
	case l.token == token.LBRACK || l.token == token.LPAREN:
		i = w.closing(i)
	case l.token == token.IDENT || l.token == token.STRING || l.token.IsKeyword() || l.token.IsLiteral():
		name = nameOf(l)
		if name == "" && l.token.IsKeyword() {
			name = l.token.String()
		}
	default:
		return 0, ""
	}
	if i++; i < len(w.all) && (w.all[i].token == token.OPTION || w.all[i].token == token.NOT) {
		i++
	}
	if i+1 >= len(w.all) || w.all[i].token != token.COLON {
		return 0, ""
	}
	return i + 1, name
}

// closing returns the index of the token that closes what one opens, or that of the last.
func (w *walker) closing(i int) int {
	depth := 0
	for ; i < len(w.all)-1; i++ {
		switch w.all[i].token {
		case token.LBRACE, token.LBRACK, token.LPAREN:
			depth++
		case token.RBRACE, token.RBRACK, token.RPAREN:
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return i
}

// value reads the value of a field of a shape, and inserts the definition before it.
func (w *walker) value(of *shape, definition string) {
	behind := w.all[w.i-1].end
	if definition != "" {
		definition = Schema + "." + definition + " & "
	}
	end, _ := w.labelEnd(w.i)
	switch {
	case w.at(token.EOF, token.RBRACE, token.COMMA), end != 0 && w.newLine(behind):
		// Nothing is written yet. What comes on the next line is another field.
		if definition != "" {
			at := behind + len(untilLineEnd(w.text[behind:w.now().start]))
			w.insert(at, definition+"{", true)
			w.insert(at, "}", false)
		}
	case end != 0: // cart: labels: ...
		w.around(definition, func() { w.declaration(of) })
	case w.at(token.IDENT) && w.ends(w.i+1): // maybe the beginning of a label
		w.around(definition, w.next)
	default:
		if definition != "" {
			w.insert(w.now().start, definition, true)
		}
		w.expression(of)
	}
}

// around makes a struct of what read reads, if there is a definition.
func (w *walker) around(definition string, read func()) {
	if definition == "" {
		read()
		return
	}
	w.insert(w.now().start, definition+"{", true)
	read()
	w.insert(w.all[w.i-1].end, "}", false)
}

// ends says whether a token ends an expression.
func (w *walker) ends(i int) bool {
	switch w.all[i].token {
	case token.COMMA, token.RBRACE, token.EOF:
		return true
	}
	return false
}

// newLine says whether the next token is on another line than an offset before it.
func (w *walker) newLine(behind int) bool {
	return strings.Contains(w.text[behind:w.now().start], "\n")
}

// untilLineEnd returns the white space that a text begins with, without the line's end.
func untilLineEnd(text string) string {
	return text[:len(text)-len(strings.TrimLeft(text, " \t"))]
}

// expression reads an expression, or clauses and their struct, up to a comma or what closes
// around it. Structs in it have the shape, lists its elements.
func (w *walker) expression(of *shape) {
	for {
		switch w.now().token {
		case token.COMMA, token.RBRACE, token.RBRACK, token.RPAREN, token.EOF:
			return
		case token.LBRACE:
			w.next()
			w.declarations(of)
			if w.at(token.EOF) {
				return
			}
			w.next() // what closes it, or what stands in its place
		case token.LBRACK:
			w.within(of.elements())
		case token.LPAREN:
			w.within(of)
		default:
			w.next()
		}
	}
}

// within reads the expressions in brackets.
func (w *walker) within(of *shape) {
	w.next()
	for !w.at(token.RBRACE, token.RBRACK, token.RPAREN, token.EOF) {
		w.expression(of)
		if w.at(token.COMMA) {
			w.next()
		}
	}
	w.next()
}
