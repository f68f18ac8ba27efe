package promotion

import (
	"errors"
	"iter"

	"github.com/kalypso-io/kalypso/compiler/git"
	"github.com/kalypso-io/kalypso/compiler/git/remote"
	"github.com/kalypso-io/kalypso/compiler/source"
)

// bases are the base commits of the platform's branch, newest first, read as far as they
// are asked for.
type bases struct {
	known []source.Base
	cut   error // why no more can be read; nil where it can
	next  func() (source.Base, error, bool)
	stop  func()
}

func basesOf(h source.History) *bases {
	b := &bases{}
	b.next, b.stop = iter.Pull2(h.Bases())
	return b
}

// newest returns as many as there are, but not more than most. Of a shallow history, it is
// those that are sure to be there.
func (b *bases) newest(most int) ([]source.Base, error) {
	for len(b.known) < most {
		more, err := b.more()
		if shallow := (*remote.ShallowError)(nil); errors.As(err, &shallow) && len(b.known) > 0 {
			return b.known, nil
		}
		if err != nil || !more {
			return b.known, err
		}
	}
	return b.known[:most], nil
}

// until returns those back to a commit, which is the last of them; false where it is not
// among them all. The zero Hash is not looked for.
func (b *bases) until(commit git.Hash) ([]source.Base, bool, error) {
	if commit.IsZero() {
		return nil, false, nil
	}
	for i := 0; ; i++ {
		if i == len(b.known) {
			if more, err := b.more(); err != nil || !more {
				return nil, false, err
			}
		}
		if b.known[i].Commit == commit {
			return b.known[:i+1], true, nil
		}
	}
}

func (b *bases) more() (bool, error) {
	if b.cut != nil {
		return false, b.cut
	}
	next, err, more := b.next()
	if err != nil || !more {
		b.cut = err
		return false, err
	}
	b.known = append(b.known, next)
	return true, nil
}
