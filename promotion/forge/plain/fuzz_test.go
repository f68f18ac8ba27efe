package plain_test

import (
	"context"
	"errors"
	"testing"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/forge/plain"
)

// one is a repository in which every ref leads to one object.
type one struct{ object git.Object }

func (o one) Refs(context.Context) (map[string]git.Hash, error) {
	id := git.ID(o.object.Kind, o.object.Data)
	return map[string]git.Hash{"refs/tags/" + name: id, "refs/notes/kalypso": id}, nil
}

func (o one) Object(id git.Hash) (git.Object, error) {
	if id != git.ID(o.object.Kind, o.object.Data) {
		return git.Object{}, errors.New("it is missing")
	}
	return o.object, nil
}

func (o one) Push(context.Context, string, git.Hash, git.Hash, func(*git.PackWriter) error) error {
	return git.ErrLostRace
}

// No object makes a person approve who has not signed, and no object causes a crash.
func FuzzObjects(f *testing.F) {
	const signers = "ann ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJtUepi/UV6bDK0TvxQq0mzyaAkf+RoiDdhXK/Kj+N4y"
	f.Add([]byte("object 4f2a9c1b77aa0129d01c0ffee0000000000000aa\ntype commit\ntag "+name+"\ntagger A <a> 1 +0000\n\nx\n-----BEGIN SSH SIGNATURE-----\n"), signers)
	f.Add([]byte("tree 4f2a9c1b77aa0129d01c0ffee0000000000000aa\ngpgsig -----BEGIN SSH SIGNATURE-----\n x\ncommitter > <a> 1 +0000\n\n"), "")
	f.Fuzz(func(t *testing.T, data []byte, signers string) {
		for _, kind := range []git.Kind{git.TagKind, git.CommitKind} {
			repository := one{git.Object{Kind: kind, Data: data}}
			forge, err := plain.New(repository, plain.Options{AllowedSigners: []byte(signers)})
			if err != nil {
				return
			}
			if got, _ := forge.Approvals(t.Context(), "prod", digest); len(got) > 0 {
				t.Error(got)
			}
			_, _ = forge.Statuses(t.Context(), []git.Hash{git.ID(kind, data)})
		}
	})
}
