package forgetest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// GitHubServer plays github.com, a tenant of ghe.com or a GitHub Enterprise Server.
// Any number of goroutines may use it.
type GitHubServer struct {
	Server
	Host string
	// Token is the token of the user kalypso[bot], whom the server knows from the start.
	Token string

	t     testing.TB
	state sync.Mutex // of all below, and of the repositories
	users map[string]string
	repos []*GitHubRepository
	ids   int64
	lag   int
}

// GitHub starts a server for a host, which ends with the test.
func GitHub(t testing.TB, host string) *GitHubServer {
	t.Helper()
	s := &GitHubServer{Host: host, t: t, users: map[string]string{}}
	s.Token = s.AddUser("kalypso[bot]")
	routes := http.NewServeMux()
	s.route(routes)
	s.start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.answer(routes, w, r) }), s.name)
	return s
}

// isEnterprise reports whether the host is a server of somebody's own, whose APIs are
// at other paths.
func (s *GitHubServer) isEnterprise() bool {
	return s.Host != "github.com" && !strings.HasSuffix(s.Host, ".ghe.com")
}

// apiHost returns the host of the APIs.
func (s *GitHubServer) apiHost() string {
	if s.isEnterprise() {
		return s.Host
	}
	return "api." + s.Host
}

// Env returns the environment of a kalypso command that uses this server in place of the real one
// for its host.
func (s *GitHubServer) Env() []string {
	dir := filepath.Join(s.Dir, "gh")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.yml"),
		[]byte("version: \"1\"\nhttp_unix_socket: "+s.Socket+"\n"), 0o644); err != nil {
		s.t.Fatal(err)
	}
	token := "GH_TOKEN="
	if s.isEnterprise() {
		token = "GH_ENTERPRISE_TOKEN="
	}
	return []string{"GH_CONFIG_DIR=" + dir, "GH_HOST=" + s.Host, "GH_PATH=/nonexistent", "GITHUB_TOKEN=", token + s.Token}
}

// AddUser makes a user, or an app whose name ends with [bot], and returns a token.
func (s *GitHubServer) AddUser(login string) (token string) {
	s.state.Lock()
	defer s.state.Unlock()
	sum := sha256.Sum256([]byte(login))
	token = "ghs_" + hex.EncodeToString(sum[:16])
	s.users[token] = login
	return token
}

// Lag makes the server leave new objects out of lists, for the next n lists of their kind.
func (s *GitHubServer) Lag(n int) {
	s.state.Lock()
	defer s.state.Unlock()
	s.lag = n
}

// id is a new number; the state is locked.
func (s *GitHubServer) id() int64 {
	s.ids++
	return s.ids
}

// name is a request's path in the log: below the API's root, with the operation of
// GraphQL.
func (s *GitHubServer) name(r *http.Request, body []byte) string {
	path := strings.TrimPrefix(r.URL.EscapedPath(), "/api/v3")
	if path = strings.TrimPrefix(path, "/api"); path != "/graphql" {
		return path
	}
	var in struct{ OperationName string }
	_ = json.Unmarshal(body, &in)
	return path + "/" + in.OperationName
}

// call is a request of somebody known.
type call struct {
	*http.Request
	login string
	in    map[string]any
}

func (c *call) text(key string) string {
	text, _ := c.in[key].(string)
	return text
}

func (c *call) number() int {
	n, _ := strconv.Atoi(c.PathValue("number"))
	return n
}

// reply is an answer: a body, or a list that is shown in pages, under a key or by
// itself.
type reply struct {
	status int
	body   any
	list   []any
	key    string
}

func fail(status int, message string) reply {
	return reply{status: status,
		body: map[string]any{"message": message, "documentation_url": "https://docs.github.com/rest"}}
}

func found(body any) reply { return reply{status: http.StatusOK, body: body} }

var notFound = fail(http.StatusNotFound, "Not Found")

