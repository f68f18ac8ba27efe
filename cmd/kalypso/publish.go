package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/publish"
	"github.com/kalypso-io/kalypso/internal/credential"
)

// publishOptions are the flags of publish.
type publishOptions struct {
	publish.Options
	from   string
	adopt  bool
	output *string
}

func newPublish(g builder) *cobra.Command {
	o := &publishOptions{}
	cmd := &cobra.Command{
		Use:   "publish [oci://HOST/REPOSITORY[:TAG]] [ENVIRONMENT...]",
		Short: "Bring environments' trees to an OCI registry",
		Long: `publish compiles environments and brings each tree to an OCI registry, as an
artifact that Flux and Argo CD pull. Without a repository these are the
environments whose gitops names one. The tag is that of gitops, else the
environment's name.

Equal trees make equal layers, and a tag that holds the tree already stays as it
is. A platform with errors publishes nothing: what failed would be missing. To
publish a folder that was built, with what it kept, use --from. Credentials are
those that docker has.`,
		Example: `  kalypso publish                                   # every environment whose gitops is oci
  kalypso publish oci://registry.example.com/fleet dev
  kalypso publish oci://registry.example.com/fleet:1.2.3 prod --revision "$(git rev-parse HEAD)"
  kalypso build --to out
  kalypso publish oci://registry.example.com/fleet --from out/dev   # what was built, with what it kept`,
		ValidArgsFunction: g.complete().environmentNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			to, environments, err := o.target(args)
			if err != nil {
				return usageError{err}
			}
			if what := credential.In(o.Origin); what != "" {
				return usageError{errors.New("--source becomes a part of the artifact, and has a credential, " +
					what + ": leave that out")}
			}
			if o.from != "" {
				p, err := publish.OfFolder(g.path(o.from), to, o.Options)
				if err != nil {
					return err
				}
				return g.push(cmd.Context(), []publish.Publication{p}, o)
			}
			return g.compile(cmd.Context(), environments, func(b *compiler.Build) error {
				return g.publishBuild(cmd.Context(), b, to, o)
			})
		},
	}
	o.output = outputFlag(cmd)
	cmd.Flags().StringVar(&o.from, "from", "",
		"publish the tree in `DIR`, the folder of one environment that build wrote")
	cmd.Flags().StringVar(&o.Path, "path", "", "the `FOLDER` of the artifact that holds the tree; "+
		"else that of gitops, else the root")
	cmd.Flags().StringVar(&o.Origin, "source", "",
		"the `URL` of the platform's own repository, as an annotation")
	cmd.Flags().StringVar(&o.Revision, "revision", "", "the `REVISION` of the platform, such as a "+
		"commit, as an annotation")
	completeFlag(cmd, "path", cobra.NoFileCompletions)
	cmd.Flags().BoolVar(&o.adopt, "adopt", false, "take over a tag that holds something else")
	return cmd
}

// target returns the repository and the environments that the arguments name. Its error is a
// usage error.
func (o *publishOptions) target(args []string) (to publish.Target, environments []string,
	err error) {
	if len(args) > 0 && strings.Contains(args[0], "://") {
		if to, err = publish.ParseTarget(args[0]); err != nil {
			return to, nil, err
		}
		args = args[1:]
	}
	for _, a := range args {
		if strings.ContainsAny(a, "/:") {
			return to, nil, fmt.Errorf("%s is no environment; name a repository before the environments, "+
				"as oci://%s", a, strings.TrimPrefix(a, "//"))
		}
	}
	if o.from != "" && (to.Repository == "" || len(args) > 0) {
		return to, nil,
			errors.New("--from publishes the one tree in DIR: name the repository, and no environment")
	}
	return to, args, nil
}

func (g builder) publishBuild(ctx context.Context, b *compiler.Build, to publish.Target,
	o *publishOptions) error {
	if err := g.report(g.err, b.Diagnostics); err != nil {
		return err
	}
	if b.Failed() {
		return errPlatform
	}
	if len(b.Environments) == 0 {
		return errors.New("there is no environment to publish")
	}
	all, err := publish.Of(ctx, b, to, o.Options)
	if several := (*publish.SeveralError)(nil); errors.As(err, &several) ||
		errors.Is(err, publish.ErrNowhere) {
		return usageError{err}
	}
	if err != nil {
		return err
	}
	return g.push(ctx, all, o)
}

// publication is the result of an environment's tree.
type publication struct {
	Environment string `json:"environment"`
	Reference   string `json:"reference"`
	Digest      string `json:"digest"`
	Tree        string `json:"tree"`
	Pushed      bool   `json:"pushed"` // false if the tag had the tree already
}

// push pushes artifacts to their tags, one after the other. It prints the pushed artifacts even
// if one fails.
func (g builder) push(ctx context.Context, all []publish.Publication, o *publishOptions) error {
	items := []publication{}
	var failure error
	for _, p := range all {
		digest, pushed, err := publish.Push(ctx, p.Target, p.Artifact, o.adopt)
		if err != nil {
			failure = err
			break
		}
		items = append(items,
			publication{p.Artifact.Environment(), p.Target.String(), digest, p.Artifact.Tree(), pushed})
	}
	err := g.print(*o.output, list[publication]{apiVersion, "PublicationList", items},
		func(w *tabwriter.Writer) {
			fmt.Fprintln(w, "ENVIRONMENT\tREFERENCE\tDIGEST\tPUSHED")
			for _, i := range items {
				fmt.Fprintf(w, "%s\t%s\t%s\t%t\n", i.Environment, i.Reference, i.Digest, i.Pushed)
			}
		})
	return errors.Join(failure, err)
}
