package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/backends/all"
	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/hub/agent"
)

// bootstrapLines describes the output of bootstrap for each backend whose clusters kalypso can
// set up, as lines of the command's help.
func bootstrapLines() string {
	var out strings.Builder
	for _, b := range all.List() {
		name := b.Name()
		for line := range strings.Lines(b.Traits().Bootstraps) {
			fmt.Fprintf(&out, "  %-9s%s\n", name, strings.TrimSuffix(line, "\n"))
			name = ""
		}
	}
	return out.String()
}

func newBootstrap(g builder) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bootstrap ENVIRONMENT/CLUSTER-TYPE",
		Short: "Print what a cluster needs to pull its tree",
		Long: `bootstrap prints what lets a cluster of the type pull its folder of the
environment's tree. The environment's gitops says where that is.

` + bootstrapLines() + `
Nothing of it changes when assignments come and go. A Zarf package is pulled by
nobody, and what pulls for gotemplate and cue only their authors know.

Where clusters have values or entries of their own, kalypso bootstrap cluster
ENVIRONMENT/NAME prints what one of them needs.

--policies prints what workspaces bound as ValidatingAdmissionPolicies too. They go to
each cluster of the type, wherever the rest goes: kubectl apply -l workspace takes them
alone.

With --hub it also prints the objects that report to the hub: a pod of kalypso observe,
which may only list the reconciler's objects, and for Flux a Provider and an Alert. They
are the same for all clusters of the type: each cluster has its name and its token in a
Secret. A comment in the output has the commands that create it. With --cluster they are
for one cluster, whose name the platform does not need to list.

kalypso bootstrap cluster-type CLUSTER-TYPE ENVIRONMENT prints the same.`,
		Example: `  kalypso bootstrap dev/large | kubectl apply --server-side -f -
  kalypso bootstrap prod/edge --hub https://hub.example.com | kubectl apply --server-side -f -`,
		Args: arity(1, 1, "bootstrap needs ENVIRONMENT/CLUSTER-TYPE"),
	}
	extra := extraFlags(cmd, false)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		environment, clusterType, ok := strings.Cut(args[0], "/")
		if !ok || environment == "" || clusterType == "" || strings.Contains(clusterType, "/") {
			return usagef("%s is not ENVIRONMENT/CLUSTER-TYPE", args[0])
		}
		return g.bootstrap(cmd, environment, clusterType, extra)
	}
	cmd.AddCommand(newBootstrapClusterType(g), newBootstrapCluster(g))
	return cmd
}

// bootstrapExtra are the objects that bootstrap prints in addition to the pull agent's.
type bootstrapExtra struct {
	policies   bool
	hub, image string
	cluster    string // "" for any of the type
}

// extraFlags adds its flags. The commands for a type have one for the name of a cluster.
func extraFlags(cmd *cobra.Command, named bool) *bootstrapExtra {
	x := &bootstrapExtra{}
	f := cmd.Flags()
	f.BoolVar(&x.policies, "policies", false, "print the bounds of workspaces too, as policies for "+
		"each cluster of the type")
	f.StringVar(&x.hub, "hub", "", "also print the objects that report to the hub at this `URL`")
	f.StringVar(&x.image, "image", "",
		"the container `IMAGE` that has kalypso, for --hub (default: that of this version)")
	if !named {
		f.StringVar(&x.cluster, "cluster", "", "for --hub, the name of the one `CLUSTER` that reports "+
			"(default: the one in its Secret)")
	}
	return x
}

// bootstrap prints the objects that a cluster of a type needs. If x names a cluster, clusterType
// may be "".
func (g builder) bootstrap(cmd *cobra.Command, environment, clusterType string,
	x *bootstrapExtra) error {
	if x.hub != "" {
		if err := agent.Check(x.hub); err != nil {
			return usagef("--hub: %w", err)
		}
	}
	if cmd.Flags().Changed("cluster") {
		switch {
		case x.hub == "":
			return usagef("--cluster names the cluster that reports to a hub: give --hub, too")
		case !model.IsDNSSubdomain(x.cluster):
			return usagef("--cluster %q: write lower-case letters, digits, hyphens and dots; "+
				"leave it out for another name, which the cluster then has in its Secret", x.cluster)
		}
	}
	return g.withCache(func(c *cache.Cache) error {
		r := g.request([]string{environment}, c)
		stop := g.showProgress(cmd.Context(), &r)
		is, ds, err := compiler.Bootstrap(cmd.Context(), r, clusterType, x.cluster, x.policies)
		stop()
		if err != nil {
			return err
		}
		if x.hub != "" && len(is.Objects) > 0 {
			tag := "latest" // for a version that is not a release
			if v := compiler.Version().Version; isRelease(v) {
				tag = v
			}
			more, ok := agent.Manifests(agent.Options{
				Hub: x.hub, Cluster: x.cluster, Namespace: is.Namespace, Groups: is.Groups,
				Image: cmp.Or(x.image, "ghcr.io/kalypso-io/kalypso:"+tag),
			})
			if !ok {
				return usagef(
					"--hub: what reconciles %s/%s is no object on it: have kalypso observe report where it is, "+
						"as docs/hub.md says", environment, cmp.Or(x.cluster, clusterType))
			}
			is.Objects = append(append(is.Objects, "---\n"...), more...)
		}
		if _, err := g.out.Write(is.Objects); err != nil {
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

func newBootstrapClusterType(g builder) *cobra.Command {
	var extra *bootstrapExtra
	cmd := &cobra.Command{
		Use:   "cluster-type CLUSTER-TYPE ENVIRONMENT",
		Short: "Print what a cluster of a type needs to pull its tree",
		Long: `cluster-type prints what lets a cluster of the type pull its folder of the
environment's tree. The environment's gitops says where that is. It is
what kalypso bootstrap ENVIRONMENT/CLUSTER-TYPE prints, with the same flags.`,
		Example: "  kalypso bootstrap cluster-type large dev | kubectl apply --server-side -f -",
		Args:    arity(2, 2, "bootstrap cluster-type needs CLUSTER-TYPE and ENVIRONMENT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.bootstrap(cmd, args[1], args[0], extra)
		},
	}
	extra = extraFlags(cmd, false)
	return cmd
}

func newBootstrapCluster(g builder) *cobra.Command {
	var extra *bootstrapExtra
	cmd := &cobra.Command{
		Use:   "cluster ENVIRONMENT/NAME",
		Short: "Print what one cluster needs to pull its tree",
		Long: `cluster prints what lets one cluster pull its folder of the environment's tree, with the
values that it alone has. Where its cluster type has entries for its clusters, it pulls
its entry, which names the folder of its class: what it runs changes by commits alone.

With --hub it also prints the objects that report to the hub: a pod of kalypso observe,
which may only list the reconciler's objects, and for Flux a Provider and an Alert.`,
		Example: "  kalypso bootstrap cluster prod/store-17 | kubectl apply --server-side -f -",
		Args:    arity(1, 1, "bootstrap cluster needs ENVIRONMENT/NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			environment, name, ok := cutCluster(args[0])
			if !ok {
				return usagef("%s is not ENVIRONMENT/NAME", args[0])
			}
			extra.cluster = name
			return g.bootstrap(cmd, environment, "", extra)
		},
	}
	extra = extraFlags(cmd, true)
	return cmd
}
