// Package syntax reads CUE that may be incomplete, as in an editor. It returns words and fields
// with their paths. For the line "workloads: cart: " without a value, it returns the words
// workloads and cart, and one field with two keys and no value.
package syntax

import (
	"bytes"
	"slices"
	"strings"

	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/scanner"
	"cuelang.org/go/cue/token"
)

// File is a text that was read. It is immutable.
type File struct {
	Tokens []Token
	Words  []Word
	Fields []*Field // sorted by Start
	// Package is the index of the token with the name of the file's package; -1 if there is no
	// package clause.
	Package int
}

// Token is a token of CUE with its place. A string with interpolations consists of several
// tokens: one token.INTERPOLATION, the tokens of each expression, and finally EndOfText.
type Token struct {
	Kind       token.Token
	Text       string
	Start, End int
}

// EndOfText ends the expressions of an interpolation.
const EndOfText = token.ILLEGAL

// Word is a name or a text in a file, with its place.
type Word struct {
	Kind WordKind
	// Path is the path of the field that a label declares, or of the field whose value contains
	// a text. The path of a reference is its first identifier, and the selectors. An element of
	// a list has the name "[]", and a computed name or a pattern has "*".
	Path       []string
	Text       string
	Start, End int
	Quoted     bool // Start and End include quotes
	Open       bool // the last quote is missing
	Scope      *Scope
	Field      *Field // of a label
}

// WordKind is the role of a word.
type WordKind int

// The kinds of words.
const (
	Label      WordKind = iota
	Text                // a string that is a value
	Reference           // an identifier in an expression, or a selector after it
	Identifier          // an identifier instead of a value; Path leads to the value
)

// Scope is a struct, or a field whose value is a struct without braces.
type Scope struct {
	parent *Scope
	path   []string
	labels []string // the labels that identifiers can refer to
}

// Resolve returns the path of an identifier with its selectors. It is the path of the nearest
// field with the identifier's name or, if there is no such field, of a field in another file.
func (s *Scope) Resolve(path []string) []string {
	for ; s != nil; s = s.parent {
		if slices.Contains(s.labels, path[0]) {
			return slices.Concat(s.path, path)
		}
	}
	return path
}

// Field is a field as it is written: its keys, and a value.
type Field struct {
	Start, Value, End int // the starts of its first key and its value, and its end
	Keys              []Key
	Words             []int // the labels, as indices of a File's words
	// Empty reports whether there is nothing after the last colon. Name reports whether the
	// value is only one identifier, which may be the beginning of a label.
	Empty, Name bool
}

// Key is a label of a field with the colon after it.
type Key struct {
	Path       []string
	Start, End int
}

// Read reads a file. It derives the path of a word from the labels and brackets before it.
func Read(src []byte) *File {
	r := &reader{src: src, File: &File{Tokens: tokens(src), Package: -1}}
	first := slices.IndexFunc(r.Tokens, func(t Token) bool {
		return t.Kind != token.ATTRIBUTE && t.Kind != token.COMMA
	})
	if first >= 0 && r.Tokens[first].Text == "package" && r.kindAt(first+1) == token.IDENT {
		r.Package = first + 1
	}
	root := &Scope{path: []string{}}
	for !r.ends() {
		r.advance(func() { r.declaration(root) })
	}
	return r.File
}

// Unclosed returns the closing brackets that the file lacks.
func (f *File) Unclosed() string {
	closing := map[token.Token]string{token.LBRACE: "}", token.LBRACK: "]", token.LPAREN: ")"}
	unclosed := ""
	interpolations := 0
	for _, t := range f.Tokens {
		switch c := closing[t.Kind]; {
		case t.Kind == token.INTERPOLATION:
			interpolations++
		case t.Kind == EndOfText:
			interpolations--
		case interpolations > 0:
		case c != "":
			unclosed = c + unclosed
		case unclosed != "" && t.Kind.String() == unclosed[:1]:
			unclosed = unclosed[1:]
		}
	}
	return unclosed
}

