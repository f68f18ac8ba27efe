package main

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion"
	"github.com/kalypso-io/kalypso/promotion/verify"
)

func newVerify(g inspector) *cobra.Command {
	o := &promotionOptions{}
	var head string
	cmd := &cobra.Command{
		Use:   "verify [ENVIRONMENT...]",
		Short: "Compile what records say, and compare it with the trees",
		Long: `verify compiles every environment at the commits that the record of its tree names,
and compares git's ids: so anybody can check what was promoted, and that nobody edited
it. Folders that were kept because of errors are compared with what their own commits
give. It needs no secrets and writes nothing; with --head it checks a pull request,
where it is to be required. The exit code is 1 where something is not as it should be.`,
		Example: `  kalypso verify prod
  kalypso verify --env prod --head kalypso/promote/prod`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.named(args); err != nil {
				return err
			}
			var all []*verify.Verification
			err := promoter(g).withSession(cmd, o,
				func(ctx context.Context, s *promotion.Session) (err error) {
					all, err = s.Verify(ctx, head)
					return err
				})
			if err != nil {
				return err
			}
			if err := g.print(*o.output, list[*verify.Verification]{apiVersion, "Verification", all},
				func(w *tabwriter.Writer) { verificationTable(w, all) }); err != nil {
				return err
			}
			for _, v := range all {
				if !v.OK {
					return errDifference
				}
			}
			return nil
		},
	}
	o.flags(g.platform, cmd)
	o.output = outputFlag(cmd)
	cmd.Flags().StringVar(&head, "head", "", "look at this branch, tag or `COMMIT` of the GitOps "+
		"repository, instead of the environment's branch")
	completeFlag(cmd, "head", cobra.NoFileCompletions) // it may be anywhere
	return cmd
}

func verificationTable(w *tabwriter.Writer, all []*verify.Verification) {
	fmt.Fprintln(w, "ENVIRONMENT\tCOMMIT\tTREE\tRESULT")
	for _, v := range all {
		result := "as recorded"
		switch {
		case v.OK && v.Reason != "":
			result = v.Reason
		case !v.OK:
			result = "1 problem"
			if n := len(v.Problems); n > 1 {
				result = fmt.Sprintf("%d problems", n)
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", v.Environment, shortOrNone(v.Commit),
			shortOrNone(string(v.Tree)), result)
	}
	for _, v := range all {
		for _, p := range v.Problems {
			fmt.Fprintf(w, "%s: %s\n", v.Environment, terminal.Line(p))
		}
	}
}
