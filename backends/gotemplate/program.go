package gotemplate

import (
	"strconv"
	"strings"
	"sync"
	"text/template"
	"text/template/parse"

	"github.com/kalypso-io/kalypso/compiler/diag"
)

// program is a template that was parsed, checked and instrumented. It is
// immutable, and may be run by several goroutines.
type program struct {
	template  *template.Template
	used      []string        // the functions that it calls
	mentioned map[string]bool // the fields of the assignment that it names
	places    []place         // by the number of its mark
}

// place is the place of a node in the template.
type place struct {
	line  int
	text  bool // it is text, and the lines in it count
	calls int  // 1 at the beginning of a template, -1 at its end
}

// markFunction is the function that programOf inserts. It notes the place of the run, and counts
// it. The output of an action goes through it. Templates may not call it.
const markFunction = "kalypsoMark"

// readFunction is the function that programOf inserts where text/template reads a value. Templates
// may not call it.
const readFunction = "kalypsoRead"

// comparisons are the functions of text/template that read their arguments, and are its own.
var comparisons = namesOf("eq ne lt le gt ge")

// parseFunctions are the functions for the parser. They include the refused functions, so that
// programOf can report them with their line.
var parseFunctions = sync.OnceValue(func() template.FuncMap {
	all := template.FuncMap{markFunction: (*run)(nil).mark, readFunction: (*run)(nil).read}
	for name, f := range functions() {
		all[name] = f
	}
	for name := range refused {
		all[name] = func(...any) string { return "" } // found by name, with its line
	}
	return all
})

// programs remembers programs by path and text: the assignments of a cluster type
// share them. It is emptied when it is full.
var programs = struct {
	sync.Mutex
	of map[[2]string]*program
}{of: map[[2]string]*program{}}

const maxPrograms = 500

// programOf parses a template, and reports calls of functions that it must not use. It
// returns nil if the text is not a valid template.
func programOf(s source) (*program, []diag.Diagnostic) {
	key := [2]string{s.path, s.text}
	programs.Lock()
	p := programs.of[key]
	programs.Unlock()
	if p != nil {
		return p, nil
	}
	if len(s.text) > maxOutput {
		return nil, []diag.Diagnostic{s.problem("the template of %s has %d bytes, and %s is the most",
			s.path, len(s.text), mebibytes(maxOutput))}
	}
	t, err := template.New(s.path).Funcs(parseFunctions()).Option("missingkey=error").Parse(s.text)
	if err != nil {
		return nil, []diag.Diagnostic{s.failure(err, nil)}
	}
	i := &instrument{source: s, used: map[string]bool{}, mentioned: map[string]bool{}}
	for _, each := range t.Templates() {
		if each.Tree != nil && each.Root != nil {
			i.template(each.Root)
		}
	}
	if len(i.ds) > 0 {
		return nil, i.ds
	}
	p = &program{template: t, used: sortedKeys(i.used), mentioned: i.mentioned, places: i.places}
	programs.Lock()
	defer programs.Unlock()
	if len(programs.of) >= maxPrograms {
		clear(programs.of)
	}
	programs.of[key] = p
	return p, nil
}

// instrument adds the marks to a template, and records the functions and fields that it
// uses.
type instrument struct {
	source
	used      map[string]bool
	mentioned map[string]bool
	places    []place
	ds        []diag.Diagnostic

	offset, newlines int // the last argument of line, and the newlines before it
}

// line returns the line of a node. Nodes are visited about in their order.
func (i *instrument) line(at parse.Pos) int {
	if to := int(at); to >= i.offset {
		i.newlines += strings.Count(i.text[i.offset:to], "\n")
	} else {
		i.newlines -= strings.Count(i.text[to:i.offset], "\n")
	}
	i.offset = int(at)
	return i.newlines + 1
}

// template marks the beginning and the end of a template.
func (i *instrument) template(root *parse.ListNode) {
	begin := len(i.places)
	i.list(root)
	i.places[begin].calls = 1
	root.Nodes = append(root.Nodes, i.mark(place{line: i.places[begin].line, calls: -1}, root.Pos))
}

