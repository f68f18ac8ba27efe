// Command kalypso-hub records the desired state of clusters, from git, and their observed state.
// It shows what runs on each cluster.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/compiler"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == compiler.WorkerArgument {
		if err := compiler.ServeWorker(os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := root().ExecuteContext(ctx); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "kalypso-hub:", err)
		stop()
		os.Exit(1)
	}
}

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kalypso-hub",
		Short: "Keep what is wanted of clusters and what was observed of them",
		Long: `kalypso-hub serves what is wanted of clusters, which it reads from the records in GitOps
branches, and what was observed of them, which reconcilers and kalypso observe report. It
keeps both in a SQLite file or in PostgreSQL.`,
		SilenceUsage: true, SilenceErrors: true,
	}
	cmd.AddCommand(newServe(), newWanted(), newCompiled(), newToken(), newBackup(), newOpenAPI())
	return cmd
}
