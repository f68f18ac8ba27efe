package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	cuecmd "cuelang.org/go/cmd/cue/cmd"
	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/worker"
	"github.com/kalypso-io/kalypso/edit/lsp"
)

// cueServerArgument makes the program CUE's language server, for `kalypso lsp`.
const cueServerArgument = "cue-language-server"

// serveCUE runs CUE's language server in such a process. It returns the exit code.
func serveCUE() int {
	c, err := cuecmd.New([]string{"lsp"})
	if err == nil {
		err = c.Run(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return int(exitFailure)
	}
	return int(exitDone)
}

// quiet is the time without typing after which the platform is compiled.
const quiet = 300 * time.Millisecond

func newLSP(g author) *cobra.Command {
	var stdio bool
	var delay time.Duration
	cmd := &cobra.Command{
		Use:   "lsp",
		Short: "Serve an editor: completion, what is wrong, and more",
		Long: `lsp is a server for editors that speak the Language Server Protocol, on standard
input and output. An editor starts it: docs/editors.md says how, for VS Code,
Neovim, Helix and others. It contains CUE's own server.

What is typed is compiled, saved or not, and nothing is written but kalypso's cache
and CUE's. It reaches no network.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := lsp.Serve(cmd.Context(), io.NopCloser(g.in), nopCloser{g.out}, lsp.Options{
				CUE: cueServer, Compile: compileProcess, Delay: delay, Version: compiler.Version().Version,
			})
			if errors.Is(err, context.Canceled) {
				return nil // the caller ended it
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&stdio, "stdio", true, "")
	cmd.Flags().DurationVar(&delay, "delay", quiet,
		"how long nothing must have been typed before it is compiled")
	_ = cmd.Flags().MarkHidden("stdio") // some editors add it, and there is nothing else
	cmd.AddCommand(newLSPCompile(g))
	return cmd
}

// nopCloser is a stream that need not be closed: the process ends.
type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// cueServer returns the command of CUE's language server, which sends no requests to registries.
func cueServer() (*exec.Cmd, error) {
	cmd, err := worker.Self(cueServerArgument)()
	if err != nil {
		return nil, err
	}
	cmd.Env = append(os.Environ(), "CUE_REGISTRY=none")
	return cmd, nil
}

// compileProcess returns the command that compiles a platform for the server.
func compileProcess(root, overlay string) (*exec.Cmd, error) {
	return worker.Self("lsp", "compile", overlay, "--chdir", root, "--progress", progressNone)()
}

// newLSPCompile returns the hidden command that such a process runs.
func newLSPCompile(g author) *cobra.Command {
	return &cobra.Command{
		Use:    "compile OVERLAY",
		Short:  "Compile for kalypso lsp",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := os.ReadFile(args[0])
			if err != nil {
				return err
			}
			if err := json.Unmarshal(text, &g.overlay); err != nil {
				return err
			}
			return g.compile(cmd.Context(), nil, func(b *compiler.Build) error {
				return lsp.Answer(cmd.Context(), g.in, g.out, b, g.overlay)
			})
		},
	}
}
