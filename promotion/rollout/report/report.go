// Package report reads reports of rollouts from files of Ansible's role, and of other tools. A
// file is JSON:
//
//	{
//	  "apiVersion": "kalypso.io/v1alpha1",
//	  "kind": "RolloutReport",
//	  "cluster": "edge-7",
//	  "commit": "0c9c2e41d6f0a3b1f5f2a9b8c7d6e5f4a3b2c1d0",
//	  "repository": "https://git.example.com/gitops.git",
//	  "branch": "prod",
//	  "path": "fleet/edge-vm",
//	  "reports": [
//	    {"assignment": "prod/edge-vm/hello-main", "state": "healthy", "message": "",
//	      "at": "2026-01-02T15:04:05Z"}
//	  ]
//	}
//
// commit is the commit of the GitOps branch that was applied to the cluster. A state is healthy,
// progressing or failed. repository, branch and path are the origin of the commit. path is the
// folder of the cluster type, or of a class of it. repository, branch, path, cluster, message and
// at may be left out.
package report

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/rollout"
)

// The bounds: a folder has a file for each cluster, and a file a report for each
// assignment.
const (
	maxSize  = 16 << 20
	maxFiles = 100_000
)

// Source reads a file, or the files of a folder whose names end in .json. Its methods
// may be called by several goroutines.
type Source struct{ path string }

var _ rollout.Source = (*Source)(nil)

// New returns the source of a file or folder, which Reports reads.
func New(path string) *Source { return &Source{path} }

// Name returns "reports in PATH".
func (s *Source) Name() string { return "reports in " + s.path }

// An Error is an error in a file, with its position.
type Error struct {
	At      model.Position
	Problem string
}

// Error returns the position and the problem.
func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.At.File, e.At.Line, e.At.Column, e.Problem)
}

// Reports returns the reports of the wanted assignments. A report about an unwanted commit is
// progressing, whatever its state, because an older commit runs there. If a file cannot be read,
// Reports returns an error, because the missing report may be a failure. The error is an *Error
// if the file's text is the reason.
func (s *Source) Reports(ctx context.Context, w *rollout.DesiredState) ([]rollout.Report, error) {
	commits := make(map[git.Hash]bool, len(w.Commits))
	for _, c := range w.Commits {
		commits[c] = true
	}
	wanted := make(map[string]*rollout.Assignment, len(w.Assignments))
	for i := range w.Assignments {
		wanted[w.Assignments[i].ID] = &w.Assignments[i]
	}
	var out []rollout.Report
	err := Each(ctx, s.path, func(file string, data []byte) error {
		parsed, err := Parse(file, data)
		if err != nil {
			return err
		}
		for _, r := range parsed.Reports {
			if a := wanted[r.Assignment]; a != nil {
				differs := w.Tree.Differs(parsed.Origin, a.ClusterType, a.Target)
				out = append(out, parsed.report(r, file, commits[parsed.Commit], differs))
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Each calls f with the content of a file, or of the files of a folder whose names end in .json,
// sorted by name, until f returns an error.
func Each(ctx context.Context, path string, f func(file string, data []byte) error) error {
	files, err := filesOf(path)
	if err != nil {
		return fmt.Errorf("looking for reports: %w", err)
	}
	for _, file := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		data, err := read(file)
		if err != nil {
			return fmt.Errorf("reading reports: %w", err)
		}
		if err := f(file, data); err != nil {
			return err
		}
	}
	return nil
}

// report converts one of a file's reports. differs describes how it is taken from elsewhere; "" if
// it is not.
func (f *File) report(e Entry, file string, current bool, differs string) rollout.Report {
	r := rollout.Report{Assignment: e.Assignment, Cluster: terminal.Line(f.Cluster), State: e.State,
		Message: terminal.Line(e.Message), By: file, At: e.At}
	if differs != "" {
		r.State, r.Message = rollout.Progressing,
			terminal.Line("has drifted: "+differs+": "+string(e.State)+" "+e.Message)
	} else if !current {
		r.State = rollout.Progressing
		r.Message = terminal.Line(
			fmt.Sprintf("still at commit %.10s: %s %s", f.Commit, e.State, e.Message))
	}
	return r
}

// filesOf returns the paths to read, sorted.
func filesOf(path string) ([]string, error) {
	is, err := os.Stat(path)
	if err != nil || !is.IsDir() {
		return []string{path}, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".json") {
			out = append(out, filepath.Join(path, e.Name()))
		}
	}
	if len(out) > maxFiles {
		return nil, fmt.Errorf("%s has %d files, and %d are read at most", path, len(out), maxFiles)
	}
	return out, nil
}

// read returns a file's content. It refuses pipes and devices, which could block forever.
func read(file string) ([]byte, error) {
	is, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if !is.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: file, Err: errors.New("is no regular file")}
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxSize {
		return nil, &fs.PathError{Op: "read", Path: file,
			Err: fmt.Errorf("has more than %d bytes", maxSize)}
	}
	return data, nil
}
