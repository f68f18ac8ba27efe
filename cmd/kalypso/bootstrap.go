package main

import (
	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/diag"
)

func newBootstrap(g *global) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bootstrap",
		Short: "Print what a cluster needs to pull its tree",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("there is nothing called %s to bootstrap; see kalypso bootstrap --help", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBootstrapClusterType(g))
	return cmd
}

func newBootstrapClusterType(g *global) *cobra.Command {
	var cluster string
	cmd := &cobra.Command{
		Use:   "cluster-type NAME ENVIRONMENT",
		Short: "Print what a cluster of a type needs to pull its tree",
		Long: `cluster-type prints the Kubernetes objects that let a cluster of the type pull
its folder of the environment's repository: for Flux a source and a
Kustomization, for Argo CD a project, an app of apps and the health check that
sync waves need. Apply them once to each cluster, or to the one that Argo CD
runs on. The environment's gitops says which repository that is.

Where clusters have values of their own, --cluster says which one it is for.`,
		Example: "  kalypso bootstrap cluster-type large dev | kubectl apply --server-side -f -",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usagef("bootstrap cluster-type needs NAME and ENVIRONMENT")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.withCache(func(c *cache.Cache) error {
				r := g.request(args[1:], c)
				stop := g.showProgress(cmd.Context(), &r)
				objects, ds, err := compiler.Bootstrap(cmd.Context(), r, args[0], cluster)
				stop()
				if err != nil {
					return err
				}
				if _, err := g.out.Write(objects); err != nil {
					return err
				}
				if err := g.tell(g.err, ds); err != nil {
					return err
				}
				if diag.Errors(ds) {
					return errPlatform
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&cluster, "cluster", "", "the `NAME` of the one cluster of the type that it is for")
	return cmd
}
