package server

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kalypso-io/kalypso/internal/spelling"
)

// described answers what is not in the description of the API: addresses, methods, and parameters of
// questions. Somebody has misspelled them.
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
		if seen := r.Header.Values("If-None-Match"); len(seen) > 1 { // which is one list
			r.Header.Set("If-None-Match", strings.Join(seen, ", "))
		}
		next.ServeHTTP(w, r)
	})
}

// matches reports whether an address is one of a path, which has names in braces.
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

// nearest is a hint to an address like one that is not there.
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

// misspelled says which parameter an operation does not have; "" where it has all.
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
