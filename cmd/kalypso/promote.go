package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/httpclient"
	"github.com/kalypso-io/kalypso/promotion"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/gate"
	"github.com/kalypso-io/kalypso/promotion/plan"
)

// promoteOptions are the flags of promote.
type promoteOptions struct {
	promotionOptions
	commit           string
	skip             []string
	atOnce, allRings bool
	reason           string
	dryRun           bool
	wait             string
	pendingOK        bool
	plan             string // the file of a saved plan
	target           string
}

func newPromote(g promoter) *cobra.Command {
	o := &promoteOptions{}
	cmd := &cobra.Command{
		Use:   "promote [plan|apply|status|abort] [--env ENVIRONMENT... | --all]",
		Short: "Move commits from environment to environment",
		Long: `promote brings environments the base commits that their policies let through: what
ran in one environment is what the next one gets, once every gate has passed. All
state is in git and on the forge, so that it can run from anywhere, again and again,
and by several at once: each run does what can be done now.

The policies are those of the platform's branch as it is now (--from). The tree is
compiled from the commits, without a work tree, and goes to the branch that the
environment's gitops names: pushed, or as a pull request, as environments.X.promotion
says.

Without a word after it, promote is promote apply. The exit code is 5 if something is
blocked, 6 if something is pending, and 7 if something is held or frozen.`,
		Example: `  kalypso promote status                       # where every commit is, and why
  kalypso promote plan --env stage             # what could be done
  kalypso promote --env stage                  # do it
  kalypso promote --all --pending-ok           # in CI: whatever can be done now
  kalypso promote --env prod --commit 4f2a9c1 --skip-gate soak --reason INC-42`,
		Args: noArgs("promote"),
		RunE: func(cmd *cobra.Command, _ []string) error { return g.promote(cmd, o) },
	}
	o.flags(g.platform, cmd)
	o.output = outputFlagIn(cmd, cmd.PersistentFlags())
	cmd.Flags().BoolVar(&o.all, "all", false, "all environments")
	o.intentFlags(cmd)
	o.applyFlags(cmd)
	cmd.AddCommand(newPromotePlan(g, o), newPromoteApply(g, o), newPromoteStatus(g, o),
		newPromoteAbort(g, o))
	return cmd
}

func noArgs(name string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usagef(
				"%s %s: there are plan, apply, status and abort; environments are named with --env", name,
				args[0])
		}
		return nil
	}
}

func (o *promoteOptions) intentFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.commit, "commit", "",
		"promote this `COMMIT` of the platform, and not the policy's candidate")
	f.StringSliceVar(&o.skip, "skip-gate", nil,
		"pass over a `GATE` that the policy lets be passed over")
	f.StringVar(&o.reason, "reason", "", "the `REASON` for --commit, --skip-gate or --at-once")
	f.BoolVar(&o.overwrite, "overwrite", false, "restore what somebody changed in the tree")
	f.BoolVar(&o.adopt, "adopt", false,
		"take over files that kalypso did not write, and begin a branch anew that is gone")
	f.BoolVar(&o.atOnce, "at-once", false, "let changes of an environment's own files reach all "+
		"rings at once, for a --reason")
	f.BoolVar(&o.allRings, "all-rings", false, "")
	if err := f.MarkHidden("all-rings"); err != nil {
		panic(err)
	}
}

func (o *promoteOptions) applyFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.dryRun, "dry-run", false, "only plan, as promote plan does")
	f.StringVar(&o.wait, "wait", "",
		"go on until nothing is pending any more, at most for a `DURATION`")
	f.Lookup("wait").NoOptDefVal = "30m"
	f.BoolVar(&o.pendingOK, "pending-ok", false, "exit with 0 also if something is pending")
	f.StringVar(&o.target, "target", "",
		"promoter writes what GitOps Promoter promotes: the branches that end in -next")
	completeFlag(cmd, "target", values("promoter"))
}

