package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/diag"
)

func newBootstrap(g *global) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bootstrap ENVIRONMENT/CLUSTER-TYPE",
		Short: "Print what a cluster needs to pull its tree",
		Long: `bootstrap prints what lets a cluster of the type pull its folder of the
environment's tree. The environment's gitops says where that is.

  flux     a source and a Kustomization; apply them to each cluster
  argocd   a project, an app of apps, and the health check that sync waves need;
           apply them to the cluster that Argo CD runs on
  fleet    two GitRepos; apply them to the management cluster
  ansible  a playbook that has each machine pull and run its own, by a timer; run it
           once, with the inventory of the tree

Nothing of it changes when assignments come and go. A Zarf package is pulled by
nobody, and what pulls for gotemplate and cue only their authors know.

Where clusters have values or entries of their own, kalypso bootstrap cluster
ENVIRONMENT/NAME prints what one of them needs.

--policies prints what workspaces bound as ValidatingAdmissionPolicies too. They go to
each cluster of the type, wherever the rest goes: kubectl apply -l workspace takes them
alone.

kalypso bootstrap cluster-type CLUSTER-TYPE ENVIRONMENT prints the same.`,
		Example: "  kalypso bootstrap dev/large | kubectl apply --server-side -f -",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("bootstrap needs ENVIRONMENT/CLUSTER-TYPE")
			}
			return nil
		},
	}
	policies := policiesFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		environment, clusterType, ok := strings.Cut(args[0], "/")
		if !ok || environment == "" || clusterType == "" || strings.Contains(clusterType, "/") {
			return usagef("%s is not ENVIRONMENT/CLUSTER-TYPE", args[0])
		}
		return g.bootstrap(cmd, environment, clusterType, "", *policies)
	}
	cmd.AddCommand(newBootstrapClusterType(g), newBootstrapCluster(g))
	return cmd
}

// policiesFlag adds --policies, and returns where its value will be.
func policiesFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("policies", false, "print the bounds of workspaces too, as policies for each cluster of the type")
}

func (g *global) bootstrap(cmd *cobra.Command, environment, clusterType, cluster string, policies bool) error {
	return g.withCache(func(c *cache.Cache) error {
		r := g.request([]string{environment}, c)
		stop := g.showProgress(cmd.Context(), &r)
		objects, ds, err := compiler.Bootstrap(cmd.Context(), r, clusterType, cluster, policies)
		stop()
		if err != nil {
			return err
		}
		if _, err := g.out.Write(objects); err != nil {
			return err
		}
		if err := g.report(g.err, ds); err != nil {
			return err
		}
		if diag.Errors(ds) {
			return errPlatform
		}
		return nil
	})
}

func newBootstrapClusterType(g *global) *cobra.Command {
	var policies *bool
	cmd := &cobra.Command{
		Use:   "cluster-type CLUSTER-TYPE ENVIRONMENT",
		Short: "Print what a cluster of a type needs to pull its tree",
		Long: `cluster-type prints what lets a cluster of the type pull its folder of the
environment's tree. The environment's gitops says where that is. It is
what kalypso bootstrap ENVIRONMENT/CLUSTER-TYPE prints.`,
		Example: "  kalypso bootstrap cluster-type large dev | kubectl apply --server-side -f -",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usagef("bootstrap cluster-type needs CLUSTER-TYPE and ENVIRONMENT")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.bootstrap(cmd, args[1], args[0], "", *policies)
		},
	}
	policies = policiesFlag(cmd)
	return cmd
}

func newBootstrapCluster(g *global) *cobra.Command {
	var policies *bool
	cmd := &cobra.Command{
		Use:   "cluster ENVIRONMENT/NAME",
		Short: "Print what one cluster needs to pull its tree",
		Long: `cluster prints what lets one cluster pull its folder of the environment's tree, with the
values that it alone has. Where its cluster type has entries for its clusters, it pulls
its entry, which names the folder of its class: what it runs changes by commits alone.`,
		Example: "  kalypso bootstrap cluster prod/store-17 | kubectl apply --server-side -f -",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("bootstrap cluster needs ENVIRONMENT/NAME")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			environment, name, ok := cutCluster(args[0])
			if !ok {
				return usagef("%s is not ENVIRONMENT/NAME", args[0])
			}
			return g.bootstrap(cmd, environment, "", name, *policies)
		},
	}
	policies = policiesFlag(cmd)
	return cmd
}
