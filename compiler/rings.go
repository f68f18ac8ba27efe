package compiler

import (
	"context"
	"errors"
	"io/fs"
	"path"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate"
	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/schedule"
	"github.com/kalypso-io/kalypso/internal/lazyregexp"
)

// Declarations returns the environments that a platform's base declares, with their policies of
// promotion, sorted by name. It returns nil if the base cannot be read. The diagnostics are about
// the base, sorted. Of the environments' own files, it reads only the rings.
func Declarations(ctx context.Context, r Request) ([]model.Declaration, []diag.Diagnostic, error) {
	b, _, err := open(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	err = b.readRings(ctx, r)
	return b.Declarations, diag.Sort(b.Diagnostics), errors.Join(err, b.Close())
}

// readRings sets the rings of environments from their own files. It evaluates these files only if
// they mention rings at all.
func (b *Build) readRings(ctx context.Context, r Request) error {
	for i := range b.Declarations {
		s := &b.Declarations[i]
		has, err := b.namesRings(s.Name)
		if err != nil {
			return err
		}
		if !has {
			continue
		}
		pkg, ds, err := b.evaluate(ctx, r, s.Name)
		switch {
		case err != nil:
			return err
		case pkg.Model == nil || pkg.Model.Invalid[model.Ref{Collection: "environments", Name: s.Name}]:
			s.NoRings, s.Beyond = true, exceededLimit(ds)
		case pkg.Model.Rings != nil:
			s.Promotion.Rings = pkg.Model.Rings
		}
	}
	return nil
}

// Members returns the ring of each cluster type of the request's environment. It uses the
// request's rings, and the labels in the request's folder. It returns nil if errors hide the
// cluster types.
func Members(ctx context.Context, r Request) (map[string]string, error) {
	b, _, err := open(ctx, r)
	if err != nil {
		return nil, err
	}
	name := r.Environments[0]
	pkg, _, err := b.evaluate(ctx, r, name)
	if err = errors.Join(err, b.Close()); err != nil || pkg.Model == nil || pkg.Model.Incomplete {
		return nil, err
	}
	of, _ := schedule.Rings(name, r.Rings, pkg.Model.ClusterTypes,
		expr.New(expr.In(r.Workers)).Satisfies)
	return of, nil
}

// evaluate evaluates the package of an environment.
func (b *Build) evaluate(ctx context.Context, r Request, name string) (*evaluate.Package,
	[]diag.Diagnostic, error) {
	return evaluate.Environment(ctx, b.Platform, name, b.Declarations,
		evaluate.Options{Cache: b.meter.Packages(), Registry: registry{b.library}, Workers: r.Workers,
			Supervisor: r.Supervisor})
}

// exceededLimit describes the cost limit that an evaluation exceeded. It returns "" if it exceeded
// none.
func exceededLimit(ds []diag.Diagnostic) string {
	for i := range ds {
		if ds[i].Code == diag.Costly {
			return ds[i].Message + "; " + ds[i].Hint
		}
	}
	return ""
}

// ringsWord matches the name of the field as a whole word, and not in another word such as
// strings.
var ringsWord = lazyregexp.New(`\brings\b`)

// namesRings reports whether an environment's own files mention rings.
func (b *Build) namesRings(environment string) (bool, error) {
	files, dir := b.Platform.Files(), b.Platform.Dir(environment)
	entries, err := files.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	for _, e := range entries {
		if path.Ext(e.Name()) != ".cue" || !e.Type().IsRegular() {
			continue
		}
		data, err := files.ReadFile(path.Join(dir, e.Name()))
		if err != nil || ringsWord.Match(data) {
			return err == nil, err
		}
	}
	return false, err
}
