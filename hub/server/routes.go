package server

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kalypso-io/kalypso/hub/access"
	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/internal/spelling"
)

// described refuses misspelled requests: paths, methods and query parameters that the description
// of the API does not have.
func (s *server) described(next http.Handler) http.Handler {
	paths := s.api.OpenAPI().Paths
	all := slices.Sorted(maps.Keys(paths))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked := r.URL.EscapedPath()
		if asked != "/v1" && !strings.HasPrefix(asked, "/v1/") {
			next.ServeHTTP(w, r)
			return
		}
		i := slices.IndexFunc(all, func(path string) bool { return matches(path, asked) })
		if i < 0 {
			problem(w, http.StatusNotFound, "there is nothing at this address; "+nearest(asked, all))
			return
		}
		methods := methodsOf(paths[all[i]])
		names := slices.Sorted(maps.Keys(methods))
		op := methods[r.Method]
		if r.Method == http.MethodHead {
			op = methods[http.MethodGet]
		}
		if op == nil {
			w.Header().Set("Allow", strings.Join(names, ", "))
			problem(w, http.StatusMethodNotAllowed, "this address takes "+strings.Join(names, " and "))
			return
		}
		if detail := misspelled(op, r.URL.RawQuery); op.Method == http.MethodGet && detail != "" {
			problem(w, http.StatusUnprocessableEntity, detail)
			return
		}
		if seen := r.Header.Values("If-None-Match"); len(seen) > 1 { // several headers form one list
			r.Header.Set("If-None-Match", strings.Join(seen, ", "))
		}
		next.ServeHTTP(w, r)
	})
}

// matches reports whether an address matches a path, which has names in braces.
func matches(path, asked string) bool {
	is := strings.Split(asked, "/")
	for i, want := range strings.Split(path, "/") {
		if i >= len(is) {
			return false
		}
		if named := strings.HasPrefix(want, "{"); named && is[i] == "" || !named && want != is[i] {
			return false
		}
	}
	return strings.Count(path, "/") == strings.Count(asked, "/")
}

// nearest returns a hint to an existing path that is similar to an unknown one.
func nearest(asked string, all []string) string {
	if of, lacks := strings.CutSuffix(asked, "/"); lacks {
		for _, path := range all {
			if strings.HasPrefix(path, of+"/{") {
				return "name one: " + path
			}
		}
	}
	return spelling.DidYouMean(asked, all)
}

func methodsOf(item *huma.PathItem) map[string]*huma.Operation {
	out := map[string]*huma.Operation{}
	for _, op := range []*huma.Operation{item.Get, item.Post, item.Delete} {
		if op != nil {
			out[op.Method] = op
		}
	}
	return out
}

// misspelled returns an error message for the first parameter that an operation does not have. It
// returns "" if the operation has all of them.
func misspelled(op *huma.Operation, query string) string {
	given, err := url.ParseQuery(query)
	if err != nil {
		return "the parameters cannot be read"
	}
	var known []string
	for _, p := range op.Parameters {
		if p.In == "query" {
			known = append(known, p.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(known, name) {
			detail := "there is no parameter " + quote(fmt.Sprintf("%.40s", name))
			if hint := spelling.DidYouMean(name, known); hint != "" {
				detail += "; " + hint
			}
			return detail
		}
	}
	return ""
}

// raw registers and describes an operation that handles the request and the answer itself.
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
	return &huma.Param{Name: name, In: in, Description: doc,
		Schema: &huma.Schema{Type: huma.TypeString}}
}

// streams registers the answers that clients read line by line.
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
			OneOf: []*huma.Schema{s.schema(reflect.TypeFor[state.Row]()),
				s.schema(reflect.TypeFor[api.RolloutEnd]())},
		})}},
	}, s.rollout)
	s.raw(mux, huma.Operation{
		OperationID: "events", Method: http.MethodGet, Path: "/v1/events",
		Summary: "An event for each change, at most twice a second",
		Description: "The first one comes at once. The data of an event named change is an object with " +
			"the version, a text, which is another one after each change. Comments come while nothing " +
			"changes.",
		Responses: map[string]*huma.Response{"200": {Description: "Server-sent events.",
			Content: content("text/event-stream", &huma.Schema{Type: huma.TypeString})}},
	}, s.events)
}

