package github_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"unicode"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/httpclient"
	"github.com/kalypso-io/kalypso/internal/testing/forgetest"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/github"
)

// every calls all methods that read or write.
func (w *world) every(ctx context.Context) map[string]error {
	out := map[string]error{}
	_, out["viewer"] = w.forge.Viewer(ctx)
	_, out["find"] = w.forge.FindChange(ctx, "promote", "prod")
	_, out["save"] = w.forge.SaveChange(ctx, spec())
	out["close"] = w.forge.CloseChange(ctx, 1, "x")
	out["comment"] = w.forge.Comment(ctx, 1, "x")
	_, out["merge"] = w.forge.Merge(ctx, 1, w.head, forge.MergeOptions{WhenAllowed: true})
	_, out["reviews"] = w.forge.Reviews(ctx, 1)
	_, out["statuses"] = w.forge.Statuses(ctx, []git.Hash{w.head})
	out["status"] = w.forge.SetStatus(ctx, w.head, forge.Status{Name: "x", State: forge.Success})
	out["deploy"] = w.forge.Deploy(ctx, forge.Deployment{Environment: "qa", Commit: w.head, State: forge.Success})
	return out
}

// A server may answer anything: it is an error, of one printable line without the
// token.
func TestHostileAnswers(t *testing.T) {
	token := forgetest.GitHub(t, "github.com").Token
	const evil = "\u001b[2J\u202e"
	for name, f := range map[string]forgetest.Fault{
		"no JSON":       {Status: 200, Body: "<html>"},
		"another type":  {Status: 200, Body: `"text"`},
		"wrong types":   {Status: 200, Body: `[{"number":"one","state":{},"context":[],"user":"x","id":"y"}]`},
		"cut off":       {Status: 200, Body: `[{"number":1`},
		"deep":          {Status: 200, Body: strings.Repeat("[", 100000)},
		"long error":    {Status: 400, Body: `{"message":"` + strings.Repeat("x", 1<<20) + `"}`},
		"teapot":        {Status: 418, Body: `{"message":"` + evil + `","errors":[1,"` + evil + `",{"message":"` + token + `"},null]}`},
		"forbidden":     {Status: 403, Body: `{"message":"` + evil + token + `"}`, Header: map[string]string{"X-Accepted-GitHub-Permissions": "\u202e" + token}},
		"unauthorized":  {Status: 401, Body: `{"message":"` + evil + token + `"}`},
		"unprocessable": {Status: 422, Body: `{"message":"` + evil + token + `","errors":{}}`},
		"redirect":      {Status: 301, Header: map[string]string{"Location": "https://evil.example/" + token}},
		"redirect post": {Status: 303, Header: map[string]string{"Location": "/user"}},
		"loop":          {Status: 302, Header: map[string]string{"Location": "/repos/acme/fleet/pulls"}},
		"not modified":  {Status: 304},
		"GraphQL":       {Status: 200, Body: `{"errors":[{"type":"` + evil + token + `","message":"` + evil + token + `"}]}`},
		"server error":  {Status: 500, Body: evil + token},
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t, "github.com")
			f.Times = 1000
			w.Inject(f)
			for call, err := range w.every(t.Context()) {
				if err == nil {
					t.Errorf("%s believes it", call)
					continue
				}
				text := fmt.Sprintf("%v %+v", err, err)
				if auth := (*forge.AuthError)(nil); errors.As(err, &auth) {
					text += auth.Problem + auth.Hint
				}
				if strings.Contains(text, token) || len(text) > 3000 || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
					t.Errorf("%s: %.300q", call, text)
				}
			}
			for _, r := range w.Log() {
				if r.Host != "api.github.com" {
					t.Errorf("%s goes to %s", r, r.Host)
				}
			}
		})
	}
}

// An endless body is not read to its end, and not requested again.
func TestHostileLength(t *testing.T) {
	w := start(t, "github.com")
	w.Inject(forgetest.Fault{Status: 200, Body: "[" + strings.Repeat(" ", 17<<20) + "]"})
	_, err := w.forge.FindChange(t.Context(), "promote", "prod")
	if tooLong := (*httpclient.TooLongError)(nil); !errors.As(err, &tooLong) || len(w.Log()) != 1 {
		t.Error(err)
	}
}

