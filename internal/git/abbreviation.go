package git

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// abbreviation returns the one commit or tag whose id begins with the digits, which are at
// least four, in lower case; zero where there is none.
func (r *Repository) abbreviation(digits string) (Hash, error) {
	ids, err := r.beginning(digits)
	if err != nil {
		return Hash{}, err
	}
	var last Hash
	n := 0
	for id := range ids {
		// Objects that git removes meanwhile do not count.
		if o, err := r.Object(id); err == nil && (o.Kind == CommitKind || o.Kind == TagKind) {
			last = id
			n++
		}
	}
	if n > 1 {
		return Hash{}, fmt.Errorf("%d commits and tags have ids that begin with %s; write more digits", n, digits)
	}
	return last, nil
}

// beginning returns the objects whose ids begin with the digits.
func (r *Repository) beginning(digits string) (map[Hash]bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.list(); err != nil {
		return nil, err
	}
	ids := map[Hash]bool{}
	for _, p := range r.packs {
		if err := p.beginning(digits, ids); err != nil {
			return nil, err
		}
	}
	for _, dir := range r.dirs {
		entries, err := os.ReadDir(filepath.Join(dir, digits[:2]))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			if id := digits[:2] + e.Name(); strings.HasPrefix(id, digits) && plumbing.IsHash(id) {
				ids[plumbing.NewHash(id)] = true
			}
		}
	}
	return ids, nil
}

// beginning adds the objects of the pack whose ids begin with the digits, at
// least two, so that all of them begin with the same byte.
func (p *pack) beginning(digits string, ids map[Hash]bool) error {
	width := 2 * len(Hash{})
	first := plumbing.NewHash(digits + strings.Repeat("0", width-len(digits)))
	last := plumbing.NewHash(digits + strings.Repeat("f", width-len(digits)))
	n, end, err := p.search(first)
	for ; err == nil && n < end; n++ {
		var id Hash
		if id, err = p.id(n); err != nil || bytes.Compare(id[:], last[:]) > 0 {
			break
		}
		ids[id] = true
	}
	return err
}
