package loader

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/scanner"
	"cuelang.org/go/cue/token"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/lazyregexp"
)

// habits are common mistakes of people who know YAML, Helm, shells or Terraform better than
// CUE. The first group of a pattern is the position of the mistake. In texts, $1 and $2 are the
// groups.
var habits = []struct {
	line    lazyregexp.Regexp
	message string
	hint    string
	earlier bool // CUE may stop only in the line after it
	here    bool // CUE stops in it
}{
	{lazyregexp.New(`^(---)\s*$`), "--- is of YAML, and separates nothing in CUE", "remove the line",
		true, false},
	{lazyregexp.New(`^\s*(#)(?:[\s#]+(\S.*)|\s*)$`), "a comment begins with //, and not with #",
		"write // $2", true, false},
	{lazyregexp.New(`(\{\{)`), "{{…}} is a template of Helm, and CUE has none",
		`refer to a field or a let by its name, such as _color, or in a text by "\(_color)"`, false,
		false},
	{lazyregexp.New(`(\$\{(\w+)\})`), "$1 is a variable of a shell, and CUE has none",
		`refer to a field or a let by its name, $2, or in a text by "\($2)"; if the text is to hold it as it is, write "$1", and list the path of a value under plain`, false, false},
	{lazyregexp.New(`^\s*(-)\s`), "a list stands between brackets, and its elements have no dashes",
		"write [a, b], and of structs [{…}, {…}]", false, false},
	{lazyregexp.New(`^\s*((?:"[^"]+"|[\w-]+))\s*=\s*["'\d{\[tf]`), "a field has a colon before its " +
		"value, and not =", "write $1: …", true, false},
	{lazyregexp.New(`\s(#\s+(\S.*))$`), "a comment begins with //, and not with #", "write // $2",
		false, true},
	{lazyregexp.New(`(<<):`), "<< merges a struct into another in YAML, and CUE has none",
		"name the struct in braces beside the other fields: {_base, size: 1}", false, false},
	{lazyregexp.New(`:\s*(!!?\w+)\s`), "$1 is a tag of YAML, and CUE has none",
		`remove it: a text has quotes, as "1", and a number has none`, false, false},
	{unquotedURL, "a text has quotes", `write "$1"`, true, false},
	{lazyregexp.New(`(?:^|[:{,])\s*([A-Za-z0-9_]+(?:[-./][A-Za-z0-9_]+)+):`),
		"a name with other characters than letters, digits and _ has quotes", `write "$1": …`, false,
		true},
	{lazyregexp.New(`:\s*(~)\s*[,}]*\s*$`), "~ is a null of YAML", "remove the field, or write null " +
		"where null is a value", true, false},
	{lazyregexp.New(`:\s*([|>][-+]?)\s*$`), "a text of several lines stands between three quotes",
		`write """, the text below it, and """ in a line of its own`, true, false},
	{lazyregexp.New(`:\s*([A-Za-z0-9]+(?:(?: |[.:/@-]+)[A-Za-z0-9]+)*)\s*[,}]*\s*$`),
		"a text has quotes", `write "$1"`, false, true},
	{lazyregexp.New(`([“”‘’])`), "a text has straight quotes", `write "…"`, false, false},
}

// textual matches a possible text or name without quotes, but not a number.
var textual = lazyregexp.New(`[A-Za-z]|\..*\.|\d-\d+-\d`)

// unquotedURL matches a URL without quotes. CUE reads everything after its // as a comment.
var unquotedURL = lazyregexp.New(`^[^"']*:\s*((?:https?|ssh|git|oci)://[^\s,}]+)`)

// syntax describes the mistake in a file that CUE cannot parse. The line and the brackets
// around it are more exact than the word at which CUE stops, which may be far behind the
// mistake. found is false if the error is not a syntax error.
func (p *Places) syntax(e errors.Error, message string) (d diag.Diagnostic, found bool) {
	for _, pos := range errors.Positions(e) {
		at := p.Position(pos)
		name, _ := p.files.Name(pos.Filename())
		data, err := p.files.ReadFile(name)
		if at.IsZero() || err != nil {
			continue
		}
		stops, unterminated := parserErrors(pos, data)
		if !stops {
			continue
		}
		s := sketchOf(data)
		if d, found = s.habit(at); !found && !unterminated { // the open bracket may be in a string
			d, found = s.unclosed(at)
		}
		if !found {
			d = unreadable(message, diag.Syntax).In(at, "")
		}
		d = d.On(s.path(d.Sites[0].Position))
		for _, other := range p.All(errors.Positions(e)) {
			if other != at {
				d = d.In(other, "") // the import
			}
		}
		return d, true
	}
	return d, false
}

// parserErrors reports whether CUE's parser has an error at a position, and whether it finds an
// unterminated string in the file.
func parserErrors(at token.Pos, data []byte) (stops, unterminated bool) {
	_, err := parser.ParseFile(at.Filename(), data)
	for _, e := range errors.Errors(err) {
		stops = stops || e.Position().Line() == at.Line() && e.Position().Column() == at.Column()
		unterminated = unterminated || strings.Contains(e.Error(), "not terminated")
	}
	return stops, unterminated
}

