package git

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/kalypso-io/kalypso/internal/lazyregexp"
	"github.com/kalypso-io/kalypso/internal/spelling"
)

// Resolve returns the commit of a revision, as git rev-parse does. A revision is the name of a
// branch, a tag or another ref, a commit's id or at least four digits of it, or the output of git
// describe. Any number of ~N, ^N, ^{commit} and ^{} may follow. Other forms, with the reflog
// (@{...}), commit messages (:/text, ^{/text}) or paths, are not supported.
func (r *Repository) Resolve(rev string) (Hash, error) {
	name, steps := rev, ""
	if i := strings.IndexAny(rev, "~^"); i >= 0 {
		name, steps = rev[:i], rev[i:]
	}
	if rev == "" || strings.Contains(name, "@{") || strings.Contains(name, ":") {
		return Hash{}, formError(rev)
	}
	id, err := r.named(name)
	if err != nil {
		return Hash{}, err
	}
	c, err := r.peel(id, name)
	for err == nil && steps != "" {
		c, steps, err = r.follow(c, steps)
		if errors.Is(err, errForm) {
			err = formError(rev)
		}
	}
	return c.id, err
}

// errForm is that a revision has an unsupported form.
var errForm = errors.New("unknown form")

func formError(rev string) error {
	return fmt.Errorf("%q is not a form of revision that kalypso reads; name a branch, a tag or a "+
		"commit, or such with ~N or ^N, or what git rev-parse makes of it", rev)
}

var (
	abbreviated = lazyregexp.New(`^[0-9a-fA-F]{4,39}$`)
	described   = lazyregexp.New(`-g([0-9a-fA-F]{4,40})$`)
)

// named returns the object of a name without ~ and ^, looked up in git's order.
func (r *Repository) named(name string) (Hash, error) {
	if name == "@" {
		name = "HEAD"
	}
	if plumbing.IsHash(name) {
		return plumbing.NewHash(name), nil
	}
	if id, ok := r.refs.shortRef(name); ok {
		return id, nil
	}
	digits := name
	if m := described.FindStringSubmatch(name); m != nil {
		digits = m[1]
	}
	if abbreviated.MatchString(digits) {
		id, err := r.abbreviation(strings.ToLower(digits))
		if err != nil || !id.IsZero() {
			return id, err
		}
	}
	return Hash{}, r.unknown(name)
}

var leap = lazyregexp.New(`^(?:\^\{(?:commit)?\}|([~^])([0-9]*))`)

// follow applies the first of the steps to a commit.
func (r *Repository) follow(c revision, steps string) (revision, string, error) {
	m := leap.FindStringSubmatch(steps)
	if m == nil || strings.HasPrefix(steps[len(m[0]):], "{") {
		return revision{}, "", errForm
	}
	rest, n := steps[len(m[0]):], 1
	if m[2] != "" {
		var err error
		if n, err = strconv.Atoi(m[2]); err != nil {
			return revision{}, "", errForm
		}
	}
	switch {
	case m[1] == "" || n == 0:
		return c, rest, nil
	case m[1] == "^":
		c, err := r.parent(c, n)
		return c, rest, err
	}
	for ; n > 0; n-- {
		var err error
		if c, err = r.parent(c, 1); err != nil {
			return revision{}, "", err
		}
	}
	return c, rest, nil
}

// unknown returns the error for an unknown name, with suggestions.
func (r *Repository) unknown(name string) error {
	known, err := r.refs.shortNames()
	if err != nil {
		return err
	}
	if name == "HEAD" && len(known) == 0 {
		return errors.New("the git repository has no commits yet; git commit makes the first one")
	}
	s := fmt.Sprintf("the git repository has no branch, tag or commit %s", name)
	if hint := spelling.DidYouMean(name, known); hint != "" {
		s += "; " + hint
	}
	if r.isShallow() {
		s += " (the clone is shallow and may lack it: git fetch --unshallow --tags gets the rest)"
	}
	return errors.New(s)
}