// register registers the handlers of webhooks.
func (s receiver) register(mux *http.ServeMux) {
	for _, from := range senders() {
		op := huma.Operation{
			OperationID: "ingest-" + from.kind, Method: http.MethodPost, Path: "/v1/ingest/" + from.kind,
			Summary: "Take " + from.event,
			Description: "It is signed with a key that the hub has for it, or " +
				"comes with a token that may report.",
			Security: []map[string][]string{{"token": {}}, {}},
			RequestBody: &huma.RequestBody{Required: true, Content: content("application/json",
				&huma.Schema{Type: huma.TypeObject, AdditionalProperties: true})},
			Responses: map[string]*huma.Response{strconv.Itoa(
				from.accepted): {Description: "It was taken, or is about " +
				"nothing that the hub knows."}},
		}
		headers := from.signatures
		if from.token != "" {
			headers = append(headers, from.token)
		}
		for _, name := range headers {
			op.Parameters = append(op.Parameters, parameter("header", name, ""))
		}
		s.raw(mux, op, func(w http.ResponseWriter, r *http.Request) { s.receive(from, w, r) })
	}
}

// atOnce limits the assignments that are read while the fleet is locked, because a client may be
// slow.
const atOnce = 10_000

// rollout answers with each assignment that an environment wants on a cluster, a line each. The
// last line has the commit of the GitOps branch, which is the same for all lines.
func (s *server) rollout(w http.ResponseWriter, r *http.Request) {
	environments, err := s.sees(r.Context(), r.URL.Query().Get("environment"))
	if err != nil || len(environments) != 1 {
		problem(w, http.StatusForbidden, "name an environment that you may see")
		return
	}
	environment := environments[0]
	if !slices.ContainsFunc(s.Hub.Fleet().Environments(),
		func(w *state.DesiredState) bool { return w.Environment == environment }) {
		problem(w, http.StatusNotFound, "this hub knows no environment "+environment)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	lines := json.NewEncoder(w)
	filter := state.Filter{Environments: environments, Ring: r.URL.Query().Get("ring")}
	commit, after := "", state.Position{}
	for first := true; ; first = false {
		var rows []state.Row
		is := s.Hub.Fleet().Rollout(filter, after, func(row state.Row) bool {
			rows = append(rows, row)
			return len(rows) < atOnce
		})
		if !first && is != commit {
			return // the answer is cut off, and the client asks again
		}
		commit = is
		for i := range rows {
			if lines.Encode(&rows[i]) != nil {
				return
			}
		}
		if len(rows) < atOnce {
			break
		}
		after = rows[len(rows)-1].Position()
	}
	_ = lines.Encode(api.RolloutEnd{End: true, GitOps: commit})
}

// pause is the least time between two events.
const pause = 500 * time.Millisecond

// events reports changes as server-sent events. If nothing changes, a comment now and then shows
// whether the client is still connected.
func (s *server) events(w http.ResponseWriter, r *http.Request) {
	if _, err := allow(r.Context(), access.Viewer); err != nil {
		problem(w, http.StatusForbidden, err.Error())
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	flush := http.NewResponseController(w)
	beat := time.NewTicker(s.Beat)
	defer beat.Stop()
	version, changed := s.Hub.Version()
	for text := event(version); ; {
		if _, err := io.WriteString(w, text); err != nil || flush.Flush() != nil {
			return
		}
		select {
		case <-changed:
		case <-beat.C:
			text = ": waiting\n\n"
			continue
		case <-r.Context().Done():
			return
		}
		select {
		case <-time.After(pause):
		case <-r.Context().Done():
			return
		}
		version, changed = s.Hub.Version()
		text = event(version)
	}
}

func event(version uint64) string {
	return fmt.Sprintf("event: change\ndata: {\"version\":%q}\n\n", versionName(version))
}
