package platform

import (
	"fmt"
	"net/url"
	"path"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/promotion/forge/detect"
)

// Linker returns what gives the address at which the forge of a remote shows a place of a
// commit; nil where no forge is known. folder is the platform's, in the repository. Of a file that
// is not as the commit has it, which asCommitted says by its path in the folder, there is none.
func Linker(remote string, env func(string) string, commit, folder string, asCommitted func(file string) bool) func(model.Position) string {
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
