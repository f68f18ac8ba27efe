package main

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/query"
	"github.com/kalypso-io/kalypso/compiler/query/tables"
	"github.com/kalypso-io/kalypso/compiler/supervisor"
	"github.com/kalypso-io/kalypso/internal/lazyregexp"
	"github.com/kalypso-io/kalypso/promotion/gate"
)

// completeFlag completes a flag of a command.
func completeFlag(cmd *cobra.Command, flag string, with cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, with); err != nil {
		panic(err) // there is no such flag, or it is completed already
	}
}

// values completes the values that a flag takes.
func values(all ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(all, cobra.ShellCompDirectiveNoFileComp)
}

// completer completes arguments and values of flags for the shell.
type completer struct{ *platform }

func (g *platform) complete() completer { return completer{g} }

// words are the completions of the words in help texts that stand for arguments and for values of
// flags. They do not include a word that has several meanings. Commands and flags with such a
// word declare their own completion.
func (g completer) words() map[string]cobra.CompletionFunc {
	words := map[string]cobra.CompletionFunc{
		"ENVIRONMENT": g.environmentNames,
		"RING":        g.rings,
		"GATE":        values(gate.MayBeSkippable()...),
		"CLUSTER-TYPE": nameValues(g, query.ClusterTypes,
			func(c query.ClusterType) string { return c.Name }),
		"WORKLOAD":  nameValues(g, query.Workloads, func(w query.Workload) string { return w.Name }),
		"WORKSPACE": nameValues(g, query.Workspaces, func(w query.Workspace) string { return w.Name }),
		"INVENTORY": nameValues(g, query.Inventories, func(i query.Inventory) string { return i.Name }),
		"ENVIRONMENT/NAME": nameValues(g, query.Clusters,
			func(c query.Cluster) string { return c.Environment + "/" + c.Name }),
		"ENVIRONMENT/CLUSTER-TYPE": nameValues(g, query.ClusterTypes,
			func(c query.ClusterType) string { return c.Environment + "/" + c.Name }),
		"TABLE":    values(tables.Names()...),
		"LABELS":   g.labels,
		"REV":      g.revisions,
		"REVISION": g.revisions,
		"COMMIT":   g.revisions,
		"REV|DIR":  g.sides,
		"BRANCH":   g.branches,
		"CONTEXT":  g.contexts,
		"DIR":      g.folders,
		"FILE":     g.files(),
		"KEY":      g.files(), // that signs
		"PLAN":     g.files("json"),
		"FILE|DIR": g.files("cue"),
	}
	words["ENVIRONMENT|ENVIRONMENT/CLUSTER-TYPE/TARGET"] = g.environmentsOrAssignments
	// Text that only the user knows, and numbers.
	for _, free := range []string{"LABEL", "NAMES", "NAMESPACE", "CLASS", "CLUSTER", "TARGET",
		"VERSION", "TOKEN", "ASSIGNMENT", "DIGEST", "REASON", "SELECTOR", "SIZE", "TIME", "ADDRESS",
		"DURATION", "URL", "IMAGE", "WHO", "OVERLAY", "duration", "int", "i/n", "oci://HOST/REPOSITORY"} {
		words[free] = cobra.NoFileCompletions
	}
	return words
}

// all completes each argument and flag without a completion of its own, of a command and of the
// commands below it.
func (g completer) all(cmd *cobra.Command) {
	words := g.words()
	each(cmd, func(cmd *cobra.Command) {
		if cmd.ValidArgsFunction == nil {
			cmd.ValidArgsFunction = arguments(argumentsOf(cmd.Use), words)
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			word, _ := pflag.UnquoteUsage(f)
			if _, completed := cmd.GetFlagCompletionFunc(f.Name); !completed && words[word] != nil {
				completeFlag(cmd, f.Name, inList(f, words[word]))
			}
		})
	})
}

// each calls f with a command and all below it.
func each(cmd *cobra.Command, f func(*cobra.Command)) {
	f(cmd)
	for _, c := range cmd.Commands() {
		each(c, f)
	}
}

// argument matches an argument in the usage of a command, such as [NAME...].
var argument = lazyregexp.New(`^\[?([A-Z][-A-Z|/]*)(\.\.\.)?\]?$`)

// argumentsOf returns the words of a command's arguments. One with dots stands for any number.
func argumentsOf(use string) (words []string) {
	for _, field := range strings.Fields(use)[1:] {
		m := argument.FindStringSubmatch(field)
		if m == nil {
			break // flags, or commands
		}
		words = append(words, m[1]+m[2])
	}
	return words
}

// arguments completes arguments by their words, and offers no argument twice. It returns nil if a
// word is not known.
func arguments(of []string, words map[string]cobra.CompletionFunc) cobra.CompletionFunc {
	for _, word := range of {
		if words[strings.TrimSuffix(word, "...")] == nil {
			return nil
		}
	}
	return func(cmd *cobra.Command, given []string, prefix string) ([]cobra.Completion,
		cobra.ShellCompDirective) {
		n := len(given)
		if last := len(of) - 1; n > last && last >= 0 && strings.HasSuffix(of[last], "...") {
			n = last
		}
		if n >= len(of) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		found, directive := words[strings.TrimSuffix(of[n], "...")](cmd, given, prefix)
		return slices.DeleteFunc(found,
			func(c cobra.Completion) bool { return slices.Contains(given[n:], c) }), directive
	}
}

// inList completes the last of several values of one flag, as a,b has them.
func inList(f *pflag.Flag, with cobra.CompletionFunc) cobra.CompletionFunc {
	if word, _ := pflag.UnquoteUsage(f); f.Value.Type() != "stringSlice" && word != "LABELS" {
		return with
	}
	return func(
		cmd *cobra.Command, given []string, prefix string,
	) ([]cobra.Completion, cobra.ShellCompDirective) {
		comma := strings.LastIndex(prefix, ",") + 1
		found, directive := with(cmd, given, prefix[comma:])
		if comma > 0 {
			for i, c := range found {
				found[i] = prefix[:comma] + c
			}
		}
		return found, directive
	}
}

// completionEnv is the variable with the longest time that a shell waits for names; three seconds
// if it is not set.
const completionEnv = "KALYPSO_COMPLETION_TIMEOUT"

// offer completes with the results of names that begin with the prefix. It offers nothing if
// names takes too long or needs too much memory. It writes only to the caches, and sends no
// requests to servers.
func (g completer) offer(cmd *cobra.Command, prefix string, names func(context.Context,
	compiler.Request) ([]string, error)) ([]cobra.Completion, cobra.ShellCompDirective) {
	most, err := time.ParseDuration(os.Getenv(completionEnv))
	if err != nil {
		most = 3 * time.Second
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), most)
	defer cancel()
	giveUp := func() {
		cancel()
		select {} // the evaluation ends with the process
	}
	bounds, _ := g.bounds.bounds() // zero if a flag is wrong
	g.supervisor = supervisor.New(supervisor.Options{
		Bounds: bounds, Again: func(supervisor.State) { giveUp() },
		Fail: func(supervisor.Trip) { giveUp() }, Ceiling: setMemoryCeiling,
	})
	found := make(chan []string, 1)
	go func() {
		c, _ := cache.Open(cache.Options{}) // without one it takes longer
		defer c.Close()                     //nolint:errcheck // as above
		all, _ := names(ctx, g.request(nil, c))
		found <- slices.DeleteFunc(all,
			func(name string) bool { return !strings.HasPrefix(name, prefix) })
	}()
	select {
	case all := <-found:
		return all, cobra.ShellCompDirectiveNoFileComp
	case <-ctx.Done():
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}
