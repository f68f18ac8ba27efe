package server

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kalypso-io/kalypso/hub/access"
)

// Fresh are the parameters of what changes: a client that has seen a version gets 304, or waits
// for the next one.
type Fresh struct {
	IfNoneMatch string `header:"If-None-Match" doc:"The ETag of the last answer: 304 where nothing has changed since. Some with commas between, and *, are as in RFC 9110."`
	Wait        int    `query:"wait" minimum:"0" maximum:"60" doc:"With If-None-Match: wait so many seconds for a change."`
}

// seen reports whether a client has seen a version, by the weak comparison of RFC 9110, section 8.8.3.2.
func (f *Fresh) seen(tag string) bool {
	for one := range strings.SplitSeq(f.IfNoneMatch, ",") {
		if one = strings.TrimSpace(one); one == "*" || strings.TrimPrefix(one, "W/") == strings.TrimPrefix(tag, "W/") {
			return true
		}
	}
	return false
}

// answer is an answer with its version.
type answer[T any] struct {
	ETag string `header:"ETag"`
	Body T
}

// etag is the name of a version, for one who asks: people see different parts. It is weak: answers say
// what time it is, too.
func etag(version uint64, i *access.Identity) string {
	scope := ""
	if i != nil {
		scope = strings.Join(i.Scope(access.Viewer), "/")
	}
	return "W/" + strconv.Quote(versionName(version)+"-"+scope)
}

// versionName is a version as clients see it: a number would lose digits in JavaScript.
func versionName(version uint64) string { return strconv.FormatUint(version, 36) }

// check returns the version to answer with, or the answer that nothing has changed.
func (s *server) check(ctx context.Context, f Fresh) (string, error) {
	timer := time.NewTimer(time.Duration(f.Wait) * time.Second)
	defer timer.Stop()
	for {
		version, changed := s.Hub.Version()
		is := etag(version, who(ctx))
		if !f.seen(is) {
			return is, nil
		}
		unchanged := huma.ErrorWithHeaders(huma.Status304NotModified(), http.Header{"Etag": {is}})
		if f.Wait <= 0 {
			return "", unchanged
		}
		select {
		case <-changed:
		case <-timer.C:
			return "", unchanged
		case <-ctx.Done():
			return "", unchanged
		}
	}
}
