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
		Long: `bootstrap prints what clusters need, once, to pull their tree: objects of Flux,
Argo CD or Rancher Fleet, or a playbook of Ansible. A Zarf package is made and
carried by hand.`,
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
		Long: `cluster-type prints what lets a cluster of the type pull its folder of the
environment's tree. The environment's gitops says where that is.

  flux     a source and a Kustomization; apply them to each cluster
  argocd   a project, an app of apps, and the health check that sync waves need;
           apply them to the cluster that Argo CD runs on
  fleet    two GitRepos; apply them to the management cluster
  ansible  a playbook that has each machine pull and run its own, by a timer; run it
           once, with the inventory of the tree

Nothing of it changes when assignments come and go. A Zarf package is pulled by
nobody, and what pulls for gotemplate and cue only their authors know.

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