// answer determines the user and the path of a request, and sends the answer.
func (s *GitHubServer) answer(routes http.Handler, w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("X-RateLimit-Remaining", "4999")
	w.Header().Set("X-RateLimit-Reset", strconv.FormatInt(s.Clock.Now().Unix()+3600, 10))
	root := ""
	if s.isEnterprise() {
		root = "/api/v3"
		if r.URL.Path == "/api/graphql" {
			root = "/api"
		}
	}
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), root)
	if r.Host != s.apiHost() || !ok {
		s.write(w, r, fail(http.StatusNotFound, "no such host or path: "+r.Host+r.URL.Path))
		return
	}
	if rest, ok := strings.CutPrefix(path, "/repositories/"); ok { // as in links to other pages
		id, rest, _ := strings.Cut(rest, "/")
		if repo := s.repoByID(id); repo != nil {
			path = "/repos/" + repo.Owner + "/" + repo.Name + "/" + rest
		}
	}
	r.URL.Path, r.URL.RawPath = unescaped(path), path
	routes.ServeHTTP(w, r)
}

func unescaped(path string) string {
	out, err := url.PathUnescape(path)
	if err != nil {
		return path
	}
	return out
}

// handle makes a handler of a function, which is called with the state locked.
func (s *GitHubServer) handle(do func(*call) reply) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := &call{Request: r, in: map[string]any{}}
		_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		s.state.Lock()
		defer s.state.Unlock()
		login, known := s.users[token]
		if c.login = login; !known {
			s.write(w, r, fail(http.StatusUnauthorized, "Bad credentials"))
			return
		}
		body, err := io.ReadAll(r.Body)
		if err == nil && len(body) > 0 {
			err = json.Unmarshal(body, &c.in)
		}
		if err != nil {
			s.write(w, r, fail(http.StatusBadRequest, "Problems parsing JSON"))
			return
		}
		s.write(w, r, do(c))
	}
}

// write sends an answer, a page of it, or that it has not changed.
func (s *GitHubServer) write(w http.ResponseWriter, r *http.Request, out reply) {
	body := out.body
	if out.list != nil {
		page := s.page(w, r, out.list)
		if body = page; out.key != "" {
			body = map[string]any{"total_count": len(out.list), out.key: page}
		}
	}
	if out.status == http.StatusNoContent {
		w.WriteHeader(out.status)
		return
	}
	text, err := json.Marshal(body)
	if err != nil {
		s.t.Error(err)
	}
	if r.Method == http.MethodGet && out.status == http.StatusOK {
		sum := sha256.Sum256(text)
		tag := `W/"` + hex.EncodeToString(sum[:]) + `"`
		w.Header().Set("Etag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	w.WriteHeader(out.status)
	_, _ = w.Write(text) // to memory
}

// page returns the requested part of a list, and adds a link to the next part.
func (s *GitHubServer) page(w http.ResponseWriter, r *http.Request, list []any) []any {
	query := r.URL.Query()
	size, number := 30, 1
	if n, err := strconv.Atoi(query.Get("per_page")); err == nil && n > 0 {
		size = min(n, 100)
	}
	if n, err := strconv.Atoi(query.Get("page")); err == nil && n > 0 {
		number = n
	}
	if number*size < len(list) {
		query.Set("page", strconv.Itoa(number+1))
		path := r.URL.Path
		if repo := s.repo(r.PathValue("owner"), r.PathValue("name")); repo != nil {
			path = fmt.Sprintf("/repositories/%d%s", repo.ID, strings.TrimPrefix(path, "/repos/"+repo.Owner+"/"+repo.Name))
		}
		if s.isEnterprise() {
			path = "/api/v3" + path
		}
		next := url.URL{Scheme: "https", Host: s.apiHost(), Path: path, RawQuery: query.Encode()}
		w.Header().Set("Link", fmt.Sprintf(`<%s>; rel="next", <%s>; rel="last"`, &next, &next))
	}
	from, to := min((number-1)*size, len(list)), min(number*size, len(list))
	return list[from:to]
}
