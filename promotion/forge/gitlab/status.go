package gitlab

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	gl "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/internal/server"
)

// Statuses implements forge.Forge. They include the jobs of GitLab, by their names and with the
// user who ran them. At is the time when a status got its state. GitLab moves a status from
// pending to success, and its creation time is the earlier one.
func (f *Forge) Statuses(ctx context.Context, commits []git.Hash) (map[git.Hash][]forge.Status,
	error) {
	return f.server.Statuses(ctx, commits,
		func(ctx context.Context, commit git.Hash) ([]forge.Status, error) {
			return f.statuses(ctx, commit, "")
		})
}

// statuses returns the statuses of a commit. If name is not empty, it returns only statuses with
// that name.
func (f *Forge) statuses(ctx context.Context, commit git.Hash, name string) ([]forge.Status,
	error) {
	o := gl.GetCommitStatusesOptions{All: gl.Ptr(true)}
	if name != "" {
		o.Name = &name
	}
	list, err := server.Pages(func(n int) ([]*gl.CommitStatus, int, error) {
		o.ListOptions = page(n)
		list, r, err := f.api.Commits.GetCommitStatuses(f.project, commit.String(), &o,
			gl.WithContext(ctx))
		return list, next(r), err
	})
	if code(err) == http.StatusNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, f.fail("read the statuses of "+git.Short(commit), err)
	}
	slices.SortFunc(list, func(a, b *gl.CommitStatus) int {
		return cmp.Or(stateSince(a).Compare(stateSince(b)), cmp.Compare(a.ID, b.ID))
	})
	statuses := make([]forge.Status, len(list))
	for i, s := range list {
		statuses[i] = forge.Status{
			Name: s.Name, State: state(s.Status), Description: s.Description, URL: s.TargetURL,
			By: s.Author.Username, At: stateSince(s),
		}
	}
	return statuses, nil
}

// stateSince returns when a status got its state.
func stateSince(s *gl.CommitStatus) time.Time {
	at := timeOf(s.CreatedAt)
	if state(s.Status) == forge.Pending {
		return at
	}
	if finished := timeOf(s.FinishedAt); finished.After(at) {
		return finished
	}
	return at
}

// state converts a state: one that is neither success nor failure is pending, and a skipped
// job has not succeeded.
func state(s string) forge.State {
	switch s {
	case "success":
		return forge.Success
	case "failed", "canceled", "canceling":
		return forge.Failure
	}
	return forge.Pending
}

// buildStates are GitLab's states of statuses.
var buildStates = map[forge.State]gl.BuildStateValue{
	forge.Pending: gl.Pending, forge.Success: gl.Success, forge.Failure: gl.Failed,
}

// SetStatus implements forge.Forge. If only the description of a pending status has changed, the
// status may keep the old one, because GitLab has no transition from pending to pending.
func (f *Forge) SetStatus(ctx context.Context, commit git.Hash, s forge.Status) error {
	return f.server.Do(ctx, func(ctx context.Context) error {
		all, err := f.statuses(ctx, commit, s.Name)
		newest := forge.Newest(all, s.Name,
			func(author string) bool { return f.viewer == "" || author == f.viewer })
		if err != nil || newest.Same(s) {
			return err
		}
		_, _, err = f.api.Commits.SetCommitStatus(f.project, commit.String(), &gl.SetCommitStatusOptions{
			State: buildStates[s.State], Name: &s.Name, Description: &s.Description,
			TargetURL: optional(s.URL),
		}, gl.WithContext(ctx))
		if code(err) == http.StatusBadRequest && newest != nil && newest.State == s.State &&
			strings.Contains(err.Error(), "Cannot transition status") {
			return nil
		}
		failure := f.fail("set the status "+s.Name+" of "+git.Short(commit), err)
		if code(err) == http.StatusNotFound {
			return fmt.Errorf("%w: %w", forge.ErrUnknownCommit, failure)
		}
		return failure
	})
}

// optional returns nil for an empty text.
func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

var deploymentStates = map[forge.State]gl.DeploymentStatusValue{
	forge.Pending: gl.DeploymentStatusRunning, forge.Success: gl.DeploymentStatusSuccess,
	forge.Failure: gl.DeploymentStatusFailed,
}

