package publish

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/kalypso-io/kalypso/compiler"
)

// Publication is an artifact and where it goes.
type Publication struct {
	Artifact *Artifact
	Target   Target
}

// ErrNowhere says that no environment of a build is kept in an OCI registry.
var ErrNowhere = errors.New(`no environment keeps its tree in an OCI registry: name a repository, or say environments: <name>: gitops: {oci: "oci://..."}`)

// SeveralError says that one repository was named for several environments.
type SeveralError struct{ Environments []string }

func (e *SeveralError) Error() string {
	return fmt.Sprintf("one tag holds one environment, and there are %v: name the one to publish", e.Environments)
}

// Of returns what is published of a build, sorted by environment: to a named
// repository its one environment, and without one each environment whose gitops
// names an OCI repository. The tag and the path, where nothing names them, are
// those of the environment's gitops, and else its name and the root.
//
// The error is a *SeveralError, ErrNowhere, or about what cannot be read.
func Of(b *compiler.Build, to Target, o Options) ([]Publication, error) {
	if to.Repository != "" && len(b.Environments) != 1 {
		several := &SeveralError{}
		for _, e := range b.Environments {
			several.Environments = append(several.Environments, e.Name)
		}
		return nil, several
	}
	var out []Publication
	for _, e := range b.Environments {
		target, options := to, o
		registered := e.Model != nil && e.Model.GitOps != nil && e.Model.GitOps.OCI != ""
		if to.Repository == "" {
			if !registered {
				continue
			}
			target.Repository = e.Model.GitOps.OCI
		}
		if registered {
			target.Tag, options.Path = cmp.Or(to.Tag, e.Model.GitOps.Tag), cmp.Or(o.Path, e.Model.GitOps.Path)
		}
		target.Tag, options.Path = cmp.Or(target.Tag, e.Name), cmp.Or(options.Path, ".")
		artifact, err := FromBuild(b, e, options)
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
