package main

import (
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/spf13/cobra"
)

// The script about folders without a platform lists each command, with its output there.
func TestOutsideHasAllCommands(t *testing.T) {
	script, err := txtar.ParseFile("../../testdata/slow/outside-a-platform.txtar")
	if err != nil {
		t.Fatal(err)
	}
	root := newPlatform(streams{}, nil).root()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	listed := map[*cobra.Command]bool{}
	for _, f := range script.Files {
		switch f.Name {
		case "commands", "few", "listings", "outside", "anywhere":
		default:
			continue
		}
		for line := range strings.Lines(string(f.Data)) {
			cmd, _, err := root.Find(strings.Fields(line))
			if err != nil {
				t.Errorf("%s: %v", line, err)
			}
			listed[cmd] = true
		}
	}
	each(root, func(cmd *cobra.Command) {
		if cmd.Runnable() && !listed[cmd] {
			t.Errorf("%s is in no list of outside-a-platform.txtar", cmd.CommandPath())
		}
	})
}
