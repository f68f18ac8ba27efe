package view

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

//go:embed assets
var assetFiles embed.FS

// policy lets a page load and run only the server's own files.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// Handler serves the pages of the feed's source. When the feed has a new source, open pages
// learn of it and show it. It is for a server on a loopback address without access control. It
// answers only requests to a loopback name, so that no page of the web can read it through a
// name of its own.
func Handler(f *Feed) http.Handler { return onLoopback(ObserverHandler(f, "/rollouts/")) }

// ObserverHandler is Handler for a source that may be an Observer, behind a server that
// authenticates requests. Pages have no links to pages whose paths begin with one of the
// given prefixes.
func ObserverHandler(f *Feed, without ...string) http.Handler {
	h := &handler{feed: f}
	h.renderer = newRenderer(links{
		page: func(path string) string {
			if slices.ContainsFunc(without,
				func(prefix string) bool { return strings.HasPrefix(path, prefix) }) {
				return ""
			}
			return path
		},
		assignment: pathOf,
	})
	assets, _ := fs.Sub(assetFiles, "assets") // embedded
	mux := http.NewServeMux()
	mux.Handle("GET /assets/", http.StripPrefix("/assets/", http.FileServerFS(assets)))
	mux.HandleFunc("GET /assets/style.css", func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "style.css", time.Time{}, strings.NewReader(style()))
	})
	mux.HandleFunc("GET /events", h.events)
	mux.HandleFunc("GET /", h.page)
	return secured(mux)
}

// onLoopback refuses requests to other names than loopback.
func onLoopback(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLoopback(r.Host) {
			http.Error(w, "this server answers only on the address that it listens on", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// secured restricts the rights of pages.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cache-Control", "no-cache")
		next.ServeHTTP(w, r)
	})
}

// isLoopback reports whether a host, with or without a port, is this machine by any of its
// names.
func isLoopback(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	ip := net.ParseIP(name)
	return name == "localhost" || ip != nil && ip.IsLoopback()
}

type handler struct {
	feed     *Feed
	renderer *renderer
}

// document is the data of the template of a whole page.
type document struct {
	*PageData
	Page       *page
	Body       template.HTML
	Generation int // of the source
}

func (h *handler) page(w http.ResponseWriter, r *http.Request) {
	source, generation, failure, done := h.feed.use()
	defer done()
	if source == nil {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "nothing is compiled yet", http.StatusServiceUnavailable)
		return
	}
	status := http.StatusOK
	p, err := find(r.Context(), source, r.URL.EscapedPath(), r.URL.Query(), false)
	var missing *NotFoundError
	problem := &RingError{Err: err}
	errors.As(err, &problem)
	switch {
	case errors.As(err, &missing):
		status, p = http.StatusNotFound, &page{Title: "Not found", Template: "error", Data: problem}
	case r.Context().Err() != nil:
		return // the client has gone
	case err != nil:
		status, p = http.StatusInternalServerError,
			&page{Title: "Error", Template: "error", Data: problem}
	}
	var out bytes.Buffer
	about, err := source.PageData(r.Context())
	if err == nil {
		current := *about
		current.Failure = cmp.Or(failure, current.Failure)
		err = h.write(&out, document{PageData: &current, Page: p, Generation: generation})
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(out.Bytes()) // who reads it may be gone
}

func (h *handler) write(out *bytes.Buffer, d document) (err error) {
	if d.Body, err = h.renderer.html(d.Page); err != nil {
		return err
	}
	return h.renderer.templates.ExecuteTemplate(out, "document", d)
}

// events sends an event for each generation of the data, as long as a page is open. A
// comment now and then shows whether the page is still there.
func (h *handler) events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	for generation := 0; ; {
		const beat = 20 * time.Second
		ctx, cancel := context.WithTimeout(r.Context(), beat)
		next := h.feed.next(ctx, generation)
		cancel()
		if r.Context().Err() != nil {
			return
		}
		message := ": waiting\n\n"
		if next != generation {
			generation, message = next, fmt.Sprintf("event: generation\ndata: %d\n\n", next)
		}
		if _, err := w.Write([]byte(message)); err != nil || out.Flush() != nil {
			return
		}
	}
}
