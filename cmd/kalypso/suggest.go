package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/internal/spelling"
)

// unknownCommand returns the error of a command line with a hint, if a command below parent does not exist; otherwise
// the error itself. Cobra has no type for the error.
func unknownCommand(parent *cobra.Command, err error) error {
	word := ""
	if err == nil {
		return nil
	} else if _, scan := fmt.Sscanf(err.Error(), "unknown command %q for", &word); scan != nil {
		return err
	}
	return noSuchCommand(parent, word)
}

// noSuchCommand is the error of a command that parent does not have, with the one that was probably meant.
func noSuchCommand(parent *cobra.Command, word string) error {
	if !parent.HasAvailableSubCommands() {
		return usagef("%s takes no arguments, and %q is one", parent.CommandPath(), word)
	}
	text := fmt.Sprintf("unknown command %q for %q", word, parent.CommandPath())
	if meant := commandsMeant(parent, word); len(meant) > 0 {
		return usagef("%s; did you mean %s?", text, strings.Join(meant, " or "))
	}
	var names []string
	if !parent.HasParent() {
		return usagef("%s", text)
	}
	for _, c := range parent.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return usagef("%s; there are: %s", text, strings.Join(names, ", "))
}

// commandsMeant returns the full names of the commands that were probably meant by a word: those with that name
// elsewhere, else a similar one below parent, else similar ones anywhere.
func commandsMeant(parent *cobra.Command, word string) []string {
	all := commandsBelow(parent.Root(), true)
	if same := all[word]; len(same) > 0 {
		return same
	}
	for _, known := range []map[string][]string{commandsBelow(parent, false), all} {
		if near := spelling.Nearest(word, slices.Sorted(maps.Keys(known))); near != "" {
			return known[near]
		}
	}
	return nil
}

// commandsBelow returns the full names of the commands below another one by their names and aliases: only of its
// own, or of those at any depth.
func commandsBelow(parent *cobra.Command, deep bool) map[string][]string {
	out := map[string][]string{}
	for _, c := range parent.Commands() {
		if !c.IsAvailableCommand() {
			continue
		}
		for _, name := range append([]string{c.Name()}, c.Aliases...) {
			out[name] = append(out[name], c.CommandPath())
		}
		if deep {
			for name, paths := range commandsBelow(c, true) {
				out[name] = append(out[name], paths...)
			}
		}
	}
	return out
}
