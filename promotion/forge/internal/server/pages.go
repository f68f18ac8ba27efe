package server

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/sync/errgroup"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/forge"
)

// mostPages is how many pages of a list are read. A list that is longer is an error: a
// part of it would be taken for the whole.
const mostPages = 200

var errEndless = errors.New("the server has a list without an end")

// Pages returns all elements of a list. page returns the elements of a page, and the number
// of the next page, 0 for none.
func Pages[T any](page func(number int) ([]T, int, error)) ([]T, error) {
	var all []T
	for number, read := 1, 0; number != 0; read++ {
		if read == mostPages {
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
