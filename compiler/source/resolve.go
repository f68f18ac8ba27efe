package source

import (
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"

	"github.com/kalypso-io/kalypso/compiler/diag"
)

// resolve returns the commit that a revision names, as Checkout describes them.
func (r *repository) resolve(rev string) (*object.Commit, error) {
	name, steps := rev, ""
	if i := strings.IndexAny(rev, "~^"); i >= 0 {
		name, steps = rev[:i], rev[i:]
	}
	if rev == "" || strings.Contains(name, "@{") || strings.Contains(name, ":") {
		return nil, formError(rev)
	}
	hash, err := r.named(name)
	if err != nil {
		return nil, err
	}
	commit, err := r.peel(hash, name)
	for err == nil && steps != "" {
		commit, steps, err = r.step(commit, steps)
		if errors.Is(err, errForm) {
			err = formError(rev)
		}
	}
	return commit, err
}

// errForm says that a revision is not of a form that is known.
var errForm = errors.New("unknown form")

func formError(rev string) error {
	return fmt.Errorf("%q is not a form of revision that kalypso reads; name a branch, a tag or a commit, or such with ~N or ^N, or what git rev-parse makes of it", rev)
}

// named returns the object that a name without ~ and ^ is for, in git's order.
func (r *repository) named(name string) (plumbing.Hash, error) {
	if name == "@" {
		name = "HEAD"
	}
	if plumbing.IsHash(name) {
		return plumbing.NewHash(name), nil
	}
	if hash, ok := r.ref(name); ok {
		return hash, nil
	}
	digits := name
	if m := described.FindStringSubmatch(name); m != nil {
		digits = m[1]
	}
	if abbreviated.MatchString(digits) {
		hash, err := r.abbreviation(strings.ToLower(digits))
		if err != nil || !hash.IsZero() {
			return hash, err
		}
	}
	return plumbing.ZeroHash, r.unknown(name)
}

var (
	abbreviated = regexp.MustCompile(`^[0-9a-fA-F]{4,39}$`)
	described   = regexp.MustCompile(`-g([0-9a-fA-F]{4,40})$`)
	rootRef     = regexp.MustCompile(`^[A-Z_]*HEAD$`)
)

// ref returns what a ref points to.
func (r *repository) ref(name string) (plumbing.Hash, bool) {
	for _, rule := range plumbing.RefRevParseRules {
		full := plumbing.ReferenceName(fmt.Sprintf(rule, name))
		// Not every file of the repository is a ref.
		if !rootRef.MatchString(string(full)) && (!strings.HasPrefix(string(full), "refs/") || full.Validate() != nil) {
			continue
		}
		// Where a ref cannot be read, such as the folder of others, git looks further.
		if ref, err := storer.ResolveReference(r, full); err == nil && ref != nil && !ref.Hash().IsZero() {
			return ref.Hash(), true
		}
	}
	return plumbing.ZeroHash, false
}

// abbreviation returns the one commit whose id begins with the digits; zero
// where there is none.
func (r *repository) abbreviation(digits string) (plumbing.Hash, error) {
	prefix, err := hex.DecodeString(digits[:len(digits)&^1])
	if err != nil {
		return plumbing.ZeroHash, err
	}
	found := map[plumbing.Hash]bool{}
	var last plumbing.Hash
	for _, s := range append(r.alternates[:len(r.alternates):len(r.alternates)], r.Storage) {
		hashes, err := s.HashesWithPrefix(prefix)
		if err != nil {
			return plumbing.ZeroHash, err
		}
		for _, h := range hashes {
			if !strings.HasPrefix(h.String(), digits) || found[h] {
				continue
			}
			if o, err := s.EncodedObject(plumbing.AnyObject, h); err == nil && (o.Type() == plumbing.CommitObject || o.Type() == plumbing.TagObject) {
				found[h], last = true, h
			}
		}
	}
	if len(found) > 1 {
		return plumbing.ZeroHash, fmt.Errorf("%d commits and tags have ids that begin with %s; write more digits", len(found), digits)
	}
	return last, nil
}

// peel returns the commit that an object is or is a tag of.
func (r *repository) peel(hash plumbing.Hash, name string) (*object.Commit, error) {
	for {
		o, err := r.EncodedObject(plumbing.AnyObject, hash)
		if err != nil {
			return nil, r.explain(err, "commit "+name)
		}
		switch o.Type() {
		case plumbing.CommitObject:
			return object.DecodeCommit(r, o)
		case plumbing.TagObject:
			tag, err := object.DecodeTag(r, o)
			if err != nil {
				return nil, err
			}
			hash = tag.Target
		default:
			return nil, fmt.Errorf("%s is a %s and not a commit; name a branch, a tag or a commit", name, o.Type())
		}
	}
}

var step = regexp.MustCompile(`^(?:\^\{(?:commit)?\}|([~^])([0-9]*))`)

// step takes the first of the steps away from a commit.
func (r *repository) step(c *object.Commit, steps string) (*object.Commit, string, error) {
	m := step.FindStringSubmatch(steps)
	if m == nil || strings.HasPrefix(steps[len(m[0]):], "{") {
		return nil, "", errForm
	}
	rest, n := steps[len(m[0]):], 1
	if m[2] != "" {
		var err error
		if n, err = strconv.Atoi(m[2]); err != nil {
			return nil, "", errForm
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
			return nil, "", err
		}
	}
	return c, rest, nil
}

// parent returns a commit's parent by number, from 1.
func (r *repository) parent(c *object.Commit, n int) (*object.Commit, error) {
	if n > len(c.ParentHashes) {
		if len(c.ParentHashes) == 0 {
			return nil, fmt.Errorf("commit %s is the first one, and has none before it", short(c.Hash))
		}
		if len(c.ParentHashes) == 1 {
			return nil, fmt.Errorf("commit %s has only one parent", short(c.Hash))
		}
		return nil, fmt.Errorf("commit %s has only %d parents", short(c.Hash), len(c.ParentHashes))
	}
	h := c.ParentHashes[n-1]
	return r.peel(h, short(h)+", a parent of "+short(c.Hash)+",")
}

// unknown says that there is no such name, and which there are.
func (r *repository) unknown(name string) error {
	known := r.names()
	if name == "HEAD" && len(known) == 0 {
		return errors.New("the git repository has no commits yet; commit the platform first")
	}
	s := fmt.Sprintf("the git repository has no branch, tag or commit %s", name)
	if hint := diag.DidYouMean(name, known); hint != "" {
		s += "; " + hint
	}
	if shallow, _ := r.Shallow(); len(shallow) > 0 {
		s += " (the clone is shallow and may lack it: git fetch --unshallow --tags gets the rest)"
	}
	return errors.New(s)
}

// names returns the names of branches and tags.
func (r *repository) names() []string {
	var names []string
	refs, err := r.IterReferences()
	if err != nil {
		return nil
	}
	_ = refs.ForEach(func(ref *plumbing.Reference) error { // the function returns no error
		if n := ref.Name(); n.IsBranch() || n.IsTag() || n.IsRemote() {
			names = append(names, n.Short())
		}
		return nil
	})
	return names
}
