// Command english checks the English of the project against a table of words and constructions that
// its writers avoid. It prints each place as `file:line: "words": what is wrong; write ...`, and
// exits 1 if there is any.
//
//	go run ./internal/testing/english [-comments] [-commands] [-markdown] [FILES...]
//
// Without files it checks all files of `git ls-files`, and without flags all classes of text. A text
// cannot switch it off: if a row lists good English, its pattern has to become more precise.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	markdown "github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// classes are the kinds of text that a run checks.
type classes struct{ comments, commands, markdown bool }

func main() {
	var c classes
	flag.BoolVar(&c.comments, "comments", false, "check comments of Go files")
	flag.BoolVar(&c.commands, "commands", false, "check texts of commands and the usage of their flags")
	flag.BoolVar(&c.markdown, "markdown", false, "check Markdown files")
	flag.Parse()
	if c == (classes{}) {
		c = classes{true, true, true}
	}
	found, err := check(os.Stdout, flag.Args(), c)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "english:", err)
		os.Exit(2)
	case found:
		os.Exit(1)
	}
}

// check prints the findings of the files, in their order, and reports whether there are any. It
// ignores files that are neither Go nor Markdown. Without files it checks the files that git
// tracks outside of testdata.
func check(out io.Writer, files []string, c classes) (found bool, err error) {
	if len(files) == 0 {
		tracked, err := exec.Command("git", "ls-files", "*.go", "*.md", ":!*/testdata/*").Output()
		if err != nil {
			return false, fmt.Errorf("list files with git: %w", err)
		}
		files = strings.Fields(string(tracked))
	}
	for _, file := range files {
		var blocks []block
		source, err := os.ReadFile(file)
		if err == nil && filepath.Ext(file) == ".go" {
			blocks, err = goBlocks(file, source, c)
		} else if filepath.Ext(file) == ".md" && c.markdown {
			blocks = markdownBlocks(source)
		}
		if err != nil {
			return found, err
		}
		for _, f := range findings(blocks) {
			found = true
			words := strings.Join(strings.Fields(f.words), " ")
			fmt.Fprintf(out, "%s:%d: %.60q: %s; write %s\n", file, f.line, words, f.wrong, f.instead)
		}
	}
	return found, nil
}

// block is a paragraph, a heading, a list item, a table cell or a string. Its text keeps the ends of
// lines; lines are the numbers in the file of the text's lines.
type block struct {
	text  string
	lines []int
}

// finding is a place where a rule matches.
type finding struct {
	rule
	line  int
	words string
}

var (
	// quoted is code, a message, an address or a position in a file: it is not English.
	quoted = regexp.MustCompile("`[^`]*`|\"[^\"]{0,200}\"|\\w+://[^\\s)]+|\\S+:\\d+\\S*")
	line   = regexp.MustCompile(`.+`)
	// stop is the end of a sentence, unless the text before it ends in an abbreviation.
	stop         = regexp.MustCompile(`[.!?]["')\]]*\s+`)
	abbreviation = regexp.MustCompile(`\b(?:e\.g|i\.e|etc|cf|vs|approx|[A-Za-z])\.\s+$`)
)

// findings applies the table to each sentence of the blocks, and returns the findings by line. Rules
// see a quote as one word of underscores.
func findings(blocks []block) (all []finding) {
	for _, b := range blocks {
		hidden := quoted.ReplaceAllStringFunc(b.text, func(quote string) string {
			return line.ReplaceAllStringFunc(quote, func(s string) string { return strings.Repeat("_", len(s)) })
		})
		start := 0
		for _, end := range append(stop.FindAllStringIndex(hidden, -1), []int{0, len(hidden)}) {
			sentence := hidden[start:end[1]]
			if end[1] < len(hidden) && abbreviation.MatchString(sentence) {
				continue
			}
			for _, r := range rules {
				for _, m := range r.pattern.FindAllStringIndex(sentence, -1) {
					if !r.unless.MatchString(sentence[m[0]:m[1]]) {
						number := b.lines[strings.Count(b.text[:start+m[0]], "\n")]
						all = append(all, finding{r, number, b.text[start+m[0] : start+m[1]]})
					}
				}
			}
			start = end[1]
		}
	}
	slices.SortStableFunc(all, func(a, b finding) int { return a.line - b.line })
	return all
}