// list puts a mark at the beginning of a list, which may be the body of a loop, and before
// every node in it that writes.
func (i *instrument) list(l *parse.ListNode) {
	if l == nil {
		return
	}
	nodes := []parse.Node{i.mark(place{line: i.line(l.Pos)}, l.Pos)}
	for _, n := range l.Nodes {
		switch n := n.(type) {
		case *parse.TextNode:
			nodes = append(nodes, i.mark(place{line: i.line(n.Pos), text: true}, n.Pos))
		case *parse.ActionNode:
			i.pipe(n.Pipe)
			if len(n.Pipe.Decl) == 0 {
				n.Pipe.Cmds = append(n.Pipe.Cmds, i.command(place{line: i.line(n.Pos)}, n.Pos))
			}
		case *parse.IfNode:
			i.branch(&n.BranchNode)
		case *parse.WithNode:
			i.branch(&n.BranchNode)
		case *parse.RangeNode:
			i.branch(&n.BranchNode)
			n.Pipe.Cmds = append(n.Pipe.Cmds, read(n.Pos))
		case *parse.TemplateNode:
			i.pipe(n.Pipe)
		}
		nodes = append(nodes, n)
	}
	l.Nodes = nodes
}

func (i *instrument) branch(b *parse.BranchNode) {
	i.pipe(b.Pipe)
	i.list(b.List)
	i.list(b.ElseList)
}

func (i *instrument) pipe(p *parse.PipeNode) {
	if p == nil {
		return
	}
	cmds := p.Cmds
	p.Cmds = nil
	for n, c := range cmds {
		for _, arg := range c.Args {
			i.argument(arg)
		}
		if f, ok := c.Args[0].(*parse.IdentifierNode); ok && comparisons[f.Ident] {
			if n > 0 {
				p.Cmds = append(p.Cmds, read(c.Pos))
			}
			for k, arg := range c.Args[1:] {
				switch arg.(type) {
				case *parse.NilNode, *parse.NumberNode, *parse.BoolNode, *parse.StringNode:
				default:
					c.Args[k+1] = &parse.PipeNode{NodeType: parse.NodePipe, Pos: c.Pos,
						Cmds: []*parse.CommandNode{
							{NodeType: parse.NodeCommand, Pos: c.Pos, Args: []parse.Node{arg}}, read(c.Pos)}}
				}
			}
		}
		p.Cmds = append(p.Cmds, c)
	}
}

// read returns a call of readFunction on the value of a pipeline.
func read(at parse.Pos) *parse.CommandNode {
	return &parse.CommandNode{NodeType: parse.NodeCommand, Pos: at,
		Args: []parse.Node{parse.NewIdentifier(readFunction).SetPos(at)}}
}

// argument checks the arguments of a command.
func (i *instrument) argument(n parse.Node) {
	switch n := n.(type) {
	case *parse.IdentifierNode:
		i.calls(n)
	case *parse.PipeNode:
		i.pipe(n)
	case *parse.ChainNode:
		i.argument(n.Node)
	case *parse.FieldNode:
		i.mentioned[n.Ident[0]] = true
	case *parse.VariableNode:
		if n.Ident[0] == "$" && len(n.Ident) > 1 {
			i.mentioned[n.Ident[1]] = true
		}
	}
}

// calls records a called function, and reports one that templates must not call.
func (i *instrument) calls(n *parse.IdentifierNode) {
	line := i.line(n.Pos)
	switch why, bad := refused[n.Ident]; {
	case bad:
		i.ds = append(i.ds, i.problem("the template of %s calls %s in line %d, which %s",
			i.path, n.Ident, line, why).Hinting(instead(n.Ident)))
	case strings.HasPrefix(n.Ident, "kalypso"):
		i.ds = append(i.ds, i.problem("the template of %s calls %s in line %d, which is kalypso's own",
			i.path, n.Ident, line))
	case functions()[n.Ident] != nil:
		i.used[n.Ident] = true
	}
}

// mark returns a node that notes a place.
func (i *instrument) mark(p place, at parse.Pos) parse.Node {
	return &parse.ActionNode{NodeType: parse.NodeAction, Pos: at, Pipe: &parse.PipeNode{
		NodeType: parse.NodePipe, Pos: at, Cmds: []*parse.CommandNode{i.command(p, at)},
	}}
}

// command returns a call of the mark with a place.
func (i *instrument) command(p place, at parse.Pos) *parse.CommandNode {
	number := len(i.places)
	i.places = append(i.places, p)
	return &parse.CommandNode{NodeType: parse.NodeCommand, Pos: at, Args: []parse.Node{
		parse.NewIdentifier(markFunction).SetPos(at),
		&parse.NumberNode{NodeType: parse.NodeNumber, Pos: at, IsInt: true, Int64: int64(number),
			Text: strconv.Itoa(number)},
	}}
}
