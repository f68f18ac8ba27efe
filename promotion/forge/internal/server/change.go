package server

import (
	"context"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/internal/lazyregexp"
)

// Drafts is how a forge marks change requests as drafts: in their titles.
type Drafts struct {
	Prefix  string            // of titles that are written
	Pattern lazyregexp.Regexp // matches the prefixes of titles that are read
}

// Title returns a title with the prefix of a draft, or without any.
func (d Drafts) Title(title string, draft bool) string {
	title = strings.TrimSpace(d.Strip(title))
	if draft {
		return d.Prefix + title
	}
	return title
}

// Strip returns a title without the prefixes of a draft.
func (d Drafts) Strip(title string) string { return d.Pattern.ReplaceAllString(title, "") }

// Appears calls find until it returns something, for a few seconds: lists may show what was
// written a while later. The result is nil where it does not appear.
func Appears[T any](ctx context.Context, s *Server, find func() (*T, error)) (*T, error) {
	for pause := time.Second; pause < 8*time.Second; pause *= 2 {
		if found, err := find(); err != nil || found != nil {
			return found, err
		}
		if err := s.Wait(ctx, pause); err != nil {
			return nil, err
		}
	}
	return nil, nil
}
