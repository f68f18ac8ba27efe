package platform

import (
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"sync"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/regular"
	"github.com/kalypso-io/kalypso/promotion/forge/detect"
)

// Linker returns a function that returns the address of a place of a commit at the forge of
// a remote. It is nil if the forge is not known. folder is the platform's folder in the
// repository. A file that differs from the commit, as asCommitted reports by its path in the
// folder, has no address.
func Linker(remote string, env func(string) string, commit, folder string,
	asCommitted func(file string) bool) func(model.Position) string {
	kind, base, repository, err := detect.Detect(remote, env, "")
	if err != nil || commit == "" {
		return nil
	}
	format, known := map[string]string{
		detect.GitHub: "%s/%s/blob/%s/%s#L%d",
		detect.GitLab: "%s/%s/-/blob/%s/%s#L%d",
		detect.Gitea:  "%s/%s/src/commit/%s/%s#L%d",
	}[kind]
	if !known {
		return nil
	}
	return func(at model.Position) string {
		if at.IsZero() || path.IsAbs(at.File) || !asCommitted(at.File) {
			return ""
		}
		file := (&url.URL{Path: path.Join(folder, at.File)}).EscapedPath()
		return fmt.Sprintf(format, base, repository, commit, file, at.Line)
	}
}

// AsCommitted returns a function that reports whether a file of the platform in root is the
// same as in a commit. folder is the platform's folder in the repository. The function reads
// each file once. Several goroutines may call it while the repository is open.
func AsCommitted(repo *git.Repository, commit git.Hash, root,
	folder string) func(file string) bool {
	var mu sync.Mutex
	known := map[string]bool{}
	return func(file string) bool {
		mu.Lock()
		defer mu.Unlock()
		same, looked := known[file]
		if !looked {
			same = isCommitted(repo, commit, path.Join(folder, file),
				filepath.Join(root, filepath.FromSlash(file)))
			known[file] = same
		}
		return same
	}
}

// isCommitted reports whether a file equals the commit's file at a path.
func isCommitted(repo *git.Repository, commit git.Hash, at, file string) bool {
	top, err := repo.CommitTree(commit)
	if err != nil {
		return false
	}
	entry, there, err := repo.Find(top, at)
	if err != nil || !there {
		return false
	}
	data, err := regular.ReadFile(file)
	return err == nil && string(tree.BlobID(data)) == entry.ID.String()
}
