package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/plan"
)

// workFolder is the folder of the platform, or of the application, whose repository is promoted from.
type workFolder struct {
	path   string   // "" if a repository is named
	head   git.Hash // zero before the first commit
	pushes bool     // commits are promoted from its remote origin
	noted  bool     // noteFolder has printed what it has to
}

// noteFolder prints which changes of the folder a promotion does not see: commits that the branch does not
// have, and changes without a commit. It prints nothing if git does not tell.
func (g *global) noteFolder(ctx context.Context, s *promotion.Session, f *workFolder) error {
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
			fmt.Fprintf(g.err, "kalypso: commit %s of this folder is not in branch %s of %s, which is promoted from: %s\n",
				git.Short(f.head), branch, repository, push)
		}
	}
	status := exec.CommandContext(ctx, "git", "--no-optional-locks", "-C", f.path, "status", "--porcelain", "--", ".")
	if out, err := status.Output(); err == nil && len(out) > 0 {
		fmt.Fprintf(g.err, "kalypso: this folder has changes that are not committed, and only commits "+
			"are promoted: %s\n", pushed)
	}
	return nil
}

// noteUnreported prints how reports of rollouts reach promote, if stages wait for them, the run
// names no source, and no one has reported on any stage. It prints it once.
func (g *global) noteUnreported(o *promotionOptions, stages []*plan.StageStatus) {
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
