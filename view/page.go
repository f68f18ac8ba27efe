package view

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// pageSize is how many rows of a list a page of the server has.
const pageSize = 200

// page is a page before it is rendered: its address, its title and the template that shows
// its data.
type page struct {
	Path     string // as path makes it
	Title    string
	Template string
	Data     any
}

// path returns the path of a page: / and its segments, each escaped.
func path(segments ...string) string {
	out := make([]string, len(segments))
	for i, s := range segments {
		out[i] = url.PathEscape(s)
	}
	return "/" + strings.Join(out, "/")
}

// pathOf is the path of the page of an assignment.
func pathOf(a AssignmentRow) string {
	return path("assignments", a.Environment, a.ClusterType, a.Target)
}

// find returns the page with an escaped path. The parameters are q, a text for lists to
// contain, page, a number, since, a revision, and ring. all says that lists are whole.
func find(ctx context.Context, s Source, escaped string, parameters url.Values, all bool) (*page,
	error) {
	segments := strings.Split(strings.TrimPrefix(escaped, "/"), "/")
	for i, segment := range segments {
		plain, err := url.PathUnescape(segment)
		if err != nil {
			return nil, noPage(escaped)
		}
		segments[i] = plain
	}
	p := Page{Number: 1, Size: pageSize}
	if all {
		p.Size = 0
	} else if n, err := strconv.Atoi(parameters.Get("page")); err == nil && n > 0 {
		p.Number = n
	}
	if o, is := s.(Observer); is {
		if page, err := observed(ctx, o, segments, parameters, p); page != nil || err != nil {
			return page, err
		}
	}
	out := &page{Path: path(segments...), Template: segments[0],
		Title: strings.Join(segments[min(1, len(segments)-1):], " / ")}
	var err error
	switch q := parameters.Get("q"); {
	case is(segments, "", 0):
		out.Template, out.Title = "fleet", "Fleet"
		out.Data, err = s.Fleet(ctx, q, p)
	case is(segments, "environments", 1):
		out.Data, err = s.Environment(ctx, segments[1])
	case is(segments, "workloads", 1):
		out.Data, err = s.Workload(ctx, segments[1], p)
	case is(segments, "assignments", 3):
		out.Data, err = s.Assignment(ctx, segments[1], segments[2], segments[3])
	case is(segments, "cluster-types", 2):
		out.Data, err = s.ClusterType(ctx, segments[1], segments[2], p)
	case is(segments, "clusters", 1):
		out.Title = "Clusters of " + segments[1]
		out.Data, err = s.Clusters(ctx, segments[1], q, p)
	case is(segments, "clusters", 2):
		out.Template = "cluster"
		out.Data, err = s.Cluster(ctx, segments[1], segments[2])
	case is(segments, "policies", 1):
		out.Title = "Scheduling policies of " + segments[1]
		out.Data, err = s.Policies(ctx, segments[1], parameters.Get("ring"))
	case is(segments, "configs", 1):
		out.Title = "Configuration graph of " + segments[1]
		out.Data, err = s.Configs(ctx, segments[1], parameters.Get("ring"))
	case is(segments, "diagnostics", 0):
		out.Title = "Diagnostics"
		out.Data, err = s.Diagnostics(ctx)
	case is(segments, "search", 0):
		out.Title = "Search"
		out.Data, err = s.Search(ctx, q, pageSize)
	case is(segments, "compare", 2):
		out.Title = fmt.Sprintf("%s compared with %s", segments[1], segments[2])
		out.Data, err = s.Compare(ctx, segments[1], segments[2])
	case is(segments, "changes", 0):
		out.Title = "Changes"
		out.Data, err = s.Changes(ctx, parameters.Get("since"))
	default:
		return nil, noPage(escaped)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// is reports whether segments are a first one and so many names.
func is(segments []string, first string, names int) bool {
	return segments[0] == first && len(segments) == 1+names
}

func noPage(path string) error { return &NotFoundError{"there is no page " + path} }