// Deploy implements forge.Forge. The environment gets the URL and, for production, the
// tier; GitLab has no field for descriptions and payloads.
func (f *Forge) Deploy(ctx context.Context, d forge.Deployment) error {
	return f.server.Do(ctx, func(ctx context.Context) error {
		if err := f.environment(ctx, d); err != nil {
			return err
		}
		newest, _, err := f.api.Deployments.ListProjectDeployments(f.project,
			&gl.ListProjectDeploymentsOptions{
				ListOptions: gl.ListOptions{PerPage: 1}, Environment: &d.Environment, OrderBy: gl.Ptr("id"),
				Sort: gl.Ptr("desc"),
			}, gl.WithContext(ctx))
		if err != nil {
			return f.fail("read the deployments of "+d.Environment, err)
		}
		state, commit := deploymentStates[d.State], d.Commit.String()
		if len(newest) > 0 && newest[0].SHA == commit {
			switch newest[0].Status {
			case string(state):
				return nil
			case "created", "running": // only these states can be changed
				_, _, err := f.api.Deployments.UpdateProjectDeployment(f.project, newest[0].ID,
					&gl.UpdateProjectDeploymentOptions{Status: &state}, gl.WithContext(ctx))
				return f.fail("update the deployment of "+d.Environment, err)
			}
		}
		// GitLab requires a ref, and accepts everything that names a commit.
		_, _, err = f.api.Deployments.CreateProjectDeployment(f.project,
			&gl.CreateProjectDeploymentOptions{
				Environment: &d.Environment, Ref: &commit, SHA: &commit, Tag: gl.Ptr(false), Status: &state,
			}, gl.WithContext(ctx))
		return f.fail("record the deployment of "+d.Environment, err)
	})
}

// environment creates or updates the environment of a deployment.
func (f *Forge) environment(ctx context.Context, d forge.Deployment) error {
	list, _, err := f.api.Environments.ListEnvironments(f.project,
		&gl.ListEnvironmentsOptions{Name: &d.Environment}, gl.WithContext(ctx))
	if err != nil {
		return f.fail("look for the environment "+d.Environment, err)
	}
	var tier *string
	if d.Production {
		tier = gl.Ptr("production")
	}
	at := slices.IndexFunc(list, func(e *gl.Environment) bool { return e.Name == d.Environment })
	if at < 0 {
		_, _, err := f.api.Environments.CreateEnvironment(f.project, &gl.CreateEnvironmentOptions{
			Name: &d.Environment, ExternalURL: optional(d.URL), Tier: tier,
		}, gl.WithContext(ctx))
		if code(err) == 400 || code(err) == 422 { // another process has made it
			return nil
		}
		return f.fail("make the environment "+d.Environment, err)
	}
	var o gl.EditEnvironmentOptions
	if d.URL != "" && list[at].ExternalURL != d.URL {
		o.ExternalURL = &d.URL
	}
	if tier != nil && list[at].Tier != *tier {
		o.Tier = tier
	}
	if o == (gl.EditEnvironmentOptions{}) {
		return nil
	}
	_, _, err = f.api.Environments.EditEnvironment(f.project, list[at].ID, &o, gl.WithContext(ctx))
	return f.fail("update the environment "+d.Environment, err)
}

// Freeze is a period without deployments. It begins and ends at the times of two cron
// expressions, of minute, hour, day, month and weekday, in a time zone by its IANA or Ruby
// name. All three are as GitLab has them.
type Freeze struct{ Start, End, Zone string }

// Freezes returns the deploy freezes of the project
// (https://docs.gitlab.com/api/freeze_periods/), in GitLab's order.
func (f *Forge) Freezes(ctx context.Context) ([]Freeze, error) {
	return server.Ask(ctx, f.server, func(ctx context.Context) ([]Freeze, error) {
		list, err := server.Pages(func(n int) ([]*gl.FreezePeriod, int, error) {
			list, r, err := f.api.FreezePeriods.ListFreezePeriods(f.project,
				&gl.ListFreezePeriodsOptions{ListOptions: page(n)}, gl.WithContext(ctx))
			return list, next(r), err
		})
		if err != nil {
			return nil, f.fail("read the deploy freezes", err)
		}
		var freezes []Freeze
		for _, p := range list {
			freezes = append(freezes, Freeze{Start: p.FreezeStart, End: p.FreezeEnd, Zone: p.CronTimezone})
		}
		return freezes, nil
	})
}
