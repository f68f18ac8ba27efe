// Package gitserver serves git repositories over HTTP with git's own server.
package gitserver

import (
	"bytes"
	"io"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
)

// New returns the handler of the bare repositories in a folder, as `git http-backend` serves
// them. A repository for pushes needs the setting http.receivepack. user is the name of every
// client. The handler does not check passwords, and ignores git's variables in the environment.
func New(root, user string) (http.Handler, error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return nil, err
	}
	backend := &cgi.Handler{
		Path: git, Args: []string{"http-backend"}, Dir: root,
		Env: []string{
			"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1", "HOME=" + root,
			"PATH=" + os.Getenv("PATH"), "REMOTE_USER=" + user,
		},
		Stderr: io.Discard,
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Go's CGI accepts no bodies of unknown length, and git sends large bodies in this way.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
		backend.ServeHTTP(w, r)
	}), nil
}
