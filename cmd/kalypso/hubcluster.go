package main

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/internal/terminal"
)

func newHubCluster(a *asking) *cobra.Command {
	return &cobra.Command{
		Use:     "cluster CLUSTER",
		Short:   "Show what a cluster should run, and what it runs",
		Long:    `cluster lists all assignments of a cluster in all environments, and when it last reported.`,
		Example: `  kalypso hub cluster eu-1`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return usagef("name one cluster")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			hub, err := a.hub.client(a.global)
			if err != nil {
				return err
			}
			found, err := hub.Cluster(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if *a.output != "table" {
				return a.printDocument(*a.output, document[*api.Cluster]{apiVersion, "HubCluster", found})
			}
			news := "has never reported"
			if !found.Seen.IsZero() {
				news = "last reported at " + when(found.Seen) + " by " + cmp.Or(found.By, "somebody")
			}
			fmt.Fprintf(a.out, "%s\n\n", terminal.Line(fmt.Sprintf("%s: %s; %s", found.Name, found.Counts, news)))
			if found.Problem != "" {
				fmt.Fprintf(a.out, "warning: %s\n\n", terminal.Line(found.Problem))
			}
			return a.printRows(&api.Assignments{Assignments: found.Assignments})
		},
	}
}

func newHubForget(a *asking) *cobra.Command {
	return &cobra.Command{
		Use:   "forget CLUSTER...",
		Short: "Forget clusters that the platform does not list and that report no more",
		Long: `forget ends that clusters count which reported once, and which the platform does not list:
one that was taken away, or whose name was mistyped. One that reports again comes back.
Clusters that the platform lists are to be taken out of the platform.`,
		Example: `  kalypso hub forget vm-17`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("name a cluster")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			hub, err := a.hub.client(a.global)
			if err != nil {
				return err
			}
			for _, name := range args {
				if err := hub.Forget(cmd.Context(), name); err != nil {
					return fmt.Errorf("cluster %s: %w", terminal.Line(name), err)
				}
			}
			return nil
		},
	}
}
