package session

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/git/remote"
	"github.com/kalypso-io/kalypso/promotion/ledger"
)

// Environment is an environment's GitOps tree, as it is in its branch.
type Environment struct {
	Policy     *model.Declaration
	Aside      bool        // the request is not about it
	Repository *Repository // nil if there is no git branch to promote to
	Absent     string      // why there is no branch to promote to
	Unreadable bool        // there is one, and it cannot be read
	Branch     string
	Folder     string   // of the tree in the branch; "" for its root
	Tip        git.Hash // zero if the branch does not exist
	// the branch does not exist, and begins with the history of another one, at Tip
	Begins bool
	Tree   *tree.Branch
	Record *tree.Record
	// Problems are the reasons why the record cannot be read.
	Problems []diag.Diagnostic
	Own      source.Own // the place of the environment's own files, at the platform's head
	Orders   *ledger.Orders
	History  *History
	// Restored is the newest commit with an unchanged tree by kalypso, if later changes of others
	// are overwritten.
	Restored git.Hash
}

// IsNamed reports whether the environment has a name, or had it before.
func (env *Environment) IsNamed(name string) bool {
	return name == env.Policy.Name || slices.Contains(env.Policy.Formerly, name)
}

// Name returns the name of the environment.
func (env *Environment) Name() string { return env.Policy.Name }

// noRings returns the error of an environment whose rings are not known, because its own
// files have errors.
func noRings(policy *model.Declaration) error {
	if policy.Beyond != "" {
		return errors.New("which rings it has is not known: " + policy.Beyond)
	}
	return fmt.Errorf("which rings it has is not known, because its own files have errors; see "+
		"`kalypso vet %s`", policy.Name)
}

// openEnvironment finds the place of an environment's tree.
func (s *State) openEnvironment(ctx context.Context, policy *model.Declaration) (*Environment,
	error) {
	out := &Environment{Policy: policy}
	g := policy.GitOps
	switch {
	case g == nil:
		out.Absent = "environments." + policy.Name + " has no gitops, which says where its tree is kept"
		return out, nil
	case g.Repo == "":
		out.Absent = "its tree is kept in an OCI registry, where `kalypso publish` puts it"
		return out, nil
	}
	if policy.NoRings {
		return nil, noRings(policy)
	}
	var err error
	if out.Own, err = s.Platform.own(ctx, policy); err != nil {
		return nil, err
	}
	if out.Repository, err = s.opener.repository(ctx, g.Repo); err != nil {
		return nil, err
	}
	if s.Platform.Repository.Plain && !out.Repository.Plain && out.Repository.elsewhere == nil {
		notes, err := s.opener.plainForge(out.Repository)
		if err != nil {
			return nil, err
		}
		out.Repository.elsewhere = ledger.NewStatuses(notes, s.opener.names)
	}
	out.Branch, out.Folder = g.Branch, strings.TrimPrefix(path.Clean("/"+g.Path), "/")
	if p := s.Platform; out.Repository == p.Repository && out.Branch == p.Branch &&
		source.Overlap(p.path, out.Folder) {
		return nil, fmt.Errorf("its tree would be kept in branch %s, which it is promoted from: name a "+
			"branch of its own in gitops", out.Branch)
	}
	out.Tip = out.Repository.Refs[BranchRef(out.Branch)]
	out.Aside = len(s.Request.Environments) > 0 &&
		!slices.Contains(s.Request.Environments, policy.Name)
	return out, nil
}

// read reads the branch and the orders.
func (env *Environment) read(ctx context.Context) (err error) {
	if env.Repository == nil {
		return nil
	}
	if err := env.look(ctx); err != nil {
		return err
	}
	env.History = &History{of: env}
	env.Orders, err = env.Repository.OrdersOf(ctx, env.Policy.Name)
	return err
}

// MoveTo takes note of the branch being at another commit.
func (env *Environment) MoveTo(ctx context.Context, to git.Hash) error {
	env.Tip, env.History, env.Restored, env.Begins = to, &History{of: env}, git.Hash{}, false
	return env.look(ctx)
}

// look reads the branch at the tip.
func (env *Environment) look(ctx context.Context) error {
	if !env.Tip.IsZero() {
		if err := env.Repository.Remote.Fetch(ctx, []git.Hash{env.Tip}, 1); err != nil {
			return err
		}
	}
	var err error
	if env.Tree, err = env.Repository.View(env.Branch, env.Tip); err != nil {
		return err
	}
	if env.Record, env.Problems, err = env.Tree.Record(env.Folder); err != nil {
		return err
	}
	if env.Record == nil || env.Aside {
		return nil
	}
	// Most steps with a tree need only the records of some cluster types.
	err = env.Repository.Remote.Prefetch(ctx, clusterTypesOf(env.Record))
	if errors.As(err, new(*remote.NotFoundError)) { // which is drift
		return nil
	}
	return err
}

