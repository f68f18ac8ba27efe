package main

import (
	"cmp"
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/internal/terminal"
)

// tokenRoles are the roles of tokens.
var tokenRoles = []string{"cluster", "enroll", "viewer", "operator", "admin"}

func newHubToken(a *hubReader) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make, list and revoke tokens of a hub",
		Long: `Tokens let reporters and people in. Their roles:

  cluster   report about one cluster
  enroll    get tokens of clusters, for what installs them
  viewer    see everything
  operator  report about any cluster as well
  admin     make tokens as well`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newTokenCreate(a), newTokenList(a), newTokenRevoke(a))
	return cmd
}

func newTokenCreate(a *hubReader) *cobra.Command {
	var t api.NewToken
	cmd := &cobra.Command{
		Use:   "create --role ROLE",
		Short: "Make a token, and print it",
		Long: `create makes a token and prints it, this once: the hub keeps no more than a hash. What is
said about it is on stderr.`,
		Example: `  kalypso hub token create --role cluster --cluster eu-1 > eu-1.token
  kalypso hub token create --role viewer --env prod --note dashboards --days 90`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case t.Role == "":
				return usagef("--role says what the token may do: there are %s", listed(tokenRoles, "and"))
			case (t.Role == "cluster") != (t.Cluster != ""):
				return usagef("--cluster NAME goes with --role cluster, and with no other")
			}
			if cmd.Flags().Changed("environment") {
				fmt.Fprintln(a.err, "kalypso: warning: --environment is the former name of --env, and will go")
			}
			hub, err := a.client()
			if err != nil {
				return err
			}
			made, err := hub.NewToken(cmd.Context(), t)
			if err != nil {
				return err
			}
			if made.Warning != "" {
				fmt.Fprintf(a.err, "kalypso: warning: %s\n", terminal.Line(made.Warning))
			}
			if *a.output != "table" {
				return printItem(a, "HubToken", made)
			}
			fmt.Fprintf(a.err, "kalypso: this is token %s, which is shown this once; kalypso hub token "+
				"revoke %s ends it\n", made.ID, made.ID)
			_, err = fmt.Fprintln(a.out, made.Secret)
			return err
		},
	}
	f := cmd.Flags()
	f.Var(&choice{&t.Role, tokenRoles}, "role", "what it may do: "+listed(tokenRoles, "or"))
	completeFlag(cmd, "role", values(tokenRoles...))
	f.StringVar(&t.Cluster, "cluster", "", "the `CLUSTER` that it may report about, of --role cluster")
	f.StringVar(&t.Environment, "env", "", "the one `ENVIRONMENT` that it is for (default: all)")
	f.StringVar(&t.Environment, "environment", "", "the `ENVIRONMENT`, by the former name of --env")
	_ = f.MarkHidden("environment")
	f.StringVar(&t.Note, "note", "", "the `REASON` for it, for those who see it in the list")
	f.IntVar(&t.Days, "days", 0, "after how many days it ends; 0 for never")
	return cmd
}

func newTokenList(a *hubReader) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List tokens, without their secrets",
		Example: `  kalypso hub token list`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			hub, err := a.client()
			if err != nil {
				return err
			}
			found, err := hub.Tokens(cmd.Context())
			if err != nil {
				return err
			}
			if *a.output != "table" {
				return printItem(a, "HubTokens", found)
			}
			var rows [][]any
			for _, t := range found.Tokens {
				rows = append(rows, []any{t.ID, t.Role, cmp.Or(t.Cluster, t.Environment, "-"), when(t.Made),
					cmp.Or(t.MadeBy, "-"), when(t.Used), when(t.Expires), when(t.Revoked), cmp.Or(t.Note, "-")})
			}
			return a.table([]string{"ID", "ROLE", "FOR", "MADE", "BY", "USED", "EXPIRES", "REVOKED", "NOTE"},
				rows)
		},
	}
}

func newTokenRevoke(a *hubReader) *cobra.Command {
	return &cobra.Command{
		Use:     "revoke TOKEN...",
		Short:   "End tokens, by the ids that list shows",
		Example: `  kalypso hub token revoke 4f2a9c1d0e8b7a6f5c`,
		Args:    arity(1, math.MaxInt, "which tokens? kalypso hub token list shows their ids"),
		RunE: func(cmd *cobra.Command, args []string) error {
			hub, err := a.client()
			if err != nil {
				return err
			}
			for _, id := range args {
				if err := hub.RevokeToken(cmd.Context(), id); err != nil {
					return fmt.Errorf("token %s: %w", id, err)
				}
			}
			return nil
		},
	}
}

func newHubCluster(a *hubReader) *cobra.Command {
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
			hub, err := a.client()
			if err != nil {
				return err
			}
			found, err := hub.Cluster(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if *a.output != "table" {
				return printItem(a, "HubCluster", found)
			}
			news := "has never reported"
			if !found.Seen.IsZero() {
				news = "last reported at " + when(found.Seen) + " by " + cmp.Or(found.By, "somebody")
			}
			fmt.Fprintf(a.out, "%s\n\n",
				terminal.Line(fmt.Sprintf("%s: %s; %s", found.Name, found.Counts, news)))
			if found.Problem != "" {
				fmt.Fprintf(a.out, "warning: %s\n\n", terminal.Line(found.Problem))
			}
			return a.printRows(&api.Assignments{Assignments: found.Assignments})
		},
	}
}

func newHubForget(a *hubReader) *cobra.Command {
	return &cobra.Command{
		Use:   "forget CLUSTER...",
		Short: "Forget clusters that the platform does not list and that report no more",
		Long: `forget ends that clusters count which reported once, and which the platform does not list:
one that was taken away, or whose name was mistyped. One that reports again comes back.
Clusters that the platform lists are to be taken out of the platform.`,
		Example: `  kalypso hub forget vm-17`,
		Args:    arity(1, math.MaxInt, "name a cluster"),
		RunE: func(cmd *cobra.Command, args []string) error {
			hub, err := a.client()
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
