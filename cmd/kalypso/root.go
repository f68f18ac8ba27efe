package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"

	"github.com/kalypso-io/kalypso"
	"github.com/kalypso-io/kalypso/cmd/kalypso/internal/progress"
	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/supervisor"
	"github.com/kalypso-io/kalypso/compiler/worker"
	"github.com/kalypso-io/kalypso/internal/cuemodule"
	"github.com/kalypso-io/kalypso/internal/spelling"
)

// streams are the input and outputs of a command: out is for the result, err for messages.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// console is the output of a command, with the flags of all commands about it.
type console struct {
	streams
	dir         string // of -C: other paths are relative to it
	diagnostics string // the name of one of diagnosticFormats
	progress    string
	display     atomic.Pointer[progress.Display] // that shows progress; nil if none is shown
}

// platform compiles the platform of the folder, with the flags of all commands about compilation.
// Each group of commands has a type of its own on top of it, which its methods call g: author,
// builder, inspector and promoter, and completer for the shell. The commands of the group Observe
// compile nothing, and have only the console.
type platform struct {
	*console
	cacheFlags cacheFlags
	bounds     boundFlags
	workers    *worker.Pool // it starts its processes for the first job
	supervisor *supervisor.Supervisor
	overlay    source.Overlay
}

func newPlatform(s streams, workers *worker.Pool) *platform {
	return &platform{console: &console{streams: s}, workers: workers}
}

// author has the commands of people who write a platform: the groups Start and Author.
type author struct{ *platform }

// builder has the commands of the group Build.
type builder struct{ *platform }

// inspector has the commands of the group Inspect.
type inspector struct{ *platform }

// promoter has the commands of the group Promote.
type promoter struct{ *platform }

// request is one for the platform that the command works in.
func (g *platform) request(environments []string, c *cache.Cache) compiler.Request {
	return compiler.Request{Dir: g.dir, Overlay: g.overlay, Environments: environments, Cache: c,
		Workers: g.workers, Supervisor: g.supervisor}
}

// execute runs the command line and returns its exit code.
func execute(ctx context.Context, args []string, s streams) int {
	workers := compiler.NewWorkers()
	defer workers.Close()
	g := newPlatform(s, workers)
	root := g.root()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	err = unknownCommand(cmd, err)
	if reasons := reasonsOf(err); len(reasons) > 0 {
		err = errors.Join(err, g.report(s.err, reasons))
	}
	var usage usageError
	switch {
	case err == nil, errors.Is(err, errPlatform), errors.Is(err, errDifference),
		errors.As(err, new(printedError)), err == errBlocked, err == errPending, err == errHeld:
	case errors.Is(ctx.Err(), context.Canceled), errors.Is(err, errInterrupted):
		fmt.Fprintln(s.err, "kalypso: interrupted")
		return 130
	case errors.As(err, &usage):
		fmt.Fprintf(s.err, "kalypso: %v\nrun '%s --help' for usage\n", err, cmd.CommandPath())
	default:
		fmt.Fprintf(s.err, "kalypso: %v\n", err)
		if hint := hintOf(err); hint != "" {
			fmt.Fprintf(s.err, "hint: %s\n", hint)
		}
	}
	return int(exitOf(err))
}

