package github

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"

	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/internal/server"
)

// deployment is one of the REST API.
type deployment struct {
	ID         int64           `json:"id"`
	SHA        string          `json:"sha"`
	Production bool            `json:"production_environment"`
	Payload    json.RawMessage `json:"payload"` // an object, or one as a string
}

// deploymentStates are GitHub's states.
var deploymentStates = map[forge.State]string{forge.Pending: "in_progress",
	forge.Success: "success", forge.Failure: "failure"}

// Deploy creates a deployment for a commit in an environment, and one status for each of
// its states. A success makes the environment's earlier ones inactive, which GitHub does
// itself only outside of production.
func (r *repo) Deploy(ctx context.Context, d forge.Deployment) error {
	var newest *deployment
	err := r.ensure(ctx,
		func() (bool, error) {
			var err error
			newest, err = r.newestDeployment(ctx, d.Environment)
			return newest != nil && newest.is(d), err
		},
		func() error {
			newest = &deployment{}
			// It is neither merged nor checked: it runs already.
			return r.send(ctx, write, http.MethodPost, "deployments", map[string]any{
				"ref": d.Commit.String(), "environment": d.Environment, "description": d.Description,
				"auto_merge": false, "required_contexts": []string{},
				"production_environment": d.Production, "transient_environment": false, "payload": payload(d),
			}, newest)
		})
	if err == nil && newest.ID <= 0 {
		err = errors.New("GitHub answers with something that is no deployment")
	}
	if err == nil {
		err = r.setDeployment(ctx, newest.ID, d)
	}
	if err != nil {
		return fmt.Errorf("recording the deployment to %s: %w", d.Environment, err)
	}
	return nil
}

// newestDeployment returns the newest deployment of an environment; nil for none.
func (r *repo) newestDeployment(ctx context.Context, environment string) (*deployment, error) {
	var got []deployment
	err := r.get(ctx, "deployments", values{"environment": environment, "per_page": "1"}, &got)
	if err != nil || len(got) == 0 {
		return nil, err
	}
	return &got[0], nil
}

// setDeployment adds a status to a deployment, if its newest one differs.
func (r *repo) setDeployment(ctx context.Context, id int64, d forge.Deployment) error {
	path := "deployments/" + strconv.FormatInt(id, 10) + "/statuses"
	return r.ensure(ctx,
		func() (bool, error) {
			var got []struct {
				State       string `json:"state"`
				Description string `json:"description"`
				URL         string `json:"log_url"`
			}
			err := r.get(ctx, path, values{"per_page": "1"}, &got)
			if err != nil || len(got) == 0 {
				return false, err
			}
			return got[0].State == deploymentStates[d.State] && got[0].URL == d.URL &&
				sameText(got[0].Description, d.Description), nil
		},
		func() error {
			return r.send(ctx, write, http.MethodPost, path, map[string]any{
				"state": deploymentStates[d.State], "description": d.Description, "log_url": d.URL, "auto_inactive": true,
			}, nil)
		})
}

func payload(d forge.Deployment) map[string]string {
	if d.Payload == nil {
		return map[string]string{}
	}
	return d.Payload
}

// is reports whether a deployment has the same commit and payload.
func (old *deployment) is(d forge.Deployment) bool {
	text := []byte(old.Payload)
	if quoted := ""; json.Unmarshal(text, &quoted) == nil {
		text = []byte(quoted)
	}
	had := map[string]string{}
	if len(text) > 0 && json.Unmarshal(text, &had) != nil {
		return false
	}
	return server.Hash(old.SHA) == d.Commit && old.Production == d.Production && maps.Equal(had, d.Payload)
}
