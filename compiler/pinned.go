package compiler

import (
	"context"
	"sync"

	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/internal/address"
)

// PinnedFetcher returns a fetcher for the sources that the kalypso.lock of a platform pins. It
// fetches each source within the reach that the platform allows, which it reads on the first fetch.
// Sources that the platform does not use, or that errors hide, must not be on this machine.
func PinnedFetcher(ctx context.Context, r Request, f dependency.Fetcher) dependency.Fetcher {
	return &pinnedFetcher{f, sync.OnceValues(func() (map[dependency.Source]address.Reach, error) {
		r.Environments = nil
		b, err := plan(ctx, r)
		if err != nil {
			return nil, err
		}
		out := map[dependency.Source]address.Reach{}
		for _, u := range b.Uses() {
			if before, other := out[u.Source]; other {
				u.Reach = before.Or(u.Reach)
			}
			out[u.Source] = u.Reach
		}
		return out, b.Close()
	})}
}

type pinnedFetcher struct {
	dependency.Fetcher
	reaches func() (map[dependency.Source]address.Reach, error)
}

func (p *pinnedFetcher) Within(address.Reach) dependency.Fetcher { return p }

func (p *pinnedFetcher) Fetch(ctx context.Context, e dependency.Entry) ([]byte, error) {
	reaches, err := p.reaches()
	if err != nil {
		return nil, err
	}
	reach, used := reaches[e.Source]
	if !used {
		reach = address.Reach{Remote: true}
	}
	return p.Fetcher.Within(reach).Fetch(ctx, e)
}
