package git

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// abbreviation returns the one commit or tag whose id begins with the digits, which are at
// least four, in lower case, or zero.
func (r *Repository) abbreviation(digits string) (Hash, error) {
	ids, err := r.objects.beginning(digits)
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
		return Hash{},
			fmt.Errorf("%d commits and tags have ids that begin with %s; write more digits", n, digits)
	}
	return last, nil
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
