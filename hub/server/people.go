package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kalypso-io/kalypso/hub/access"
	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/internal/terminal"
)

// administration has the operations of administrators, who create, list and revoke tokens, and read
// the audit. It has no state of its own, so it is a value.
type administration struct{ *server }

// register registers the operations on tokens, and the audit.
func (a administration) register() {
	huma.Register(a.api, huma.Operation{OperationID: "new-token", Method: http.MethodPost,
		Path: "/v1/tokens", Summary: "Make a token", Description: "Its secret is in this answer, and " +
			"nowhere else.", DefaultStatus: http.StatusCreated}, a.newToken)
	huma.Register(a.api, huma.Operation{OperationID: "tokens", Method: http.MethodGet,
		Path: "/v1/tokens", Summary: "All tokens, without their secrets"}, a.getTokens)
	huma.Register(a.api, huma.Operation{OperationID: "revoke-token", Method: http.MethodDelete,
		Path: "/v1/tokens/{id}", Summary: "End a token", DefaultStatus: http.StatusNoContent},
		a.revokeToken)
	huma.Register(a.api, huma.Operation{OperationID: "audit", Method: http.MethodGet,
		Path: "/v1/audit", Summary: "Who did what at this hub, the newest first"}, a.getAudit)
}

// newToken creates a token.
func (a administration) newToken(ctx context.Context,
	in *body[api.NewToken]) (*body[api.Token], error) {
	i, err := allow(ctx, access.Admin)
	if err != nil {
		return nil, err
	}
	if a.Tokens == nil {
		return nil, huma.Error422UnprocessableEntity(
			"this hub is for this machine alone, and knows no tokens")
	}
	of := in.Body
	switch {
	case (of.Role == string(access.Cluster)) != (of.Cluster != ""):
		return nil, huma.Error422UnprocessableEntity(
			"a token of role cluster names its cluster, and no other does")
	case terminal.Line(of.Cluster) != of.Cluster || terminal.Line(of.Environment) != of.Environment:
		return nil, huma.Error422UnprocessableEntity("the name of the cluster or of the environment " +
			"has what cannot be printed")
	case !i.MayIn(access.Admin, of.Environment):
		return nil, huma.Error403Forbidden(fmt.Sprintf("%s makes tokens for environment %s alone", i.Name,
			strings.Join(i.Scope(access.Admin), ", ")))
	}
	t := api.Token{Role: of.Role, Cluster: of.Cluster, Environment: of.Environment,
		Note: terminal.Line(of.Note), MadeBy: i.Name}
	if of.Days > 0 {
		t.Expires = a.Hub.Now().Add(time.Duration(of.Days) * 24 * time.Hour)
	}
	made, err := a.Tokens.Make(ctx, t)
	if err != nil {
		return nil, unavailable()
	}
	if err := a.audit(ctx, "make token", made.ID, of.Role+" "+of.Cluster+of.Environment); err != nil {
		return nil, unavailable()
	}
	var known []string
	for _, w := range a.Hub.Fleet().Environments() {
		if i.Scope(access.Admin).Has(w.Environment) {
			known = append(known, w.Environment)
		}
	}
	made.Warning = access.Absent(of.Environment, known)
	return &body[api.Token]{made}, nil
}

// tokenPosition is the position of a token in the list, the newest first.
type tokenPosition struct {
	Made int64 // in milliseconds
	ID   string
}

// getTokens lists tokens.
func (a administration) getTokens(ctx context.Context,
	in *struct{ Page }) (*body[api.Tokens], error) {
	i, err := allow(ctx, access.Admin)
	if err != nil {
		return nil, err
	}
	var after tokenPosition
	there, err := in.read(&after)
	if err != nil || there && after.ID == "" {
		return nil, errCursor()
	}
	all, err := a.Hub.Store().Tokens(ctx)
	if err != nil {
		return nil, unavailable()
	}
	out := api.Tokens{Tokens: []api.Token{}}
	for _, t := range all {
		made := t.Made.UnixMilli()
		if there && (made > after.Made || made == after.Made && t.ID <= after.ID) ||
			!i.MayIn(access.Admin, t.Environment) {
			continue
		}
		if len(out.Tokens) == in.Limit {
			last := &out.Tokens[in.Limit-1]
			out.Next = cursorOf(tokenPosition{last.Made.UnixMilli(), last.ID})
			break
		}
		out.Tokens = append(out.Tokens, t.Token)
	}
	return &body[api.Tokens]{out}, nil
}

// tokenQuestion are the parameters of revokeToken.
type tokenQuestion struct {
	ID string `path:"id" maxLength:"64"`
}

// revokeToken ends a token.
func (a administration) revokeToken(ctx context.Context, in *tokenQuestion) (*struct{}, error) {
	i, err := allow(ctx, access.Admin)
	if err != nil {
		return nil, err
	}
	t, there, err := a.Hub.Store().Token(ctx, in.ID)
	if err != nil {
		return nil, unavailable()
	}
	if !there || a.Tokens == nil || !i.MayIn(access.Admin, t.Environment) {
		return nil, huma.Error404NotFound("there is no token " + in.ID)
	}
	if ended, err := a.Tokens.Revoke(ctx, in.ID); err != nil || !ended {
		if err != nil {
			return nil, unavailable()
		}
		return nil, huma.Error404NotFound("token " + in.ID + " has ended before")
	}
	if err := a.audit(ctx, "revoke token", in.ID, ""); err != nil {
		return nil, unavailable()
	}
	return nil, nil
}

// getAudit lists the audit.
func (a administration) getAudit(ctx context.Context,
	in *struct{ Page }) (*body[api.Events], error) {
	i, err := allow(ctx, access.Admin)
	if err != nil {
		return nil, err
	}
	if !i.Audits() {
		return nil, huma.Error403Forbidden("the audit is of all environments, and " + i.Name +
			" is admin of " + strings.Join(i.Scope(access.Admin), ", "))
	}
	before, err := in.beforeNumber()
	if err != nil {
		return nil, err
	}
	rows, err := a.Hub.Store().Events(ctx, before, in.Limit+1)
	if err != nil {
		return nil, unavailable()
	}
	out := api.Events{Events: rows}
	if len(rows) > in.Limit {
		out.Events = rows[:in.Limit]
		out.Next = cursorOf(rows[in.Limit-1].Number)
	}
	return &body[api.Events]{out}, nil
}