// An answer without a pull request or a deployment does not count as a new one.
func TestHostileCreation(t *testing.T) {
	for _, body := range []string{"", "{}", "[]", `{"number":-1,"id":-1}`, `{"number":1,"state":"open","head":{"sha":"main"}}`} {
		w := start(t, "github.com")
		w.Inject(forgetest.Fault{Method: "POST", Path: "/repos/*", Status: 201, Body: body, Times: 9})
		if got, err := w.forge.SaveChange(t.Context(), spec()); err == nil {
			t.Errorf("%s: %+v", body, got)
		}
		if err := w.forge.Deploy(t.Context(), forge.Deployment{Environment: "qa", Commit: w.head, State: forge.Success}); err == nil {
			t.Errorf("%s is a deployment", body)
		}
		if n := w.Count("", "/repos/acme/fleet/deployments/*"); n > 0 {
			t.Errorf("%s: %v", body, w.Log())
		}
	}
}

// A pull request with the wrong number is rejected.
func TestHostileNumber(t *testing.T) {
	w := start(t, "github.com")
	number := w.save(t).Number
	w.Inject(forgetest.Fault{Method: "GET", Path: "/repos/acme/fleet/pulls/7777", Status: 200,
		Body: fmt.Sprintf(`{"number":%d,"node_id":"PR_1","state":"open","head":{"sha":"%s"},"base":{"ref":"prod"}}`, number, w.head)})
	if err := w.forge.CloseChange(t.Context(), 7777, ""); err == nil || w.Count("PATCH", "") > 0 {
		t.Error(err)
	}
}

// A list's next page must be on the same server, and lists must end.
func TestHostileLinks(t *testing.T) {
	for link, want := range map[string]string{
		`<https://evil.example/repos?page=2>; rel="next"`:                 "another server",
		`<http://api.github.com/repos/acme/fleet/pulls>; rel="next"`:      "another server",
		`<https://x@api.github.com/repos/acme/fleet/pulls>; rel="next"`:   "another server",
		`<https://api.github.com:444/repos/acme/fleet/pulls>; rel="next"`: "another server",
		`<://>; rel="next"`: "another server",
		`<https://api.github.com/repos/acme/fleet/pulls?page=2>; rel="next"`: "more than 100 pages",
		`nonsense, <>;, <https://evil.example>; rel="last"`:                  "",
	} {
		w := start(t, "github.com")
		w.Inject(forgetest.Fault{Status: 200, Body: "[]", Times: 200, Header: map[string]string{"Link": link}})
		got, err := w.forge.FindChange(t.Context(), "promote", "prod")
		if got != nil || (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", link, err)
		}
	}
}

// If an answer is not HTTP, net/http quotes it. The package removes the token from it.
func TestHostileProtocol(t *testing.T) {
	t.Chdir(t.TempDir()) // the path of a socket may not be long
	const socket = "s"
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = http.ReadRequest(bufio.NewReader(c))
			_, _ = c.Write([]byte("\x1b[2Jsecret-token\r\n\r\n"))
			_ = c.Close()
		}
	}()
	clock := forgetest.NewClock()
	f, err := github.New("github.com", "acme", "fleet", github.Options{Token: "secret-token", Socket: socket, Now: clock.Now, Wait: clock.Wait})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Viewer(t.Context()); err == nil || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("%q", err)
	}
}

// A redirect to a renamed repository is followed if the request keeps its meaning.
func TestRedirect(t *testing.T) {
	w := start(t, "github.com")
	c := w.save(t)
	w.Inject(forgetest.Fault{Method: "GET", Status: 301, Header: map[string]string{"Location": fmt.Sprintf("https://api.github.com/repositories/%d/pulls?head=acme:promote", w.repo.ID)}})
	if got, err := w.forge.FindChange(t.Context(), "promote", "prod"); got == nil || got.Number != c.Number || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	w.Inject(forgetest.Fault{Method: "POST", Path: "/repos/*", Status: 301, Header: map[string]string{"Location": "https://api.github.com/repos/acme/fleet"}})
	if err := w.forge.SetStatus(t.Context(), w.head, forge.Status{Name: "x", State: forge.Success}); err == nil || !strings.Contains(err.Error(), "301") {
		t.Errorf("a write that became a read: %v", err)
	}
}
