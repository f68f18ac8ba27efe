package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/supervisor"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/git/remote"
	"github.com/kalypso-io/kalypso/internal/spelling"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/ledger"
	"github.com/kalypso-io/kalypso/promotion/rollout"
	"github.com/kalypso-io/kalypso/promotion/signature"
	"github.com/kalypso-io/kalypso/promotion/subject"
)

// Request is the platform to promote, and the means.
type Request struct {
	// Repository is the platform's git repository: a URL, or a folder. Branch is the
	// branch to promote, "" for the repository's default; Path is the platform's folder in
	// it, "." for its root.
	Repository, Branch, Path string
	// Head is a commit to take for the head of the branch; zero for the branch's own.
	Head git.Hash
	// Environments are the environments to work on, and Ring is a ring of the only one; none and
	// "" for all. The state of all other environments is read as far as gates need it.
	Environments []string
	Ring         string
	// Former lets Environments name some that the policy does not have any more.
	Former bool
	// Subjects compile: the first of them counts that the head is one of.
	Subjects []subject.Subject
	// Remote opens a git repository by its URL.
	Remote func(ctx context.Context, url string) (*remote.Remote, error)
	// Forge returns the host of a repository, or nil for plain git.
	Forge func(ctx context.Context, url string) (forge.Forge, error)
	// Supervisor bounds the costs of reading the records of an environment, or is nil.
	Supervisor *supervisor.Supervisor
	// Sources are further sources of rollout reports, in addition to commit statuses.
	Sources []Source
	// Now is the clock. ClockSet is true if the clock was set, and is not the machine's. Records
	// then have a note.
	Now      func() time.Time
	ClockSet bool
	// By is the person who runs this, for decisions that only people make: rollbacks,
	// holds, freezes.
	By string
	// Committer is the author of commits; the zero Signature for kalypso itself.
	Committer git.Signature
	// Signer signs commits, or nil.
	Signer *signature.Signer
	// Overwrite restores generated files that somebody else changed, and Adopt takes over files
	// that kalypso did not write.
	Overwrite, Adopt bool
}

// Author returns who makes commits: kalypso itself, unless the request has a committer.
func (r *Request) Author(when time.Time) ledger.Author {
	by := ledger.Author{Signature: git.Signature{Name: "kalypso", Email: "kalypso@localhost",
		When: when.UTC()}}
	if r.Committer.Name != "" {
		by.Name, by.Email = r.Committer.Name, r.Committer.Email
	}
	if r.Signer != nil {
		by.Sign = r.Signer.Sign
	}
	return by
}

// Clock returns the clock as records name it.
func (r *Request) Clock() string {
	if r.ClockSet {
		return tree.ClockSet
	}
	return ""
}

// Source is a source of rollout reports, with its kind as policies name it: kubernetes, report or
// hub.
type Source struct {
	Kind string
	rollout.Source
}

// UnknownError is the error if an environment or a ring does not exist.
type UnknownError struct {
	What, Name string
	Known      []string
	// Diagnostics are the diagnostics of the base if it declares no environments. They show the
	// reason.
	Diagnostics []diag.Diagnostic
}

// Error names the unknown environment or ring, and the nearest known name.
func (e *UnknownError) Error() string {
	text := fmt.Sprintf("there is no %s %s", e.What, e.Name)
	if hint := spelling.DidYouMean(e.Name, e.Known); hint != "" {
		return text + "; " + hint
	}
	return text
}

// checkRequest returns an error if the request names an environment or ring that the policy does
// not have.
func (s *State) checkRequest() error {
	known := s.Names()
	for _, name := range s.Request.Environments {
		if !slices.Contains(known, name) && !s.Request.Former {
			return s.unknownEnvironment(name)
		}
	}
	if s.Request.Ring == "" {
		return nil
	}
	if len(s.Request.Environments) != 1 {
		return errors.New("a ring is one of an environment: name the environment")
	}
	policy := s.Platform.Policy(s.Request.Environments[0])
	if policy == nil {
		return nil // a former environment, whose stages are all requested
	}
	if policy.NoRings {
		return fmt.Errorf("environment %s: %w", policy.Name, noRings(policy))
	}
	var rings []string
	for _, ring := range policy.Promotion.Rings {
		rings = append(rings, ring.Name)
	}
	if !slices.Contains(rings, s.Request.Ring) {
		return &UnknownError{What: "ring of environment " + policy.Name, Name: s.Request.Ring,
			Known: rings}
	}
	return nil
}

// unknownEnvironment returns the error for an environment that the policy does not have.
func (s *State) unknownEnvironment(name string) error {
	return &UnknownError{What: "environment", Name: name, Known: s.Names(),
		Diagnostics: s.Platform.Lacks}
}