// goBlocks returns the comments of a Go file and the texts of its commands. It returns nothing
// for generated files.
func goBlocks(name string, source []byte, c classes) ([]block, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(file) {
		return nil, err
	}
	p := paragraphs{}
	for _, group := range file.Comments {
		for _, comment := range group.List {
			body := strings.TrimSuffix(comment.Text[2:], "*/")
			for i, line := range strings.Split(body, "\n") {
				if c.comments && !directive.MatchString(line) {
					p.add(strings.TrimPrefix(line, " "), files.Position(comment.Pos()).Line+i)
				}
			}
		}
		p.end()
	}
	ast.Inspect(file, func(n ast.Node) bool {
		shown := textOf(n)
		if shown == nil || !c.commands {
			return true
		}
		literal, ok := shown.(*ast.BasicLit)
		for i, line := range strings.Split(stringOf(shown), "\n") {
			if !ok || literal.Value[0] != '`' {
				i = 0 // lines of the text are not lines of the file
			}
			p.add(line, files.Position(shown.Pos()).Line+i)
		}
		p.end()
		return true
	})
	return p.blocks, nil
}

var (
	directive = regexp.MustCompile(`^(?:[a-z0-9]+:[a-z0-9]|nolint|line )|^ (?:Unordered output|Output):`)
	// flagMethod matches the methods of pflag.FlagSet whose last argument is the usage of a flag.
	flagMethod = regexp.MustCompile(`^(?:Bool|String|Int|Uint|Float|Duration|Count|Text|Time|Func|Var)\w*$`)
	listItem   = regexp.MustCompile(`^ *(?:[-*•+]|\d+[.)])\s+`)
)

// textOf returns the string of a node that help shows: a text of a command, or the usage of a flag.
func textOf(n ast.Node) ast.Expr {
	switch n := n.(type) {
	case *ast.KeyValueExpr:
		if key, ok := n.Key.(*ast.Ident); ok && slices.Contains([]string{"Use", "Short", "Long", "Example"}, key.Name) {
			return n.Value
		}
	case *ast.CallExpr:
		method, ok := n.Fun.(*ast.SelectorExpr)
		if ok && len(n.Args) > 2 && flagMethod.MatchString(method.Sel.Name) {
			return n.Args[len(n.Args)-1]
		}
	}
	return nil
}

// stringOf returns the value of a string literal or of a sum, in which other expressions are "_".
func stringOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, _ := strconv.Unquote(e.Value)
		return s
	case *ast.BinaryExpr:
		return stringOf(e.X) + stringOf(e.Y)
	}
	return "_"
}

// paragraphs collects the blocks of lines of a comment or a text, without code, which is indented.
type paragraphs struct {
	blocks []block
	open   block
	inList bool // indented lines continue the open block
}

// add adds a line, without the space after the comment marker.
func (p *paragraphs) add(line string, number int) {
	item := listItem.FindString(line)
	indented := item == "" && strings.TrimLeft(line, " \t") != line
	blank := strings.TrimSpace(line) == ""
	if inList := p.inList; item != "" || blank || indented != inList {
		p.end()
		p.inList = item != "" || inList && indented
	}
	if !blank && (!indented || p.inList) {
		p.open.text += strings.TrimSpace(line[len(item):]) + "\n"
		p.open.lines = append(p.open.lines, number)
	}
}

// end ends the open block.
func (p *paragraphs) end() {
	if p.open.text != "" {
		p.open.text = strings.TrimSuffix(p.open.text, "\n")
		p.blocks = append(p.blocks, p.open)
	}
	p.open, p.inList = block{}, false
}

// markdownBlocks returns the blocks of a Markdown file, without HTML and code; a code span is "_".
func markdownBlocks(source []byte) (blocks []block) {
	root := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(source))
	_ = markdown.Walk(root, func(n markdown.Node, entering bool) (markdown.WalkStatus, error) {
		leaf, isText := n.(*markdown.Text)
		switch {
		case !entering:
		case n.Type() == markdown.TypeBlock && n.Lines().Len() > 0:
			line := 1 + bytes.Count(source[:n.Lines().At(0).Start], []byte("\n"))
			blocks = append(blocks, block{lines: []int{line}})
		case n.Kind() == markdown.KindCodeSpan:
			blocks[len(blocks)-1].text += "_"
			return markdown.WalkSkipChildren, nil
		case isText:
			b := &blocks[len(blocks)-1]
			b.text += string(leaf.Segment.Value(source))
			if leaf.SoftLineBreak() || leaf.HardLineBreak() {
				b.text += "\n"
				b.lines = append(b.lines, 2+bytes.Count(source[:leaf.Segment.Stop], []byte("\n")))
			}
		}
		return markdown.WalkContinue, nil
	})
	return blocks
}