func newPromotePlan(g promoter, o *promoteOptions) *cobra.Command {
	var save string
	cmd := &cobra.Command{
		Use:   "plan [--env ENVIRONMENT...]",
		Short: "Say what promote would do, and write nothing",
		Long: `plan asks all gates, compiles the candidates and says what would change. It writes
to no repository and to no forge. A plan that is saved with --out is applied by
promote apply FILE, and only as long as nothing that it rests on has moved.`,
		Args: noArgs("promote plan"),
		RunE: func(cmd *cobra.Command, _ []string) error { return g.promotePlan(cmd, o, save) },
	}
	cmd.Flags().BoolVar(&o.all, "all", false, "all environments, which is what no --env means as well")
	o.intentFlags(cmd)
	cmd.Flags().StringVar(&save, "out", "", "save the plan to a `FILE`")
	cmd.Flags().BoolVar(&o.pendingOK, "pending-ok", false, "exit with 0 also if something is pending")
	return cmd
}

func newPromoteApply(g promoter, o *promoteOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "apply [PLAN] [--env ENVIRONMENT... | --all]",
		Short: "Do what can be done now",
		Long: `apply is what promote does without a word after it. With the file of a saved plan it
does what that says, and nothing if anything that the plan rests on has moved.`,
		Args: arity(0, 1,
			"promote apply takes the file of one plan, and not %d; environments are named with --env"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.plan = args[0]
			}
			return g.promote(cmd, o)
		},
	}
	cmd.Flags().BoolVar(&o.all, "all", false, "all environments")
	o.intentFlags(cmd)
	o.applyFlags(cmd)
	return cmd
}

