package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"mvdan.cc/sh/v3/syntax"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/starter"
)

// command is a line that init prints for the user to run.
type command struct{ line, comment string }

// printNext prints the commands that build, commit and promote a new platform or application. Without values
// in capitals, they work as they are, one after the other, in a POSIX shell.
func (g *global) printNext(dir, called string, r starter.Repository, app bool) error {
	var first, promote []command
	if called != "." {
		folder, err := quoteWord(called)
		if err != nil {
			return err
		}
		first = append(first, command{line: "cd " + folder})
	}
	if app {
		first = append(first, command{"kalypso project --to out", "render the targets, and look at out/"})
	} else {
		first = append(first,
			command{"kalypso build --to out", "compile the environments, and look at out/"},
			command{"kalypso get assignments", "what runs where"})
	}
	commit, outside, err := commitCommands(dir, r.Name, app)
	if err != nil {
		return err
	}
	if r.GitOps == "" {
		bare := outside + "/" + r.Name + "-gitops.git"
		promote = append(promote,
			command{line: "git init --quiet --bare " + bare},
			command{line: `git config url."file://$PWD/` + bare + `".insteadOf ` + r.PlaceholderGitOps()})
	}
	promote = append(promote,
		command{"kalypso promote --all" + r.PromoteFlags(), "to " + strings.Join(r.Environments, ", ")})
	fmt.Fprintln(g.err, "\nNext:")
	if err := g.printCommands(slices.Concat(first, commit)); err != nil {
		return err
	}
	if r.GitOps == "" {
		fmt.Fprintf(g.err, "\nTo try promotion on this machine, let a repository beside this one stand "+
			"for %s:\n", r.PlaceholderGitOps())
	} else {
		fmt.Fprintf(g.err, "\nTo promote, create %s, and run:\n", r.GitOps)
	}
	return g.printCommands(promote)
}

// commitCommands returns the commands that commit a new folder, where promote finds the commit, and the path from
// there to the folder around the repository.
func commitCommands(dir, name string, app bool) (commit []command, outside string, err error) {
	kind := "platform"
	if app {
		kind = "application"
	}
	commit = []command{
		{line: "git add --all ."},
		{line: fmt.Sprintf("git commit --quiet --message %q", "Begin the "+kind+" "+name)},
	}
	repo, err := git.Discover(dir)
	if errors.Is(err, git.ErrNoRepository) {
		return slices.Insert(commit, 0, command{line: "git init --quiet --initial-branch main"}), "..", nil
	}
	if err != nil {
		return nil, "", err
	}
	defer repo.Close()
	if repo.RemoteURL("origin") != "" {
		commit = append(commit, command{line: "git push --set-upstream origin HEAD"})
	}
	if dir, err = filepath.Abs(dir); err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err == nil {
		outside, err = filepath.Rel(dir, filepath.Dir(repo.WorkTree()))
	}
	return commit, filepath.ToSlash(outside), err
}

// printCommands prints commands on stderr, with their comments below each other.
func (g *global) printCommands(commands []command) error {
	w := tabwriter.NewWriter(g.err, 0, 0, 3, ' ', 0)
	for _, c := range commands {
		if c.comment == "" {
			fmt.Fprintf(w, "  %s\n", c.line)
			continue
		}
		fmt.Fprintf(w, "  %s\t# %s\n", c.line, c.comment)
	}
	return w.Flush()
}

// quoteWord returns a text as one word of a shell.
func quoteWord(text string) (string, error) {
	word, err := syntax.Quote(text, syntax.LangPOSIX)
	if err != nil {
		return "", fmt.Errorf("no shell can take the name of the folder %q: %w", text, err)
	}
	return word, nil
}