// View returns a branch as it is at a commit, for reading it and for making commits on it.
func (r *Repository) View(branch string, tip git.Hash) (*tree.Branch, error) {
	return tree.NewRepository(r.Staging, r.URL).BranchAt(branch, tip)
}

// has returns the source that a ring of the environment was compiled from, or the zero
// Source.
func (env *Environment) has(ring string) tree.Source { return env.SourceIn(env.Record, ring) }

// SourceIn returns the source of a ring by a record, which may be nil.
func (env *Environment) SourceIn(record *tree.Record, ring string) tree.Source {
	return env.ringIn(record, ring).Source
}

// HoldIn returns the ring's own hold by a record, or the environment's, or nil.
func (env *Environment) HoldIn(record *tree.Record, ring string) *tree.Hold {
	if hold := env.ringIn(record, ring).Hold; hold != nil || record == nil {
		return hold
	}
	return record.Hold
}

// NamedIn returns the person who promoted a ring's commit in a record by name, or nil.
func (env *Environment) NamedIn(record *tree.Record, ring string) *tree.NamedPromotion {
	if named := env.ringIn(record, ring).Named; named != nil || record == nil || ring != "" {
		return named
	}
	return record.Named
}

// Hold returns the hold that a ring has now, or nil.
func (env *Environment) Hold(ring string) *tree.Hold { return env.HoldIn(env.Record, ring) }

// ringIn returns the ring of a record, which may be nil. If policies have changed since, the
// record may not have the ring. Then the ring gets the source of the whole environment, or the
// source of the rings that the policy no longer has. If those rings have different sources, the
// ring has no source. It is held if one of them was held.
func (env *Environment) ringIn(record *tree.Record, ring string) tree.Ring {
	switch known := record.Ring(ring); {
	case record == nil:
		return tree.Ring{Name: ring}
	case known != nil:
		return *known
	case len(record.Rings) == 0:
		return tree.Ring{Name: ring, Source: record.Source}
	}
	out, first := tree.Ring{Name: ring}, true
	for _, gone := range record.Rings {
		if env.Policy.Promotion.Ring(gone.Name) != nil {
			continue
		}
		switch {
		case first:
			out.Source, first = gone.Source, false
		case out.Source != gone.Source:
			out.Source = tree.Source{}
		}
		if out.Hold == nil {
			out.Hold = gone.Hold
		}
	}
	return out
}

// ringsIn returns the policy's rings that have something in a record, sorted by name. A
// hold of the environment, from when it had no rings, is one of each of them.
func (env *Environment) ringsIn(record *tree.Record) []tree.Ring {
	var out []tree.Ring
	for _, ring := range env.Policy.Promotion.Rings {
		r := env.ringIn(record, ring.Name)
		if r.Name = ring.Name; r.Hold == nil {
			r.Hold = env.HoldIn(record, ring.Name)
		}
		if r.Source != (tree.Source{}) {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b tree.Ring) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// DriftIn returns the drift of the environment in a commit with a record, which may be nil.
func (env *Environment) DriftIn(ctx context.Context, at *tree.Branch,
	record *tree.Record) ([]tree.Drift, error) {
	if record == nil {
		return nil, nil
	}
	err := env.Repository.Remote.Prefetch(ctx, clusterTypesOf(record))
	// somebody may have written an id without an object
	if err != nil && !errors.As(err, new(*remote.NotFoundError)) {
		return nil, err
	}
	return at.Drift(env.Folder)
}

// AtHead returns the environment as it is at another head; "" for its branch.
func (env *Environment) AtHead(ctx context.Context, head string) (*Environment, error) {
	if head == "" || env.Repository == nil {
		return env, nil
	}
	id := git.Hash{}
	for _, ref := range []string{BranchRef(head), "refs/tags/" + head, head} {
		if known, ok := env.Repository.Refs[ref]; ok {
			id = known
		}
	}
	if id.IsZero() {
		id = tree.Revision(head).Hash()
	}
	if id.IsZero() {
		return nil, fmt.Errorf("%s has no branch, tag or commit %s", env.Repository.URL, head)
	}
	return env.AtCommit(ctx, id)
}

// AtCommit returns the environment as it is at a commit.
func (env *Environment) AtCommit(ctx context.Context, id git.Hash) (*Environment, error) {
	return env.In(ctx, env.Branch, id)
}

// In returns the environment as it is at a commit of another branch. Its state stays apart.
func (env *Environment) In(ctx context.Context, branch string, tip git.Hash) (*Environment, error) {
	other := &Environment{Policy: env.Policy, Repository: env.Repository, Branch: branch,
		Folder: env.Folder, Own: env.Own, Orders: env.Orders}
	return other, other.MoveTo(ctx, tip)
}

// SameHold reports whether two holds, which may be nil, are the same.
func SameHold(a, b *tree.Hold) bool { return a == b || a != nil && b != nil && *a == *b }
