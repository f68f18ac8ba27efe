package promotion

import (
	"context"
	"fmt"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// Vet compiles what was asked for with the environments' own files as they are at the
// platform's head, and the base commits that their records name: so that a change of an
// environment's own files is known to work with what runs there, before it is merged.
// Environments without a record, or with one of files and not of commits, are left out,
// and named. Nothing is written.
func Vet(ctx context.Context, s *sessionState) (said []diag.Diagnostic, leftOut []string, err error) {
	for _, st := range s.asked() {
		if st.out.unreadable {
			return nil, nil, fmt.Errorf("%s: %s", st.id(), st.out.absent)
		}
		has := st.has()
		if !has.Base.IsCommit() {
			leftOut = append(leftOut, st.id())
			continue
		}
		if err := s.platform.repository.remote.Fetch(ctx, commitsOf(tree.Source{Base: has.Base}), 0); err != nil {
			return nil, nil, fmt.Errorf("%s: the base commit %s, which its record names: %w", st.id(), has.Base.Short(), err)
		}
		compiled, remove, err := s.platform.compile(ctx, st, tree.Source{Base: has.Base, Environment: tree.RevisionOf(st.out.own.Commit)}, false)
		if err != nil {
			return nil, nil, err
		}
		if err := remove(); err != nil {
			return nil, nil, err
		}
		said = append(said, compiled.Diagnostics...)
	}
	return diag.Sort(said), leftOut, nil
}
