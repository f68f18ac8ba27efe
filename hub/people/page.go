package people

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
)

// style is that of the pages, with colors that are those of all pages. They have no other file,
// since only who has signed in gets any.
const style = `:root{color-scheme:light dark}body{background:#fff;color:#17202b;font:1rem/1.5 system-ui,sans-serif;max-width:36rem;margin:15vh auto;padding:0 1rem;overflow-wrap:anywhere}` +
	`a{color:#0b57b5}a,button{font:inherit}@media (prefers-color-scheme:dark){body{background:#12171d;color:#e8edf3}a{color:#86b7ff}}`

var document = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Title}}</title>
<style>` + style + `</style>
</head>
<body>
<main>
<h1>{{.Title}}</h1>
<p>{{.Text}}</p>
{{if .Form}}<form method="post" action="{{.Link}}"><button>{{.Label}}</button></form>
<p><a href="/">Back</a></p>{{else}}<p><a href="{{.Link}}">{{.Label}}</a></p>{{end}}
</main>
</body>
</html>
`))

// policy lets a page have its style, and send its form to this hub.
var policy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
}()

type content struct {
	Title, Text, Link, Label string
	Form                     bool
}

// page answers with a text and a link.
func (p *People) page(w http.ResponseWriter, status int, title, text, link, label string) {
	p.write(w, status, content{title, text, link, label, false})
}

// form answers with a text and a button.
func (p *People) form(w http.ResponseWriter, title, text, link, label string) {
	p.write(w, http.StatusOK, content{title, text, link, label, true})
}

func (p *People) write(w http.ResponseWriter, status int, c content) {
	var b bytes.Buffer
	if err := document.Execute(&b, c); err != nil {
		p.failed(w, err)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy)
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes())
}

// over answers that a sign-in cannot be ended, or not once more.
func (p *People) over(w http.ResponseWriter) {
	const text = "This sign-in was not begun in this browser, or took more than ten minutes, or was done before."
	p.page(w, http.StatusBadRequest, "Not signed in", text, "/sign-in/", "Sign in")
}

// unreachable answers that the issuer does not.
func (p *People) unreachable(w http.ResponseWriter) {
	p.page(w, http.StatusServiceUnavailable, "Nobody can sign in now",
		p.Issuer+" does not answer as it should. The hub's log has the reason.", "/sign-in/", "Try again")
}

// failed answers that something of the hub's own failed.
func (p *People) failed(w http.ResponseWriter, err error) {
	p.Problem(fmt.Errorf("a sign-in failed: %w", err))
	http.Error(w, "the sign-in could not be kept: try again", http.StatusServiceUnavailable)
}
