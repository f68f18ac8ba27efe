package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/promotion"
	"github.com/kalypso-io/kalypso/promotion/plan"
)

// decide carries out the decision of a person about environments.
func (g promoter) decide(cmd *cobra.Command, o *promotionOptions, d *decisionOptions, kind string,
	args []string,
	do func(*promotion.Session, context.Context, plan.Decision) ([]*plan.StageStatus, error)) error {
	if err := o.named(args); err != nil {
		return err
	}
	if len(o.environments) == 0 && !o.all {
		return usagef("name the environments, or all of them with --all")
	}
	now, err := clock()
	if err != nil {
		return err
	}
	decision, err := d.decision(now())
	if err != nil {
		return err
	}
	var stages []*plan.StageStatus
	err = g.withSession(cmd, o, func(ctx context.Context, s *promotion.Session) (err error) {
		stages, err = do(s, ctx, decision)
		return err
	})
	if len(stages) > 0 {
		if err := g.reportErrorsOf(stages); err != nil {
			return err
		}
		if err := g.printStages(*o.output, kind, stages); err != nil {
			return err
		}
	}
	for _, s := range stages {
		if s.State == plan.Blocked && err == nil {
			err = errBlocked
		}
	}
	return err
}

// newDecision makes a command with which people decide about environments.
func newDecision(g promoter, use, short, long, example, kind string, d *decisionOptions,
	o *promotionOptions,
	do func(*promotion.Session, context.Context, plan.Decision) ([]*plan.StageStatus,
		error)) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Example: example,
		RunE: func(cmd *cobra.Command,
			args []string) error {
			return g.decide(cmd, o, d, kind, args, do)
		},
	}
	o.flags(g.platform, cmd)
	o.output = outputFlag(cmd)
	o.decisionFlags(cmd, d)
	cmd.Flags().BoolVar(&o.all, "all", false, "all environments")
	return cmd
}

func newRollback(g promoter) *cobra.Command {
	o, d, to := &promotionOptions{}, &decisionOptions{}, plan.RollbackTo{}
	cmd := newDecision(g, "rollback ENVIRONMENT --reason REASON",
		"Bring an environment back to an earlier commit",
		`rollback compiles an earlier base commit with the environment's own files of today, so
that corrections of those stay, and puts it where the environment is; with --exact it
brings the very files back that were there, without compiling. It goes forward: the
branch gets a new commit. The environment is then held, so that no run promotes again
what was rolled back from: release ends that, and so does promoting that commit, or a
later one, by name. A commit that is to come nowhere again is one for reject. Gates are
not asked, and a branch that is written to by pull requests gets one.

With --own, the base commit stays and the environment's own files go back.`,
		`  kalypso rollback prod --reason INC-42              # to what it had before
  kalypso rollback prod --own --reason INC-42        # only its own files
  kalypso rollback prod --ring eu --to 4f2a9c1 --reason INC-42`,
		"Rollback", d, o,
		func(s *promotion.Session, ctx context.Context, decision plan.Decision) ([]*plan.StageStatus,
			error) {
			if to.Steps < 1 {
				return nil, usagef("--steps %d: at least one step back", to.Steps)
			}
			if to.Own && to.Exact {
				return nil, usagef(
					"--own keeps the base commit, and --exact brings all files back: use one of them")
			}
			return s.Rollback(ctx, to, decision)
		})
	cmd.Flags().StringVar(&to.Commit, "to", "",
		"the base `COMMIT` to go back to; with --own, a commit of own files")
	cmd.Flags().IntVar(&to.Steps, "steps", 1,
		"how many base commits, or with --own commits of own files, to go back")
	cmd.Flags().BoolVar(&to.Exact, "exact", false, "bring back the very files, without compiling")
	cmd.Flags().BoolVar(&to.Own, "own", false,
		"keep the base commit, and go back with the environment's own files")
	cmd.Flags().StringVar(&d.until, "until", "", "hold until this `TIME`, or for that long; without "+
		"it until somebody releases it")
	return cmd
}

func newHold(g promoter) *cobra.Command {
	o, d := &promotionOptions{}, &decisionOptions{}
	cmd := newDecision(g, "hold ENVIRONMENT... --reason REASON", "Keep environments at what they have",
		`hold writes into the record of an environment's tree that nothing is promoted to it,
or to a ring of it. release ends that.`, `  kalypso hold prod --reason "waiting for the audit" --until 48h`, "Hold", d, o, (*promotion.Session).Hold)
	cmd.Flags().StringVar(&d.until, "until", "", "until this `TIME`, or for that long; without it "+
		"until somebody releases it")
	return cmd
}

