package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/cmd/kalypso/internal/progress"
	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/supervisor"
	"github.com/kalypso-io/kalypso/compiler/worker"
	"github.com/kalypso-io/kalypso/internal/cuemodule"
)

// streams are where a command reads and writes: out is the result, err is talk.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// global are the options of all commands that read a platform.
type global struct {
	streams
	dir         string
	diagnostics string
	progress    string
	display     atomic.Pointer[progress.Display] // what shows progress; nil for nothing
	caching     caching
	costs       costs
	workers     *worker.Pool // its processes are started when there is a job for them
	supervisor  *supervisor.Supervisor
	overlay     source.Overlay
}

// request is one for the platform that the command works in.
func (g *global) request(environments []string, c *cache.Cache) compiler.Request {
	return compiler.Request{Dir: g.dir, Overlay: g.overlay, Environments: environments, Cache: c,
		Workers: g.workers, Supervisor: g.supervisor}
}

// execute runs the command line and returns its exit code.
func execute(ctx context.Context, args []string, s streams) int {
	workers := worker.NewPool(runtime.GOMAXPROCS(0), worker.Self(workerArgument))
	defer workers.Close()
	g := &global{streams: s, workers: workers}
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
		errors.As(err, new(printedError)), isTold(err):
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
func (g *global) root() *cobra.Command {
	s := g.streams
	g.out = printing{s.out, g}
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
				return nil // a shell asks for names: nothing is printed, and nothing written
			}
			if repository := cmd.Flag("repo"); repository != nil && repository.Value.String() == "" {
				if _, err := g.promotedFolder(); err != nil {
					return err // before anything is asked that would not help
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
	g.caching.flags(root.PersistentFlags())
	g.costs.flags(root.PersistentFlags())
	completeFlag(root, "progress", values(progressAuto, progressPlain, progressNone))
	completeFlag(root, "cache", values(string(cache.On), string(cache.Off), string(cache.Verify)))
	const start = "Start:"
	addGroup(root, start, newInit(g), newDoctor(g), newMan(g), newVersion(g))
	addGroup(root, "Author:", newFmt(g), newVet(g), newTest(g), newLSP(g), newRequirements(g),
		newLock(g), newVendor(g), newMod(g), newInventory(g), newProject(g))
	addGroup(root, "Build:", newBuild(g), newWatch(g), newPublish(g), newBootstrap(g), newCache(g))
	addGroup(root, "Inspect:", newGet(g), newDescribe(g), newExplain(g), newGraph(g), newCompare(g),
		newQuery(g), newDiff(g), newView(g), newVerify(g), newAudit(g))
	addGroup(root, "Promote:", newPromote(g), newRollback(g), newHold(g), newRelease(g), newReject(g),
		newFreeze(g), newThaw(g))
	addGroup(root, "Observe:", newObserve(g), newHub(g))
	root.AddCommand(newExitCodes())
	g.completeAll(root)
	root.SetHelpCommandGroupID(start)
	root.SetCompletionCommandGroupID(start)
	return root
}

// addGroup adds the commands of a group of the root's help.
func addGroup(root *cobra.Command, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title})
	for _, c := range commands {
		c.GroupID = title
	}
	root.AddCommand(commands...)
}

// prepare puts the CUE module into CUE's cache, so that editors and the cue
// command find it. Commands work without it: a cache that cannot be written is
// no failure.
func (g *global) prepare(ctx context.Context) error {
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