// habit finds a habit of another language in the line at which CUE stops, or in the last line
// before it that is not empty.
func (s *sketch) habit(at model.Position) (d diag.Diagnostic, found bool) {
	earlier := at.Line - 1
	for earlier > 1 && strings.TrimSpace(s.line(earlier)) == "" {
		earlier--
	}
	for _, h := range habits {
		for _, line := range []int{at.Line, earlier} {
			if line == earlier && !h.earlier {
				continue
			}
			text := s.line(line)
			m := h.line.FindStringSubmatchIndex(text)
			if m == nil || line == at.Line && at.Column <= m[2] || h.here &&
				(at.Column > m[3]+1 || !textual.MatchString(text[m[2]:m[3]])) {
				continue
			}
			var fill []string
			for i := 2; i < len(m); i += 2 {
				if m[i] >= 0 {
					fill = append(fill, "$"+strconv.Itoa(i/2), text[m[i]:m[i+1]])
				}
			}
			with := strings.NewReplacer(fill...)
			where := model.Position{File: at.File, Line: line, Column: m[2] + 1}
			return diag.New(diag.Syntax, with.Replace(h.message)).Hinting(with.Replace(h.hint)).In(where,
				""), true
		}
	}
	return d, false
}

// unclosed finds the bracket that is not closed, if there is one. A line leaves a bracket if it
// begins no further to the right than the bracket's line, or if its closing bracket is further
// to the left. unclosed reports the first such bracket that stays open, or whose closing mends
// the file. Otherwise it reports the bracket in which the file ends.
func (s *sketch) unclosed(at model.Position) (d diag.Diagnostic, found bool) {
	if len(s.open) == 0 {
		return d, false
	}
	open, before := s.open[len(s.open)-1], 0
	tries := 0
	for _, w := range s.words {
		left, leaves := s.leaves(w)
		if !leaves {
			continue
		}
		if !slices.Contains(s.open, left) {
			if tries++; tries > maxMended || !s.mends(left, w.line) {
				continue
			}
		}
		open, before = left, w.line
		break
	}
	bracket := s.words[open]
	for line := bracket.line; line <= at.Line; line++ {
		if m := unquotedURL.FindStringSubmatchIndex(s.line(line)); m != nil {
			return s.habit(model.Position{File: at.File, Line: line})
		}
	}
	hint := "close it with " + closers[bracket.Token].String()
	if before > 0 {
		hint += fmt.Sprintf(" before line %d", before)
	}
	return diag.New(diag.Syntax, bracket.Token.String()+" is not closed").Hinting(hint).
		In(model.Position{File: at.File, Line: bracket.line, Column: bracket.column}, ""), true
}

// maxMended is the maximal number of closing brackets to try: a file without indentation has
// many.
const maxMended = 20

// leaves returns the bracket that ends before a word, according to the indentation.
func (s *sketch) leaves(w word) (bracket int, leaves bool) {
	switch {
	case !w.first:
		return 0, false
	case w.closes():
		return w.closed, w.closed >= 0 && s.indent(s.words[w.closed].line) > w.column
	}
	return w.in, w.in >= 0 && s.indent(s.words[w.in].line) >= w.column
}

// mends reports whether CUE can parse the file after closing a bracket before a line.
func (s *sketch) mends(bracket, line int) bool {
	lines := slices.Insert(slices.Clone(s.lines), line-1, closers[s.words[bracket].Token].String())
	_, err := parser.ParseFile("", strings.Join(lines, "\n"))
	return err == nil
}

// sketch is the rough structure of a file that is not valid CUE: its lines, its words, and its
// unclosed brackets.
type sketch struct {
	lines []string
	words []word
	open  []int // unclosed brackets, by their numbers
}

// word is a token of CUE, with the numbers of the bracket around it and of the bracket that it
// closes. A number is -1 if there is no such bracket.
type word struct {
	token.Token
	text         string
	line, column int
	first        bool // in its line
	in, closed   int
}

// closers are the closing brackets of opening ones.
var closers = map[token.Token]token.Token{token.LBRACE: token.RBRACE, token.LBRACK: token.RBRACK,
	token.LPAREN: token.RPAREN}

// closes reports whether a word is a bracket that closes another.
func (w word) closes() bool {
	return w.Token == token.RBRACE || w.Token == token.RBRACK || w.Token == token.RPAREN
}

// sketchOf returns the sketch of a file.
func sketchOf(data []byte) *sketch {
	s := &sketch{lines: strings.Split(string(data), "\n")}
	var scan scanner.Scanner
	scan.Init(token.NewFile("", 0, len(data)), data, func(token.Pos, string, []any) {}, 0)
	var around []int           // the brackets around the next word
	inText := map[int]bool{}   // brackets of expressions in strings
	line, expected := 0, false // expected reports whether such a bracket is next
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
					// The scanner does not detect the end of an expression by itself.
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

// close removes a closed bracket from the brackets around a word. The brackets inside it stay
// unclosed.
func (s *sketch) close(around []int, by token.Token) []int {
	for i, bracket := range slices.Backward(around) {
		if closers[s.words[bracket].Token] == by {
			s.open = append(s.open, around[i+1:]...)
			return around[:i]
		}
	}
	return around
}

// line returns the line with a number. It returns "" if there is no such line.
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

// path returns the names of the fields around a position, as far as they are written as names.
func (s *sketch) path(at model.Position) string {
	of := map[int]string{} // by bracket: the path of the current field in it
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

// label returns the name in the word with a number. If that word marks the field as optional or
// required, label returns the name before it.
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