// root returns the tree of all commands.
func (g *platform) root() *cobra.Command {
	s := g.streams
	g.out = resultWriter{s.out, g}
	root := &cobra.Command{
		Use:                "kalypso",
		DisableSuggestions: true, // unknownCommand has better ones
		Short:              "Compile what runs where, with which configuration, into GitOps trees",
		Long: `kalypso compiles a platform: environments, cluster types, workloads, scheduling
policies and configuration, written in CUE, become the trees that Flux, Argo CD,
Rancher Fleet, Zarf, Ansible and others take. It needs no cluster and no database,
and builds need no network.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if strings.HasPrefix(cmd.Name(), cobra.ShellCompRequestCmd) {
				return nil // a shell completes names: the command only prints them
			}
			if repository := cmd.Flag("repo"); repository != nil && repository.Value.String() == "" {
				if _, err := promotedFolder(g.dir); err != nil {
					return err // before any question that would be useless
				}
			}
			return g.prepare(cmd.Context())
		},
	}
	if strings.HasPrefix(filepath.Base(os.Args[0]), "git-") { // git runs it as a command of its own
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "git kalypso"}
	}
	// The flags of all commands are listed once, by the root.
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(),
		"Global Flags:\n{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}",
		`Use "{{.Root.CommandPath}} --help" for the flags of all commands.`, 1))
	root.SetIn(s.in)
	root.SetOut(g.out)
	root.SetErr(s.err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.PersistentFlags().StringVarP(&g.dir, "chdir", "C", ".", "work in `DIR`, the platform's "+
		"folder or one in it; other paths are relative to it")
	g.diagnosticsFlag(root, root.PersistentFlags(), "diagnostics", "", "how to tell what is wrong "+
		"(text folds what has one cause or is alike)")
	root.PersistentFlags().StringVar(&g.progress, "progress", progressAuto,
		"how to tell on stderr how far a longer build is: auto, which is bars on a terminal and lines "+
			"elsewhere, plain or none")
	g.cacheFlags.flags(root.PersistentFlags())
	g.bounds.flags(root.PersistentFlags())
	completeFlag(root, "progress", values(progressAuto, progressPlain, progressNone))
	completeFlag(root, "cache", values(string(cache.On), string(cache.Off), string(cache.Verify)))
	const start = "Start:"
	a, b, i, p := author{g}, builder{g}, inspector{g}, promoter{g}
	addGroup(root, start, newInit(a), newDoctor(a), newMan(g.console), newVersion(g.console))
	addGroup(root, "Author:", newFmt(a), newVet(a), newTest(a), newLSP(a), newRequirements(a),
		newLock(a), newVendor(a), newMod(a), newInventory(a), newProject(a))
	addGroup(root, "Build:", newBuild(b), newWatch(b), newPublish(b), newBootstrap(b), newCache(b))
	addGroup(root, "Inspect:", newGet(i), newDescribe(i), newExplain(i), newGraph(i), newCompare(i),
		newQuery(i), newDiff(i), newView(i), newVerify(i), newAudit(i))
	addGroup(root, "Promote:", newPromote(p), newRollback(p), newHold(p), newRelease(p), newReject(p),
		newFreeze(p), newThaw(p))
	addGroup(root, "Observe:", newObserve(g.console), newHub(g.console))
	root.AddCommand(newExitCodes())
	g.complete().all(root)
	root.SetHelpCommandGroupID(start)
	root.SetCompletionCommandGroupID(start)
	return root
}

// arity allows a number of arguments. For any other number, the message may have a verb.
func arity(least, most int, message string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch n := len(args); {
		case n >= least && n <= most:
			return nil
		case strings.Contains(message, "%d"):
			return usagef(message, n)
		}
		return usagef("%s", message)
	}
}

// addGroup adds the commands of a group of the root's help.
func addGroup(root *cobra.Command, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title})
	for _, c := range commands {
		c.GroupID = title
	}
	root.AddCommand(commands...)
}

// prepare puts the CUE module into CUE's cache, so that editors and the cue command find it.
// Commands work without it, so prepare does not fail if the cache cannot be written.
func (g *platform) prepare(ctx context.Context) error {
	switch g.progress {
	case progressAuto, progressPlain, progressNone:
	default:
		return usagef("--progress %s: there are auto, plain and none", g.progress)
	}
	if err := g.supervise(); err != nil {
		return err
	}
	var different *cuemodule.DifferentError
	if err := cuemodule.EnsureCache(ctx); errors.As(err, &different) {
		fmt.Fprintf(g.err, "kalypso: warning: %v\n", err)
	}
	return nil
}

func newExitCodes() *cobra.Command {
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "What the exit codes mean",
		Long: `Exit codes are a stable interface:

  0    done, also when there was nothing to do
  1    a difference was found where one was asked for
  2    usage, I/O or internal error
  3    the platform has errors
  4    a server wants other credentials
  5    a promotion is blocked
  6    a promotion is pending: a gate may pass by itself, or somebody has to approve
  7    a promotion is held, or its environment is frozen
  8    a forge, API server or hub does not answer, or has had enough requests
  9    another process moved what is written to, again and again, or what a saved plan rests on
  130  interrupted
  143  terminated`,
	}
}

// unknownCommand returns the error of a command line with a hint, if a command below parent does
// not exist; otherwise the error itself. Cobra has no type for the error.
func unknownCommand(parent *cobra.Command, err error) error {
	word := ""
	if err == nil {
		return nil
	} else if _, scan := fmt.Sscanf(err.Error(), "unknown command %q for", &word); scan != nil {
		return err
	}
	return noSuchCommand(parent, word)
}

// noSuchCommand returns the error for a command that parent does not have, with the command that
// was probably meant.
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

// commandsMeant returns the full names of the commands that a word was probably meant to be.
// These are the commands with that name elsewhere, else a similar one below parent, else similar
// ones anywhere.
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

// commandsBelow returns the full names of the commands below another one by their names and
// aliases. It returns only the direct subcommands, or with deep the commands at any depth.
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

func newMan(g *console) *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the man pages into a folder",
		Long: `man writes a man page for each command into DIR, which it makes if need be. For man
to find them, DIR is the folder man1 of one in MANPATH:

  kalypso man ~/.local/share/man/man1

The pages have a date, which SOURCE_DATE_EPOCH sets.`,
		Args: arity(1, 1, "man takes one folder, and not %d"),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := g.path(args[0])
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true // it would be the day on which this runs
			return doc.GenManTree(root, &doc.GenManHeader{Section: "1",
				Source: "kalypso " + compiler.Version().Version, Manual: "Kalypso"}, dir)
		},
	}
}

func newVersion(g *console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of kalypso, its CUE and its schema",
		Args:  cobra.NoArgs,
	}
	output := outputFlag(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		type version struct {
			Kalypso      string `json:"kalypso"`
			CUE          string `json:"cue"`
			Module       string `json:"module"`
			SchemaDigest string `json:"schemaDigest"`
			Go           string `json:"go"`
		}
		c := compiler.Version()
		v := version{c.Version, c.CUE, kalypso.ModulePath + " " + kalypso.ModuleVersion, c.Schema,
			runtime.Version()}
		return g.print(*output, document[version]{apiVersion, "Version", v}, func(w *tabwriter.Writer) {
			kind := ""
			if !isRelease(v.Kalypso) {
				kind = " (a development build)"
			}
			fmt.Fprintf(w, "kalypso\t%s%s\nCUE\t%s\nschema\t%s\nGo\t%s\n", v.Kalypso, kind, v.CUE, v.Module,
				v.Go)
		})
	}
	return cmd
}

// isRelease reports whether a version is a tag's, and not the version of a commit or of changed
// files.
func isRelease(version string) bool {
	return semver.IsValid(version) && !module.IsPseudoVersion(version) &&
		semver.Build(version) != "+dirty"
}
