package gotemplate

import (
	"fmt"
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

// place is where a node of the template stands.
type place struct {
	line int
	text bool // it is text, whose own lines count on
}

// The functions that the instrumentation calls. Nobody else may.
const (
	markFunction  = "kalypsoMark"  // notes where the run is, and counts it
	weighFunction = "kalypsoWeigh" // weighs a value, and passes it on
	showFunction  = "kalypsoShow"  // the same for a value that is printed
	enterFunction = "kalypsoEnter" // before the call of a template
	leaveFunction = "kalypsoLeave" // after it
)

// parseFunctions is what the parser needs to know: that there are such functions.
var parseFunctions = sync.OnceValue(func() template.FuncMap {
	all := template.FuncMap{
		markFunction:  func(int) string { return "" },
		weighFunction: func(any) any { return nil },
		showFunction:  func(any) any { return nil },
		enterFunction: func() string { return "" },
		leaveFunction: func() string { return "" },
	}
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

const mostPrograms = 500

// programOf parses a template, and reports what it must not do; nil where it is
// no template at all.
func programOf(s source) (*program, []diag.Diagnostic) {
	key := [2]string{s.path, s.text}
	programs.Lock()
	p := programs.of[key]
	programs.Unlock()
	if p != nil {
		return p, nil
	}
	if len(s.text) > maxOutput {
		return nil, []diag.Diagnostic{s.problem("the template of %s has %d bytes, and %s is the most", s.path, len(s.text), mebibytes(maxOutput))}
	}
	t, err := template.New(s.path).Funcs(parseFunctions()).Option("missingkey=error").Parse(s.text)
	if err != nil {
		return nil, []diag.Diagnostic{s.failure(err, nil)}
	}
	i := newInstrument(s)
	for _, each := range t.Templates() {
		if each.Tree != nil && each.Root != nil {
			i.list(each.Root)
		}
	}
	if len(i.ds) > 0 {
		return nil, i.ds
	}
	p = &program{template: t, used: sortedKeys(i.used), mentioned: i.mentioned, places: i.places}
	programs.Lock()
	defer programs.Unlock()
	if len(programs.of) >= mostPrograms {
		clear(programs.of)
	}
	programs.of[key] = p
	return p, nil
}

// instrument changes the nodes of a template so that a run of it can be bounded,
// and knows which line makes what.
type instrument struct {
	source
	lines     *lines
	used      map[string]bool
	mentioned map[string]bool
	places    []place
	ds        []diag.Diagnostic
}

func newInstrument(s source) *instrument {
	return &instrument{source: s, lines: newLines(s.text), used: map[string]bool{}, mentioned: map[string]bool{}}
}

// list puts a mark before every node that writes, and at the start of the list,
// which may be the body of a loop.
func (i *instrument) list(l *parse.ListNode) {
	if l == nil {
		return
	}
	nodes := []parse.Node{i.mark(l.Pos, false)}
	for _, n := range l.Nodes {
		switch n := n.(type) {
		case *parse.TextNode:
			nodes = append(nodes, i.mark(n.Pos, true))
		case *parse.ActionNode:
			nodes = append(nodes, i.mark(n.Pos, false))
			i.pipe(n.Pipe)
			if len(n.Pipe.Decl) == 0 {
				n.Pipe.Cmds = append(n.Pipe.Cmds, i.command(showFunction, n.Pos))
			}
		case *parse.IfNode:
			i.branch(&n.BranchNode)
		case *parse.WithNode:
			i.branch(&n.BranchNode)
		case *parse.RangeNode:
			i.branch(&n.BranchNode)
			n.Pipe.Cmds = append(n.Pipe.Cmds, i.command(weighFunction, n.Pos)) // its keys are sorted
		case *parse.TemplateNode:
			i.pipe(n.Pipe)
			nodes = append(nodes, action(i.command(enterFunction, n.Pos)), n, action(i.command(leaveFunction, n.Pos)))
			continue
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

// comparisons are the functions of text/template that cannot be replaced, and
// look at all of a value: their arguments are weighed.
var comparisons = map[string]bool{"eq": true, "ne": true, "lt": true, "le": true, "gt": true, "ge": true}

func (i *instrument) pipe(p *parse.PipeNode) {
	if p == nil {
		return
	}
	var commands []*parse.CommandNode
	for n, c := range p.Cmds {
		compares := false
		if id, ok := c.Args[0].(*parse.IdentifierNode); ok && comparisons[id.Ident] {
			compares = true
			if n > 0 {
				commands = append(commands, i.command(weighFunction, c.Pos))
			}
		}
		for k, arg := range c.Args {
			i.argument(arg)
			if compares && weighable(arg) {
				c.Args[k] = &parse.PipeNode{NodeType: parse.NodePipe, Pos: arg.Position(), Cmds: []*parse.CommandNode{
					{NodeType: parse.NodeCommand, Pos: arg.Position(), Args: []parse.Node{arg}},
					i.command(weighFunction, arg.Position()),
				}}
			}
		}
		commands = append(commands, c)
	}
	p.Cmds = commands
}

func weighable(n parse.Node) bool {
	switch n.(type) {
	case *parse.FieldNode, *parse.VariableNode, *parse.ChainNode, *parse.PipeNode, *parse.DotNode:
		return true
	}
	return false
}

// argument looks at what a command is made of.
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

// calls notes a function that is called, and reports one that must not be.
func (i *instrument) calls(n *parse.IdentifierNode) {
	line := i.lines.at(int(n.Pos))
	switch why, bad := refused[n.Ident]; {
	case bad:
		i.ds = append(i.ds, i.problem("the template of %s calls %s in line %d, which %s", i.path, n.Ident, line, why).Hinting(instead(n.Ident)))
	case strings.HasPrefix(n.Ident, "kalypso"):
		i.ds = append(i.ds, i.problem("the template of %s calls %s in line %d, which is kalypso's own", i.path, n.Ident, line))
	case functions()[n.Ident] != nil:
		i.used[n.Ident] = true
	}
}

// mark returns a node that notes where the run is.
func (i *instrument) mark(at parse.Pos, text bool) parse.Node {
	i.places = append(i.places, place{i.lines.at(int(at)), text})
	number := len(i.places) - 1
	command := i.command(markFunction, at)
	command.Args = append(command.Args, &parse.NumberNode{NodeType: parse.NodeNumber, Pos: at, IsInt: true, Int64: int64(number), Text: fmt.Sprint(number)})
	return action(command)
}

// action returns a node that runs a command.
func action(c *parse.CommandNode) parse.Node {
	return &parse.ActionNode{NodeType: parse.NodeAction, Pos: c.Pos, Pipe: &parse.PipeNode{NodeType: parse.NodePipe, Pos: c.Pos, Cmds: []*parse.CommandNode{c}}}
}

func (i *instrument) command(function string, at parse.Pos) *parse.CommandNode {
	return &parse.CommandNode{NodeType: parse.NodeCommand, Pos: at, Args: []parse.Node{parse.NewIdentifier(function).SetPos(at)}}
}
