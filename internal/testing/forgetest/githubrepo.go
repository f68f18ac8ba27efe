package forgetest

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/internal/git"
)

// GitHubRepository is a repository of a GitHubServer, with a real bare git repository
// behind it. Tests change its fields before they use it, or in Change.
type GitHubRepository struct {
	ID          int64
	Owner, Name string
	Dir         string // of the bare repository

	// The settings. A token that may not see them gets no merge methods.
	Squash, MergeCommit, Rebase bool
	HideSettings                bool
	AutoMerge, MergeQueue       bool
	OnlyKnownLabels             bool // as if labels were not made on the way
	Rules                       map[string]GitHubRules

	server      *GitHubServer
	hidden      map[string]bool // users who may not see it
	pulls       []*GitHubPull
	labels      []string
	statuses    []*GitHubStatus
	checks      []GitHubCheckRun
	deployments []*GitHubDeployment
}

// GitHubRules protect a branch.
type GitHubRules struct {
	Approvals int
	Statuses  []string // names that have to be successes on the head
	UpToDate  bool
}

// GitHubStatus is a commit status.
type GitHubStatus struct {
	Commit                                 git.Hash
	Context, State, Description, TargetURL string
	Creator                                string
	At                                     time.Time
	lag                                    int
}

// GitHubCheckRun is a check run of an app.
type GitHubCheckRun struct {
	Commit                               git.Hash
	App, Name, Status, Conclusion, Title string
	At                                   time.Time
}

// GitHubDeployment is a deployment with its statuses, oldest first.
type GitHubDeployment struct {
	ID          int64
	Commit      git.Hash
	Environment string
	Production  bool
	Payload     any
	Statuses    []GitHubDeploymentStatus
	lag         int
}

// GitHubDeploymentStatus is a status of a deployment.
type GitHubDeploymentStatus struct {
	State, Description, LogURL string
	lag                        int
}

// AddRepository makes a repository that allows everything. It has the bare git
// repository of a folder; "" for a new and empty one.
func (s *GitHubServer) AddRepository(owner, name, dir string) *GitHubRepository {
	s.state.Lock()
	defer s.state.Unlock()
	r := &GitHubRepository{
		ID: s.id(), Owner: owner, Name: name, Dir: dir, server: s,
		Squash: true, MergeCommit: true, Rebase: true, AutoMerge: true,
		Rules: map[string]GitHubRules{}, hidden: map[string]bool{},
	}
	if dir == "" {
		r.Dir = s.t.TempDir()
		r.git("init", "--quiet", "--bare", "--template=", "--initial-branch=main", ".")
	}
	s.repos = append(s.repos, r)
	return r
}

// Change changes the repository while the server may be in use. Then it merges the waiting pull
// requests that may be merged now.
func (r *GitHubRepository) Change(change func(*GitHubRepository)) {
	r.server.state.Lock()
	defer r.server.state.Unlock()
	change(r)
	r.sync()
	r.mergeWaiting()
}

// Hide takes a repository from the eyes of a user.
func (r *GitHubRepository) Hide(login string) {
	r.Change(func(r *GitHubRepository) { r.hidden[login] = true })
}

// AddStatus adds a status of a commit. At is the server's time unless it is set.
func (r *GitHubRepository) AddStatus(s GitHubStatus) {
	if s.At.IsZero() {
		s.At = r.server.Clock.Now()
	}
	r.Change(func(r *GitHubRepository) { r.statuses = append(r.statuses, &s) })
}

// AddCheckRun adds a check run; At is the server's time unless it is set.
func (r *GitHubRepository) AddCheckRun(c GitHubCheckRun) {
	if c.At.IsZero() {
		c.At = r.server.Clock.Now()
	}
	r.Change(func(r *GitHubRepository) { r.checks = append(r.checks, c) })
}

// Statuses are the commit statuses of all commits, oldest first.
func (r *GitHubRepository) Statuses() []GitHubStatus {
	r.server.state.Lock()
	defer r.server.state.Unlock()
	var out []GitHubStatus
	for _, s := range r.statuses {
		out = append(out, *s)
	}
	return out
}

// Deployments are all deployments, oldest first.
func (r *GitHubRepository) Deployments() []GitHubDeployment {
	r.server.state.Lock()
	defer r.server.state.Unlock()
	var out []GitHubDeployment
	for _, d := range r.deployments {
		copied := *d
		copied.Statuses = slices.Clone(d.Statuses)
		out = append(out, copied)
	}
	return out
}

// Labels are the labels that were made by a call of their own.
func (r *GitHubRepository) Labels() []string {
	r.server.state.Lock()
	defer r.server.state.Unlock()
	return slices.Clone(r.labels)
}

func (r *GitHubRepository) get(c *call) reply {
	body := map[string]any{"id": r.ID, "name": r.Name, "full_name": r.Owner + "/" + r.Name,
		"default_branch": "main", "private": true}
	if !r.HideSettings {
		body["allow_squash_merge"], body["allow_merge_commit"], body["allow_rebase_merge"] = r.Squash, r.MergeCommit, r.Rebase
		body["allow_auto_merge"] = r.AutoMerge
	}
	return found(body)
}

func (r *GitHubRepository) compare(c *call) reply {
	base, head, ok := strings.Cut(c.PathValue("range"), "...")
	from, to := r.resolve(base), r.resolve(head)
	if !ok || from == "" || to == "" {
		return notFound
	}
	behind, ahead := r.count(to+".."+from), r.count(from+".."+to)
	status := "identical"
	switch {
	case behind > 0 && ahead > 0:
		status = "diverged"
	case behind > 0:
		status = "behind"
	case ahead > 0:
		status = "ahead"
	}
	return found(map[string]any{"status": status, "ahead_by": ahead, "behind_by": behind,
		"total_commits": ahead, "commits": []any{}})
}

func (r *GitHubRepository) createLabel(c *call) reply {
	if slices.Contains(r.labels, c.text("name")) {
		return invalid("Label", "name", "already_exists", "")
	}
	r.labels = append(r.labels, c.text("name"))
	return reply{status: http.StatusCreated, body: map[string]any{"name": c.text("name"), "color": c.text("color")}}
}

// invalid returns a 422 in GitHub's form.
func invalid(resource, field, code, message string) reply {
	problem := map[string]any{"resource": resource, "code": code}
	if field != "" {
		problem["field"] = field
	}
	if message != "" {
		problem["message"] = message
	}
	return reply{status: http.StatusUnprocessableEntity,
		body: map[string]any{"message": "Validation Failed", "errors": []any{problem}}}
}

// person is a user as the REST API shows one.
func person(login string) any {
	if login == "" {
		return nil
	}
	kind := "User"
	if strings.HasSuffix(login, "[bot]") {
		kind = "Bot"
	}
	return map[string]any{"login": login, "type": kind}
}
