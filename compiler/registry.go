package compiler

import (
	"github.com/kalypso-io/kalypso/compiler/archive"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate"
	"github.com/kalypso-io/kalypso/compiler/library"
	"github.com/kalypso-io/kalypso/compiler/lock"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// registry has what registrations are pinned to.
type registry struct{ *library.Library }

func (r registry) Registered(of *model.Registration) (*evaluate.Registered, []diag.Diagnostic) {
	source, _ := lock.SourceOf(model.Manifests{Git: &of.Git}) // which all of git are
	entry, ds := r.Pinned(source)
	if len(ds) > 0 {
		return nil, ds
	}
	files := func() (*archive.Tree, []diag.Diagnostic) { return r.Tree(entry) }
	return &evaluate.Registered{Revision: entry.Revision, Content: model.Digest(entry.Content), Files: files}, nil
}