// tokens returns the tokens of a text, and skips illegal characters.
func tokens(src []byte) []Token {
	var s scanner.Scanner
	file := token.NewFile("", -1, len(src))
	s.Init(file, src, func(token.Pos, string, []any) {}, 0)
	var out []Token
	var parens []int // open parentheses of each interpolation
	for {
		pos, kind, text := s.Scan()
		start := file.Offset(pos)
		end := s.Offset()
		switch {
		case kind == token.EOF:
			return out
		case kind == token.ILLEGAL:
			continue
		case kind == token.COMMA && text == "\n":
			end = start // it is not in the text
		case kind == token.INTERPOLATION:
			parens = append(parens, 0)
		case kind == token.LPAREN && len(parens) > 0:
			parens[len(parens)-1]++
		case kind == token.RPAREN && len(parens) > 0:
			if parens[len(parens)-1]--; parens[len(parens)-1] == 0 {
				rest := s.ResumeInterpolation()
				end = s.Offset()
				// A string that ends with its line may also end with a parenthesis.
				if !strings.HasSuffix(rest, "(") || !bytes.HasPrefix(src[end:], []byte("(")) {
					parens = parens[:len(parens)-1]
					kind = EndOfText
				}
				out = append(out, Token{token.COMMA, "", start, start}) // ends the expression
			}
		}
		out = append(out, Token{kind, text, start, end})
	}
}

// reader reads the tokens of a file, from the first to the last.
type reader struct {
	*File
	src  []byte
	i    int           // the current token
	open []token.Token // the brackets that close the open ones
}

// kindAt returns the kind of a token. It returns EOF after the last one.
func (r *reader) kindAt(i int) token.Token {
	if i >= len(r.Tokens) {
		return token.EOF
	}
	return r.Tokens[i].Kind
}

// ends reports whether the current token closes an open bracket, or ends the file.
func (r *reader) ends() bool {
	t := r.kindAt(r.i)
	return t == token.EOF || slices.Contains(r.open, t)
}

// readBrackets calls read between two brackets until it reaches the last one. The current token is
// the first bracket.
func (r *reader) readBrackets(last token.Token, read func()) {
	r.i++
	r.open = append(r.open, last)
	for !r.ends() {
		r.advance(read)
	}
	r.open = r.open[:len(r.open)-1]
	if r.kindAt(r.i) == last {
		r.i++
	}
}

// advance calls read, and skips a token that read does not accept: an unmatched closing
// bracket.
func (r *reader) advance(read func()) {
	before := r.i
	if read(); r.i == before {
		r.i++
	}
}

func (r *reader) declaration(in *Scope) {
	switch t := r.kindAt(r.i); {
	case t == token.COMMA, t == token.ATTRIBUTE, t == token.ELLIPSIS:
		r.i++
	case r.labelEnd(r.i) > 0:
		r.field(in)
	case t == token.FOR, t == token.IF, t == token.LET:
		r.clause(in)
	case in.parent == nil && t == token.IDENT &&
		(r.Tokens[r.i].Text == "package" || r.Tokens[r.i].Text == "import"):
		for r.i++; !r.ends() && r.kindAt(r.i) != token.COMMA; {
			if r.kindAt(r.i) == token.LPAREN {
				r.readBrackets(token.RPAREN, func() { r.i++ })
				continue
			}
			r.i++
		}
	default:
		r.expression(in.path, in)
	}
}

// clause reads a for, an if or a let, up to the following struct, which is a declaration.
func (r *reader) clause(in *Scope) {
	r.i++
	for !r.ends() && r.kindAt(r.i) != token.COMMA && r.kindAt(r.i) != token.LBRACE {
		before := r.i
		if r.operand(nil, in); r.i == before {
			return
		}
	}
}

