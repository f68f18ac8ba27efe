package server

import (
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/state"
)

// raw registers an operation that reads and writes as it likes, and describes it.
func (s *server) raw(mux *http.ServeMux, op huma.Operation, handler http.HandlerFunc) {
	mux.HandleFunc(op.Method+" "+op.Path, handler)
	op.Responses["default"] = &huma.Response{Description: "Error",
		Content: content("application/problem+json", s.schema(reflect.TypeFor[huma.ErrorModel]()))}
	s.api.OpenAPI().AddOperation(&op)
}

// schema returns the schema of a type, in the description.
func (s *server) schema(of reflect.Type) *huma.Schema {
	return s.api.OpenAPI().Components.Schemas.Schema(of, true, "")
}

func content(kind string, schema *huma.Schema) map[string]*huma.MediaType {
	return map[string]*huma.MediaType{kind: {Schema: schema}}
}

// parameter describes a text that is sent in the query, or in a header.
func parameter(in, name, doc string) *huma.Param {
	return &huma.Param{Name: name, In: in, Description: doc, Schema: &huma.Schema{Type: huma.TypeString}}
}

// streams registers answers that are read line by line.
func (s *server) streams(mux *http.ServeMux) {
	s.raw(mux, huma.Operation{
		OperationID: "rollout", Method: http.MethodGet, Path: "/v1/rollout",
		Summary: "All assignments on clusters of an environment, at one moment",
		Description: "Promotion's gate reads it. The last line has end; without it, the answer is cut " +
			"off, and is to be asked for again.",
		Parameters: []*huma.Param{parameter("query", "environment", "It may be absent where who asks "+
			"sees one alone."), parameter("query", "ring", "")},
		Responses: map[string]*huma.Response{"200": {Description: "A line of JSON for each assignment " +
			"on a cluster, and one for the end.", Content: content("application/x-ndjson", &huma.Schema{
			OneOf: []*huma.Schema{s.schema(reflect.TypeFor[state.Row]()), s.schema(reflect.TypeFor[api.RolloutEnd]())},
		})}},
	}, s.rollout)
	s.raw(mux, huma.Operation{
		OperationID: "events", Method: http.MethodGet, Path: "/v1/events",
		Summary: "An event for each change, at most twice a second",
		Description: "The first one comes at once. The data of an event named change is an object with " +
			"the version, a text, which is another one after each change. Comments come while nothing changes.",
		Responses: map[string]*huma.Response{"200": {Description: "Server-sent events.",
			Content: content("text/event-stream", &huma.Schema{Type: huma.TypeString})}},
	}, s.events)
}

// webhooks registers what others send by themselves.
func (s *server) webhooks(mux *http.ServeMux) {
	for _, hook := range []struct {
		kind, summary, taken string
		headers              []string
		handler              http.HandlerFunc
	}{
		{"flux", "Take an event of Flux's notification-controller", "204", []string{"X-Signature"}, s.flux},
		{"argocd", "Take a notification of Argo CD, as docs/hub.md has it", "204",
			[]string{"X-Signature", "X-Hub-Signature-256"}, s.argocd},
		{"forge", "Take a push event of a forge: branches are read at once", "202",
			[]string{"X-Hub-Signature-256", "X-Gitea-Signature", "X-Forgejo-Signature", "X-Gitlab-Token"}, s.forge},
	} {
		op := huma.Operation{
			OperationID: "ingest-" + hook.kind, Method: http.MethodPost, Path: "/v1/ingest/" + hook.kind,
			Summary: hook.summary, Description: "It is signed with a key that the hub has for it, or " +
				"comes with a token that may report.",
			Security: []map[string][]string{{"token": {}}, {}},
			RequestBody: &huma.RequestBody{Required: true, Content: content("application/json",
				&huma.Schema{Type: huma.TypeObject, AdditionalProperties: true})},
			Responses: map[string]*huma.Response{hook.taken: {Description: "It was taken, or is about " +
				"nothing that the hub knows."}},
		}
		for _, name := range hook.headers {
			op.Parameters = append(op.Parameters, parameter("header", name, ""))
		}
		s.raw(mux, op, hook.handler)
	}
}
