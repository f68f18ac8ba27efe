package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// Publication is an artifact and its target.
type Publication struct {
	Artifact *Artifact
	Target   Target
}

// ErrNowhere reports that no environment of a build is kept in an OCI registry.
var ErrNowhere = errors.New(
	`no environment keeps its tree in an OCI registry: name a repository, or say environments: <name>: gitops: {oci: "oci://..."}`)

// SeveralError reports that one repository was named for several environments.
type SeveralError struct{ Environments []string }

// Error names the environments.
func (e *SeveralError) Error() string {
	return fmt.Sprintf("one tag holds one environment, and there are %v: name the one to publish",
		e.Environments)
}

// MisplacedError reports that a tree would be published in a folder of the artifact to
// which its own objects do not point.
type MisplacedError struct{ Environment, Path, Own string }

// Error names both folders, and describes the fix.
func (e *MisplacedError) Error() string {
	return fmt.Sprintf("the tree of environment %s would be in folder %s of the artifact, and its "+
		"own objects point to folder %s, as gitops says: leave out the path, or choose another tag",
		e.Environment, e.Path, e.Own)
}

// Of returns the publications of a build, sorted by environment. If to names a repository,
// the build must have exactly one environment. Otherwise Of publishes each environment
// whose gitops names an OCI repository. If to and o do not name the tag and the path, they
// come from the environment's gitops, or else are its name and the root.
//
// The error is a *SeveralError, a *MisplacedError, ErrNowhere, or about something that
// cannot be read.
func Of(ctx context.Context, b *compiler.Build, to Target, o Options) ([]Publication, error) {
	if to.Repository != "" && len(b.Environments) != 1 {
		several := &SeveralError{}
		for _, e := range b.Environments {
			several.Environments = append(several.Environments, e.Name)
		}
		return nil, several
	}
	var out []Publication
	for _, e := range b.Environments {
		if to.Repository == "" && e.OCI() == nil {
			continue
		}
		target, options, err := place(e.OCI(), e.Name, to, o)
		if err != nil {
			return nil, err
		}
		artifact, err := FromBuild(ctx, b, e, options)
		if err != nil {
			return nil, err
		}
		out = append(out, Publication{artifact, target})
	}
	if out == nil {
		return nil, ErrNowhere
	}
	return out, nil
}

// OfFolder returns the publication of a folder, as FromFolder reads it. to must name the
// repository. The tag and the path are as for Of, by the gitops that the environment had
// when the folder was built.
func OfFolder(dir string, to Target, o Options) (Publication, error) {
	record, err := recordOf(dir)
	if err != nil {
		return Publication{}, err
	}
	if to, o, err = place(record.OCI, record.Environment, to, o); err != nil {
		return Publication{}, err
	}
	a, err := FromFolder(dir, o)
	return Publication{a, to}, err
}

// place completes a target with the fields of gitops, if any, and else with the
// environment's name and the root. At the tag of gitops, the tree must be in the folder of
// gitops. A tree at another tag is a copy, which may be anywhere. The repository's address
// is not compared, as for git.
func place(gitops *tree.OCI, environment string, to Target, o Options) (Target, Options, error) {
	if gitops == nil {
		gitops = &tree.OCI{}
	}
	to.Repository, to.Tag = cmp.Or(to.Repository, gitops.Repository),
		cmp.Or(to.Tag, gitops.Tag, environment)
	own := path.Clean("/" + gitops.Path)
	if gitops.Repository != "" && to.Tag == gitops.Tag && o.Path != "" &&
		path.Clean("/"+o.Path) != own {
		return to, o, &MisplacedError{environment, o.Path, cmp.Or(own[1:], ".")}
	}
	o.Path = cmp.Or(o.Path, gitops.Path, ".")
	return to, o, nil
}