// labelEnd returns the index of the colon after the label that begins at a token. It returns 0
// if no label begins there.
func (r *reader) labelEnd(i int) int {
	if r.kindAt(i) == token.IDENT && r.kindAt(i+1) == token.BIND {
		i += 2 // an alias
	}
	switch t := r.kindAt(i); {
	case t == token.LBRACK:
		i = r.matching(i, token.LBRACK, token.RBRACK)
	case t == token.LPAREN:
		i = r.matching(i, token.LPAREN, token.RPAREN)
	case t == token.INTERPOLATION:
		i = r.matching(i, token.INTERPOLATION, EndOfText)
	case t != token.IDENT && t != token.STRING && !t.IsKeyword():
		return 0
	}
	if i++; r.kindAt(i) == token.TILDE {
		if i++; r.kindAt(i) == token.LPAREN {
			i = r.matching(i, token.LPAREN, token.RPAREN)
		}
		i++
	}
	if r.kindAt(i) == token.OPTION || r.kindAt(i) == token.NOT {
		i++
	}
	if r.kindAt(i) != token.COLON {
		return 0
	}
	return i
}

// matching returns the index of the bracket that closes the one at i.
func (r *reader) matching(i int, first, last token.Token) int {
	for depth := 0; i < len(r.Tokens); i++ {
		switch r.kindAt(i) {
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

// field reads a field: one or several keys, and a value.
func (r *reader) field(in *Scope) {
	f := &Field{Start: r.Tokens[r.i].Start}
	r.Fields = append(r.Fields, f)
	for colon := r.labelEnd(r.i); colon > 0 && !f.Empty; colon = r.labelEnd(r.i) {
		in = r.key(in, f, colon)
		// A label on the next line belongs to another field, unless it is indented further.
		if r.labelEnd(r.i) > 0 {
			next := r.Tokens[r.i].Start
			f.Empty = bytes.IndexByte(r.src[r.Tokens[r.i-1].End:next], '\n') >= 0 &&
				len(Indent(r.src, next)) <= len(Indent(r.src, f.Start))
		}
	}
	f.Value = r.Tokens[r.i-1].End
	if first := r.i; first < len(r.Tokens) && !f.Empty {
		f.Value = r.Tokens[first].Start
		r.expression(in.path, in)
		f.Empty = r.i == first
		f.Name = r.i == first+1 && r.kindAt(first) == token.IDENT
	} else {
		f.Empty = true
	}
	f.End = max(r.Tokens[r.i-1].End, f.Value)
}

// Indent returns the white space at the beginning of the line of an offset.
func Indent(src []byte, offset int) string {
	line := src[bytes.LastIndexByte(src[:offset], '\n')+1:]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// key reads a label with its colon, and returns the scope of the value.
func (r *reader) key(in *Scope, f *Field, colon int) *Scope {
	start := r.Tokens[r.i].Start
	if r.kindAt(r.i+1) == token.BIND {
		r.i += 2
	}
	t, name := r.Tokens[r.i], "*"
	if t.Kind == token.IDENT || t.Kind == token.STRING || t.Kind.IsKeyword() {
		w := newWord(t)
		name = w.Text
		w.Kind, w.Path, w.Scope, w.Field = Label, slices.Concat(in.path, []string{name}), in, f
		f.Words = append(f.Words, len(r.Words))
		r.Words = append(r.Words, w)
		if !w.Quoted {
			in.labels = append(in.labels, name)
		}
	} else {
		// A pattern or a computed name may contain references to other fields.
		for r.i < colon {
			r.advance(func() { r.operand(nil, in) })
		}
	}
	r.i = max(r.i, colon+1)
	path := slices.Concat(in.path, []string{name})
	f.Keys = append(f.Keys, Key{path, start, r.Tokens[r.i-1].End})
	return &Scope{parent: in, path: path}
}

// expression reads a value of the field with a path. The path is nil if the expression is not a
// field's value.
func (r *reader) expression(path []string, in *Scope) {
	for !r.ends() && r.kindAt(r.i) != token.COMMA {
		before := r.i
		if r.operand(path, in); r.i == before {
			return
		}
	}
}

// operand reads a part of an expression.
func (r *reader) operand(path []string, in *Scope) {
	inside := path
	if path == nil {
		inside = []string{"*"}
	}
	element := func(path []string) func() {
		return func() {
			switch r.kindAt(r.i) {
			case token.COMMA:
				r.i++
			case token.FOR, token.IF, token.LET:
				r.clause(in)
			default:
				r.expression(path, in)
			}
		}
	}
	switch r.kindAt(r.i) {
	case token.LBRACE:
		scope := &Scope{parent: in, path: inside}
		r.readBrackets(token.RBRACE, func() { r.declaration(scope) })
	case token.LBRACK:
		r.readBrackets(token.RBRACK, element(slices.Concat(inside, []string{"[]"})))
	case token.LPAREN:
		if r.i > 0 && (r.kindAt(r.i-1) == token.IDENT || r.kindAt(r.i-1) == token.RPAREN) {
			path = nil // the arguments of a call
		}
		r.readBrackets(token.RPAREN, element(path))
	case token.INTERPOLATION:
		r.readBrackets(EndOfText, element(nil))
	case token.STRING:
		w := newWord(r.Tokens[r.i])
		w.Kind, w.Path, w.Scope = Text, path, in
		// A text in a comparison with a fact, as in #assignment.clusterType == "drone", is a
		// value of the fact.
		if i := r.i; i >= 4 && (r.kindAt(i-1) == token.EQL || r.kindAt(i-1) == token.NEQ) &&
			r.kindAt(i-2) == token.IDENT && r.kindAt(i-3) == token.PERIOD &&
			r.Tokens[i-4].Text == "#assignment" {
			w.Path = []string{"#assignment", r.Tokens[i-2].Text}
		}
		r.Words = append(r.Words, w)
		r.i++
	case token.IDENT:
		r.reference(path, in)
	case token.RBRACE, token.RBRACK, token.RPAREN:
	default:
		r.i++
	}
}

// reference reads an identifier and its selectors, which are names or texts.
func (r *reader) reference(value []string, in *Scope) {
	first := newWord(r.Tokens[r.i])
	first.Kind, first.Path, first.Scope = Identifier, value, in
	r.Words = append(r.Words, first)
	path := []string{first.Text}
	if r.i++; r.kindAt(r.i) == token.BIND {
		r.i++ // it is the alias of a value
		return
	}
	for {
		n := r.i + 1
		switch r.kindAt(r.i) {
		case token.PERIOD:
			if r.kindAt(n) != token.IDENT && r.kindAt(n) != token.STRING && !r.kindAt(n).IsKeyword() {
				r.i++
				return
			}
		case token.LBRACK:
			if r.kindAt(n) != token.STRING || r.kindAt(n+1) != token.RBRACK ||
				r.Tokens[r.i].Start != r.Tokens[r.i-1].End {
				return
			}
		default:
			return
		}
		w := newWord(r.Tokens[n])
		path = slices.Concat(path, []string{w.Text})
		w.Kind, w.Path, w.Scope = Reference, path, in
		r.Words = append(r.Words, w)
		if r.i = n + 1; r.kindAt(r.i) == token.RBRACK && r.kindAt(n-1) == token.LBRACK {
			r.i++
		}
	}
}

// newWord returns a word with its text and place. The text of a string is without quotes.
func newWord(t Token) Word {
	w := Word{Text: t.Text, Start: t.Start, End: t.Start + len(t.Text), Quoted: t.Kind == token.STRING}
	if !w.Quoted {
		return w
	}
	if unquoted, err := literal.Unquote(t.Text); err == nil {
		w.Text = unquoted
		return w
	}
	w.Open = len(t.Text) < 2 || !strings.HasSuffix(t.Text, `"`)
	w.Text = strings.Trim(t.Text, `"`)
	return w
}