// promote applies promotions, repeatedly if the flags request that.
func (g promoter) promote(cmd *cobra.Command, o *promoteOptions) error {
	switch {
	case o.target != "" && o.target != "promoter":
		return usagef("--target %s: there is promoter", o.target)
	case o.target != "" && (o.dryRun || o.plan != "" || o.commit != "" || len(o.skip) > 0 || o.atOnce):
		return usagef(
			"--target promoter writes the platform as it is, and GitOps Promoter decides what goes on: " +
				"leave out --dry-run, a plan, --commit, --skip-gate and --at-once")
	case o.target != "":
		return g.hydrate(cmd, o)
	case o.dryRun:
		return g.promotePlan(cmd, o, "")
	}
	saved, err := o.readPlan(g.console)
	if err != nil {
		return err
	}
	saveMemory(64 << 20)
	if saved == nil {
		if err := o.needsSome("promote"); err != nil {
			return err
		}
	}
	wait, err := o.waits()
	if err != nil {
		return err
	}
	var stages []*plan.StageStatus
	end := time.Now().Add(wait)
	for attempt := 1; ; attempt++ {
		err = g.withSession(cmd, &o.promotionOptions,
			func(ctx context.Context, s *promotion.Session) error {
				intent, err := g.intent(ctx, s, o)
				if err != nil {
					return err
				}
				stages, err = s.Apply(ctx, intent, saved)
				return err
			})
		g.noteUnreported(&o.promotionOptions, stages)
		if wait == 0 || err != nil || !unfinished(stages) || time.Now().After(end) {
			break
		}
		if err := pause(cmd.Context(), min(attempt+4, 12)); err != nil {
			return err
		}
	}
	if stages != nil {
		if err := g.reportErrorsOf(stages); err != nil {
			return err
		}
		if err := g.printStages(*o.output, "Promotion", stages); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	return o.verdict(stages)
}

// hydrate writes the branches that GitOps Promoter promotes.
func (g promoter) hydrate(cmd *cobra.Command, o *promoteOptions) error {
	if err := o.needsSome("promote"); err != nil {
		return err
	}
	var stages []*plan.StageStatus
	err := g.withSession(cmd, &o.promotionOptions,
		func(ctx context.Context, s *promotion.Session) (err error) {
			stages, err = s.Hydrate(ctx)
			return err
		})
	if stages != nil {
		if err := g.printStages(*o.output, "Hydration", stages); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	o.pendingOK = true // the command only proposes
	return o.verdict(stages)
}

// isRolling reports whether it is unknown so far if all clusters run the contents of a stage.
func isRolling(s *plan.StageStatus) bool {
	return s.Rollout != nil && s.Rollout.State == forge.Pending
}

// unfinished reports whether waiting may help.
func unfinished(stages []*plan.StageStatus) bool {
	for _, s := range stages {
		if isRolling(s) || s.State == plan.Waiting || s.State == plan.Proposed ||
			s.State == plan.Promoted {
			return true
		}
	}
	return false
}

func (o *promoteOptions) waits() (time.Duration, error) {
	if o.wait == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(o.wait)
	if err != nil {
		return 0, usagef("--wait=%s: write how long, as 30m", o.wait)
	}
	return d, nil
}

// intent returns the actions that the flags request in addition to the policies.
func (o *promoteOptions) intent(s *promotion.Session) (promotion.Intent, error) {
	if o.atOnce && o.commit != "" {
		return promotion.Intent{},
			usagef("--at-once is for own files, and --commit for a commit of the platform: " +
				"promote one after the other")
	}
	if o.allRings { // which needed no reason
		o.atOnce, o.reason = true, cmp.Or(o.reason, "--all-rings")
	}
	intent := promotion.Intent{Commit: o.commit, Reason: o.reason, By: s.By(),
		Skip: gate.Skip{Gates: o.skip, OwnAtOnce: o.atOnce, Reason: o.reason, By: s.By()}}
	if intent.Skip.IsZero() {
		intent.Skip = gate.Skip{}
	}
	if err := s.CheckSkip(intent.Skip); err != nil {
		return intent, usageError{err}
	}
	return intent, nil
}

func (o *promoteOptions) readPlan(g *console) (*plan.Plan, error) {
	if o.plan == "" {
		return nil, nil
	}
	if o.commit != "" || len(o.skip) > 0 || o.atOnce || len(o.environments) > 0 || o.all {
		return nil, usagef(
			"a saved plan says what is done: leave out --commit, --skip-gate, --at-once, --env and --all")
	}
	data, err := os.ReadFile(g.path(o.plan))
	if err != nil {
		return nil, err
	}
	return plan.ParsePlan(data)
}

// intent returns the intent of the flags, and notes differences of the folder.
func (g promoter) intent(ctx context.Context, s *promotion.Session,
	o *promoteOptions) (promotion.Intent, error) {
	intent, err := o.intent(s)
	if err == nil {
		err = g.noteFolder(ctx, s, &o.folder)
	}
	return intent, err
}

func (g promoter) promotePlan(cmd *cobra.Command, o *promoteOptions, save string) error {
	var planned *plan.Plan
	err := g.withSession(cmd, &o.promotionOptions,
		func(ctx context.Context, s *promotion.Session) error {
			intent, err := g.intent(ctx, s, o)
			if err != nil {
				return err
			}
			planned, err = s.Plan(ctx, intent)
			return err
		})
	if err != nil {
		return err
	}
	if err := g.reportErrorsOf(planned.Stages); err != nil {
		return err
	}
	g.noteUnreported(&o.promotionOptions, planned.Stages)
	if save != "" {
		data, err := planned.Encode()
		if err != nil {
			return err
		}
		if err := os.WriteFile(g.path(save), append(data, '\n'), 0o600); err != nil {
			return err
		}
	}
	if err := g.print(*o.output, document[*plan.Plan]{apiVersion, "PromotionPlan", planned},
		func(w *tabwriter.Writer) { stageTable(w, planned.Stages) }); err != nil {
		return err
	}
	if *o.output == "table" {
		g.tellSteps(planned.Stages)
	}
	return o.verdict(planned.Stages)
}

// tellSteps prints the changes of each step.
func (g promoter) tellSteps(stages []*plan.StageStatus) {
	for _, s := range stages {
		if s.Step == nil || s.Step.Body == "" {
			continue
		}
		body := s.Step.Body
		if marker, rest, ok := strings.Cut(body, "\n"); ok && strings.HasPrefix(marker, "<!--") {
			body = rest // it is for programs
		}
		fmt.Fprintf(g.out, "\n%s\n", strings.TrimRight(body, "\n"))
	}
}

// verdict is the exit code of the states of stages.
func (o *promoteOptions) verdict(stages []*plan.StageStatus) error {
	state, rolling := plan.Current, false
	for _, s := range stages {
		if rankOf(s.State) > rankOf(state) {
			state = s.State
		}
		if s.Rollout != nil && s.Rollout.State == forge.Failure {
			state = plan.Blocked // people have to do something about it
		}
		rolling = rolling || isRolling(s)
	}
	switch {
	case state == plan.Blocked:
		return errBlocked
	case state == plan.Held:
		return errHeld
	case (rankOf(state) > 0 || rolling) && !o.pendingOK:
		return errPending
	}
	return nil
}

// rankOf sorts states by urgency for people.
func rankOf(s plan.State) int {
	switch s {
	case plan.Blocked:
		return 3
	case plan.Held:
		return 2
	case plan.Waiting, plan.Proposed:
		return 1
	}
	return 0
}

// pause waits before something is tried again, longer each time, and never as long as
// another run that lost the same race.
func pause(ctx context.Context, attempt int) error {
	return httpclient.Wait(ctx, jitter(time.Duration(1<<attempt)*20*time.Millisecond))
}

// workFolder is the folder of the platform, or of the application, whose repository is promoted
// from.
type workFolder struct {
	path   string   // "" if a repository is named
	head   git.Hash // zero before the first commit
	pushes bool     // commits are promoted from its remote origin
	noted  bool     // noteFolder has printed what it has to
}

// noteFolder prints the changes of the folder that a promotion does not see: commits that the
// branch does not have, and changes without a commit. It prints nothing if git cannot list them.
func (g promoter) noteFolder(ctx context.Context, s *promotion.Session, f *workFolder) error {
	if f.path == "" || f.noted {
		return nil
	}
	f.noted = true
	branch, repository := s.From()
	push, pushed := "merge it, or name another branch with --from", "commit them"
	if f.pushes {
		push, pushed = "push it", "commit and push them"
	}
	if !f.head.IsZero() {
		has, err := s.Has(ctx, f.head)
		if err != nil {
			return err
		}
		if !has {
			fmt.Fprintf(g.err,
				"kalypso: commit %s of this folder is not in branch %s of %s, which is promoted from: %s\n",
				git.Short(f.head), branch, repository, push)
		}
	}
	status := exec.CommandContext(ctx, "git", "--no-optional-locks", "-C", f.path, "status",
		"--porcelain", "--", ".")
	if out, err := status.Output(); err == nil && len(out) > 0 {
		fmt.Fprintf(g.err, "kalypso: this folder has changes that are not committed, and only commits "+
			"are promoted: %s\n", pushed)
	}
	return nil
}

// noteUnreported describes how reports of rollouts reach promote. It prints this if stages wait
// for reports, the run names no source, and no one has reported on any stage. It prints it once.
func (g promoter) noteUnreported(o *promotionOptions, stages []*plan.StageStatus) {
	if o.noted || len(o.reports) > 0 || len(o.kubeconfigs) > 0 || o.hub.given() != "" {
		return
	}
	var waiting []string
	for _, s := range stages {
		if s.Rollout == nil || s.Rollout.Counts == nil || s.Rollout.Counts.Wanted == 0 {
			continue
		}
		if s.Rollout.Counts.Unknown < s.Rollout.Counts.Wanted {
			return // someone reports
		}
		if s.Rollout.State == forge.Pending {
			waiting = append(waiting, s.ID())
		}
	}
	if len(waiting) == 0 {
		return
	}
	o.noted = true
	fmt.Fprintf(g.err, "hint: no one has reported whether %s what it has. Let a hub, report files "+
		"or the clusters say it, with --hub, --report or --kubeconfig, "+
		"or Flux or Argo CD with commit statuses in the GitOps repository; if no one is going to "+
		"report, write gates: rollout: source: \"none\" into the environment\n",
		runs(waiting))
}

// runs is "dev runs", or "dev, stage each run".
func runs(stages []string) string {
	if len(stages) == 1 {
		return stages[0] + " runs"
	}
	return "each of " + strings.Join(stages, ", ") + " runs"
}
