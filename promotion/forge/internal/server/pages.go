package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/sync/errgroup"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/lazyregexp"
	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/forge"
)

// maxPages is the largest number of pages of a list. A longer list is an error, because a part of
// it would count as the whole.
const maxPages = 200

var errEndless = errors.New("the server has a list without an end")

// Pages returns all elements of a list. page returns the elements of a page, and the number of
// the next page; 0 if it is the last.
func Pages[T any](page func(number int) ([]T, int, error)) ([]T, error) {
	var all []T
	for number, read := 1, 0; number != 0; read++ {
		if read == maxPages {
			return nil, errEndless
		}
		some, next, err := page(number)
		if err != nil {
			return nil, err
		}
		if all, number = append(all, some...), next; next <= 0 {
			break
		}
	}
	return all, nil
}

// Statuses calls ask for each commit, for several at once, and returns the statuses by
// commit. Commits without any are left out.
func Statuses(ctx context.Context, parallel int, commits []git.Hash,
	ask func(context.Context, git.Hash) ([]forge.Status, error)) (map[git.Hash][]forge.Status, error) {
	var mu sync.Mutex
	all := make(map[git.Hash][]forge.Status, len(commits))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	seen := make(map[git.Hash]bool, len(commits))
	for _, commit := range commits {
		if seen[commit] {
			continue
		}
		seen[commit] = true
		group.Go(func() error {
			answer, err := ask(ctx, commit)
			if err != nil || len(answer) == 0 {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			all[commit] = answer
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return all, nil
}

// Hash returns the id in an answer; the zero Hash for an invalid one.
func Hash(text string) git.Hash {
	if !plumbing.IsHash(text) {
		return git.Hash{}
	}
	return plumbing.NewHash(text)
}

// CommitText returns the message of a commit: a subject, and the rest after an empty line.
func CommitText(subject, message string) string {
	return strings.TrimSpace(subject + "\n\n" + message)
}

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

// Appears calls find until it returns something, for a few seconds, because lists may show new
// objects only after a while. It returns nil if nothing appears.
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

// Base returns the URL of an instance, which is http or https with only a host and a path. The
// error does not contain a possible password.
func Base(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf("the address of a forge is https://HOST, or https://HOST/PATH")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("the address of the forge at %s has more than a host and a path: "+
			"credentials belong into the environment", terminal.Line(u.Host))
	}
	u.Path, u.RawPath = strings.TrimSuffix(u.Path, "/"), ""
	return u, nil
}

// Same reports whether an address, a URL or HOST or HOST:PORT, is of the host. otherwise is
// the result for an empty address. The default ports 80 and 443 are ignored.
func Same(address, host string, otherwise bool) bool {
	if address == "" {
		return otherwise
	}
	if _, rest, ok := strings.Cut(address, "://"); ok {
		address = rest
	}
	address, _, _ = strings.Cut(address, "/")
	return strings.EqualFold(bare(address), bare(host))
}

func bare(host string) string {
	if name, port, err := net.SplitHostPort(host); err == nil && (port == "80" || port == "443") {
		return name
	}
	return host
}

var segment = lazyregexp.New(`^[A-Za-z0-9_.-]+$`)

// Path returns the segments of a repository's path, without slashes around it and at least
// two. They need no escaping in URLs.
func Path(path string) ([]string, error) {
	segments := strings.Split(strings.Trim(path, "/"), "/")
	for _, s := range segments {
		if !segment.MatchString(s) || strings.Trim(s, ".") == "" {
			return nil, fmt.Errorf("%q is not the path of a repository", terminal.Line(path))
		}
	}
	if len(segments) < 2 {
		return nil, fmt.Errorf("%q is not the path of a repository: it begins with the name of a user, "+
			"an organisation or a group", terminal.Line(path))
	}
	return segments, nil
}
