package compiler

import (
	"context"

	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/registration"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/archive"
)

// registry has the pinned content of registrations.
type registry struct{ *dependency.Library }

func (r registry) Content(ctx context.Context, of *model.Registration) (*registration.PinnedContent,
	[]diag.Diagnostic) {
	entry, ds := r.Pinned(sourceOf(of))
	if len(ds) > 0 {
		return nil, ds
	}
	files := func() (*archive.Tree, []diag.Diagnostic, error) {
		tree, ds := r.Tree(entry)
		if len(ds) > 0 {
			return nil, ds, nil
		}
		modules := dependenciesOf(of, tree)
		for _, d := range modules {
			if _, problems := r.Entry(moduleSource(d)); len(problems) > 0 {
				return nil, problems, nil
			}
		}
		ds, err := installModules(ctx, modules, r.Library)
		return tree, ds, err
	}
	return &registration.PinnedContent{Revision: entry.Revision, Content: model.Digest(entry.Content),
		Files: files}, nil
}

// tree returns the files that a registration is pinned to. It returns nil if there are no such
// files.
func (r registry) tree(of *model.Registration) *archive.Tree {
	entry, ds := r.Pinned(sourceOf(of))
	if len(ds) > 0 {
		return nil
	}
	tree, _ := r.Tree(entry) // a build reports the errors
	return tree
}

func sourceOf(r *model.Registration) dependency.Source {
	source, _ := dependency.SourceOf(model.Manifests{Git: &r.Git}) // every git source has one
	return source
}
