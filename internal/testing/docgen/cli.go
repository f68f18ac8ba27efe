package docgen

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// cliPage is the command tree on one page. (cobra/doc makes a page for each
// command, and needs a Markdown parser for its manual pages.)
func cliPage(root *cobra.Command) []byte {
	root.InitDefaultHelpFlag()
	root.InitDefaultCompletionCmd()
	p := newPage("The command line", "the commands' own help")
	p.block("<!-- parse only -->")
	p.block("%s", prose(root.Long, "text"))
	p.block("Results go to stdout, everything else to stderr. Colour is used on a terminal only, and not where\n" +
		"`NO_COLOR` is set. `kalypso COMMAND --help` prints the part of this page about a command.")
	p.block("## Flags of all commands")
	p.flags(root.PersistentFlags())
	p.commands(root)
	return p.Bytes()
}

func (p *page) commands(parent *cobra.Command) {
	for _, c := range parent.Commands() {
		if c.Hidden || c.Name() == "help" {
			continue
		}
		c.InitDefaultHelpFlag()
		p.command(c)
		// The shells' pages are cobra's own, and long.
		if c.Name() != "completion" {
			p.commands(c)
		}
	}
}

func (p *page) command(c *cobra.Command) {
	level := strings.Repeat("#", strings.Count(c.CommandPath(), " ")+1)
	p.block("%s %s", level, c.CommandPath())
	text := c.Long
	if text == "" {
		text = c.Short + "."
	}
	p.block("%s", prose(text, "text"))
	if c.Runnable() && !c.HasSubCommands() {
		p.block("```text\n%s\n```", c.UseLine())
	}
	if len(c.Aliases) > 0 {
		p.block("Also `%s`.", strings.Join(c.Aliases, "`, `"))
	}
	if c.Example != "" {
		p.block("```sh\n%s\n```", dedent(c.Example))
	}
	if c.HasSubCommands() {
		p.WriteString("\n")
		for _, sub := range c.Commands() {
			fmt.Fprintf(p, "- `%s`: %s\n", sub.CommandPath(), escape(lower(sub.Short)))
		}
	}
	p.flags(c.LocalNonPersistentFlags())
}

// flags adds a table, in the order that help has. The flag for help goes
// without saying.
func (p *page) flags(flags *pflag.FlagSet) {
	var rows []string
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if value != "" {
			name += " " + value
		}
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		def := ""
		if value != "" && f.DefValue != "" && f.DefValue != "0s" {
			def = code(f.DefValue)
		}
		rows = append(rows, fmt.Sprintf("| %s | %s | %s |", code(name), cell(escape(usage)), def))
	})
	if len(rows) > 0 {
		p.block("| flag | meaning | default |\n|---|---|---|\n%s", strings.Join(rows, "\n"))
	}
}

func lower(s string) string { return strings.ToLower(s[:1]) + s[1:] }