func newRelease(g promoter) *cobra.Command {
	o, d := &promotionOptions{}, &decisionOptions{}
	return newDecision(g, "release ENVIRONMENT... --reason REASON", "End the hold of environments",
		`release ends what hold and rollback began: promotion to the environment goes on, also
with the commit that was rolled back from, unless somebody has rejected it.`,
		`  kalypso release prod --reason "INC-42 is mended"`, "Release", d, o,
		(*promotion.Session).Release)
}

func newFreeze(g promoter) *cobra.Command {
	o, d := &promotionOptions{}, &decisionOptions{}
	cmd := newDecision(g, "freeze ENVIRONMENT... --reason REASON",
		"Stop promotion to environments at once",
		`freeze stops promotion to environments without touching their branches: the order is in
a ref of the GitOps repository, refs/kalypso/freeze/ENVIRONMENT, which needs no pull
request. thaw ends it.`, `  kalypso freeze prod --reason "year end" --until 2027-01-04T06:00Z
  kalypso freeze --all --reason INC-42`, "Freeze", d, o,
		func(
			s *promotion.Session, ctx context.Context, decision plan.Decision,
		) ([]*plan.StageStatus, error) {
			frozen, err := s.Freeze(ctx, decision)
			for _, name := range frozen {
				until := "somebody thaws it"
				if !decision.Until.IsZero() {
					until = decision.Until.UTC().Format(time.RFC3339)
				}
				fmt.Fprintf(g.err, "%s is frozen until %s\n", name, until)
			}
			return nil, err
		})
	cmd.Flags().StringVar(&d.until, "until", "",
		"until this `TIME`, or for that long; without it until somebody thaws it")
	return cmd
}

func newThaw(g promoter) *cobra.Command {
	o := &promotionOptions{}
	cmd := &cobra.Command{
		Use:   "thaw ENVIRONMENT...",
		Short: "End the freeze of environments",
		Long:  `thaw removes the order that freeze gave.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.named(args); err != nil {
				return err
			}
			if err := o.needsSome("thaw"); err != nil {
				return err
			}
			return g.withSession(cmd, o, func(ctx context.Context, s *promotion.Session) error {
				thawed, err := s.Thaw(ctx)
				for _, name := range thawed {
					fmt.Fprintf(g.err, "%s is not frozen\n", name)
				}
				return err
			})
		},
	}
	o.flags(g.platform, cmd)
	cmd.Flags().BoolVar(&o.all, "all", false, "all environments")
	return cmd
}

func newReject(g promoter) *cobra.Command {
	o, d := &promotionOptions{}, &decisionOptions{}
	var undo bool
	cmd := &cobra.Command{
		Use:   "reject COMMIT --reason REASON",
		Short: "Let a commit of the platform come nowhere",
		Long: `reject makes sure that a base commit is no candidate anywhere. Environments that have it
keep it: rollback brings them back. The order is in refs/kalypso/reject/COMMIT of the
GitOps repositories; --undo removes it.`,
		Example: `  kalypso reject 4f2a9c1 --reason "wrong image"`,
		Args:    arity(1, 1, "reject takes one commit, and %d are given"),
		RunE: func(cmd *cobra.Command, args []string) error {
			decision := plan.Decision{}
			if !undo {
				var err error
				if decision, err = d.decision(time.Time{}); err != nil {
					return err
				}
			}
			return g.withSession(cmd, o, func(ctx context.Context, s *promotion.Session) error {
				do, word := s.Reject, "rejected"
				if undo {
					do, word = func(ctx context.Context, commit string, _ plan.Decision) (string, error) {
						return s.Unreject(ctx, commit)
					}, "no longer rejected"
				}
				commit, err := do(ctx, args[0], decision)
				if err != nil {
					return err
				}
				fmt.Fprintf(g.err, "%s is %s\n", commit, word)
				return nil
			})
		},
	}
	o.flags(g.platform, cmd)
	o.decisionFlags(cmd, d)
	cmd.Flags().BoolVar(&undo, "undo", false, "take the rejection back")
	return cmd
}

// jitter is a time between a half and the whole of another.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }
