package main

import (
	"context"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kalypso-io/kalypso/compiler"
)

// Each argument of a command and each flag with a value has a completion: names, files of a kind,
// or nothing.
func TestEverythingIsCompleted(t *testing.T) {
	each(newPlatform(streams{}, nil).root(), func(cmd *cobra.Command) {
		if cmd.ValidArgsFunction == nil {
			t.Errorf("%s offers files for its arguments %q: none of its words is in words", cmd.CommandPath(), argumentsOf(cmd.Use))
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if _, completed := cmd.GetFlagCompletionFunc(f.Name); !completed && f.Value.Type() != "bool" {
				word, _ := pflag.UnquoteUsage(f)
				t.Errorf("%s offers files for --%s: %q is not in words", cmd.CommandPath(), f.Name, word)
			}
		})
	})
}

// A shell does not wait for ever.
func TestCompletionEnds(t *testing.T) {
	t.Setenv("KALYPSO_CACHE_DIR", t.TempDir())
	t.Setenv(completionEnv, "1ns")
	g := newPlatform(streams{}, nil)
	cmd := g.root()
	cmd.SetContext(t.Context())
	asked := make(chan struct{})
	names := func(context.Context, compiler.Request) ([]string, error) {
		close(asked)
		select {} // the cache gets no entries from now on
	}
	if found, directive := g.complete().offer(cmd, "", names); found != nil || directive != cobra.ShellCompDirectiveNoFileComp {
		t.Errorf("%q, %v", found, directive)
	}
	<-asked
}
