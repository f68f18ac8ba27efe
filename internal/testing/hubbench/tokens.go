//go:build unix

package main

import (
	"context"
	"net/http"
	"time"

	"github.com/kalypso-io/kalypso/hub/access"
	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/store"
)

// tokens are the tokens of the clusters. Each of them may only report about its cluster. Another
// token may read everything.
type tokens struct {
	clusters []string
	viewer   string
}

// makeTokens adds tokens to a database.
func makeTokens(ctx context.Context, o options) (*tokens, error) {
	s, err := store.Open(ctx, o.database)
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Close() }()
	made, kept := &tokens{}, []store.Token{}
	add := func(of api.Token) string {
		text, token := access.New(of, time.Now())
		kept = append(kept, token)
		return text
	}
	for i := range o.clusters {
		made.clusters = append(made.clusters, add(api.Token{Role: string(access.Cluster), Cluster: clusterName(i)}))
	}
	made.viewer = add(api.Token{Role: string(access.Viewer)})
	return made, s.AddTokens(ctx, kept...)
}

// do sends a request with a token.
func (p *process) do(r *http.Request, token string) (*http.Response, error) {
	r.Header.Set("Authorization", "Bearer "+token)
	return p.client.Do(r)
}
