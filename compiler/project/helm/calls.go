package helm

import (
	"text/template/parse"

	"helm.sh/helm/v3/pkg/chart"
)

// calls are the functions that templates call, and the templates that they
// include, by the name of the template.
type calls map[string]*callees

type callees struct {
	functions map[string]bool
	includes  map[string]bool
}

// called returns the calls in the templates of a chart and of its dependencies. A text that
// does not parse has no entry: Helm has already refused it.
func called(ch *chart.Chart) calls {
	all := calls{}
	for name, text := range templates(ch) {
		for defined, tree := range parseTemplates(name, text) {
			c := &callees{map[string]bool{}, map[string]bool{}}
			visit(tree.Root, c.note)
			all[defined] = c
		}
	}
	return all
}

func (c *callees) note(n parse.Node) {
	switch n := n.(type) {
	case *parse.IdentifierNode:
		c.functions[n.Ident] = true
	case *parse.TemplateNode:
		c.includes[n.Name] = true
	case *parse.CommandNode:
		if len(n.Args) < 2 {
			return
		}
		function, isFunction := n.Args[0].(*parse.IdentifierNode)
		name, isText := n.Args[1].(*parse.StringNode)
		if isFunction && isText && function.Ident == "include" {
			c.includes[name.Text] = true
		}
	}
}

// reachable returns the functions that a template calls, directly or through the templates
// that it includes by name. With "", it returns the functions of all templates.
func (all calls) reachable(template string) map[string]bool {
	functions, seen := map[string]bool{}, map[string]bool{}
	var follow func(name string)
	follow = func(name string) {
		c := all[name]
		if c == nil || seen[name] {
			return
		}
		seen[name] = true
		for f := range c.functions {
			functions[f] = true
		}
		for i := range c.includes {
			follow(i)
		}
	}
	if template != "" {
		follow(template)
		return functions
	}
	for name := range all {
		follow(name)
	}
	return functions
}

// parseTemplates returns the templates that a text defines, including itself. It returns
// nil if the text does not parse.
func parseTemplates(name, text string) map[string]*parse.Tree {
	trees := map[string]*parse.Tree{}
	t := parse.New(name)
	t.Mode = parse.SkipFuncCheck
	if _, err := t.Parse(text, "", "", trees); err != nil {
		return nil
	}
	return trees
}

// visit calls f for each node below n, and for n.
func visit(n parse.Node, f func(parse.Node)) {
	f(n)
	var below []parse.Node
	switch n := n.(type) {
	case *parse.ListNode:
		below = n.Nodes
	case *parse.ActionNode:
		below = append(below, n.Pipe)
	case *parse.IfNode:
		below = branches(&n.BranchNode)
	case *parse.RangeNode:
		below = branches(&n.BranchNode)
	case *parse.WithNode:
		below = branches(&n.BranchNode)
	case *parse.TemplateNode:
		if n.Pipe != nil {
			below = append(below, n.Pipe)
		}
	case *parse.PipeNode:
		for _, c := range n.Cmds {
			below = append(below, c)
		}
	case *parse.CommandNode:
		below = n.Args
	case *parse.ChainNode:
		below = append(below, n.Node)
	}
	for _, b := range below {
		visit(b, f)
	}
}

func branches(n *parse.BranchNode) []parse.Node {
	nodes := []parse.Node{n.Pipe, n.List}
	if n.ElseList != nil {
		nodes = append(nodes, n.ElseList)
	}
	return nodes
}
