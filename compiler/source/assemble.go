package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/regular"
	"github.com/kalypso-io/kalypso/internal/scratch"
)

// Assembly is a platform, or an application, made of several commits. One commit has the
// base, and others have environments' own files.
type Assembly struct {
	Repository *git.Repository
	// Marker is the required content of Base; the zero Marker for a platform.
	Marker Marker
	// Base is the commit, and Path is the platform's folder in it; "." for the root. If
	// Folder is set, it is a folder with the base instead.
	Base   git.Hash
	Path   string
	Folder string
	// Own are the places of the own files of environments, by name, if these are not in
	// Base.
	Own map[string]Own
	// Prefetch, if given, is called with the ids of all files before the first is read. It
	// can fetch the missing files at once.
	Prefetch func(ctx context.Context, ids []git.Hash) error
}

// Own is the place of an environment's own files.
type Own struct {
	Commit git.Hash
	Path   string // of their folder in the commit; "." for its root
}

// Assemble writes the platform into a new temporary folder, and returns the folder. It has
// the same guarantees as Checkout. An environment whose folder is not in its commit has no
// files.
func Assemble(ctx context.Context, a Assembly) (platform string, remove func() error, err error) {
	platform, remove, err = a.assemble(ctx)
	if err != nil {
		if remove != nil {
			err = errors.Join(err, remove())
		}
		return "", nil,
			fmt.Errorf("reading the %s at commit %s: %w", a.marker().What, git.Short(a.Base), err)
	}
	return platform, remove, nil
}

func (a *Assembly) marker() Marker {
	if a.Marker.What == "" {
		return PlatformMarker
	}
	return a.Marker
}

// assemble returns the folder it made also with an error.
func (a *Assembly) assemble(ctx context.Context) (platform string, remove func() error, err error) {
	if a.Folder != "" {
		return a.overlay(ctx)
	}
	entries, err := folderAt(a.Repository, a.Base, a.Path, a.marker())
	if err != nil {
		return "", nil, err
	}
	own, err := a.owned()
	if err != nil {
		return "", nil, err
	}
	layers := []layer{{entries, "."}}
	if len(own) > 0 {
		if layers, err = a.split(entries, own); err != nil {
			return "", nil, err
		}
	}
	if a.Prefetch != nil {
		needed := &files{repository: a.Repository}
		for _, l := range layers {
			if err := needed.add(l.entries, 0); err != nil {
				return "", nil, err
			}
		}
		if err := a.Prefetch(ctx, needed.ids); err != nil {
			return "", nil, err
		}
	}
	if platform, remove, err = scratch.Dir("commit"); err != nil {
		return "", nil, err
	}
	return platform, remove, a.write(ctx, platform, layers)
}

// write writes layers into a folder.
func (a *Assembly) write(ctx context.Context, temp string, layers []layer) error {
	to, err := os.OpenRoot(temp)
	if err != nil {
		return err
	}
	defer to.Close()
	w := &checkout{ctx: ctx, repo: a.Repository, to: to}
	for _, l := range layers {
		if err := to.MkdirAll(l.dir, 0o777); err != nil {
			return err
		}
		if err := w.folder(l.entries, l.dir); err != nil {
			return err
		}
	}
	return nil
}

// overlay copies the folder, except environments that have other files, and writes
// these.
func (a *Assembly) overlay(ctx context.Context) (platform string, remove func() error, err error) {
	own, err := a.owned()
	if err != nil {
		return "", nil, err
	}
	if platform, remove, err = scratch.Dir("commit"); err != nil {
		return "", nil, err
	}
	if err := a.copy(ctx, platform); err != nil {
		return platform, remove, err
	}
	var layers []layer
	for _, l := range own {
		layers = append(layers, l)
	}
	return platform, remove, a.write(ctx, platform, layers)
}

// copy copies the folder of the base, without git's own and without the environments
// that have other files. Links are copied as they are.
func (a *Assembly) copy(ctx context.Context, temp string) error {
	return filepath.WalkDir(a.Folder, func(name string, d fs.DirEntry, err error) error {
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		rel, err := filepath.Rel(a.Folder, name)
		if err != nil || rel == "." {
			return err
		}
		environment, isEnvironment := strings.CutPrefix(filepath.ToSlash(rel), Environments+"/")
		_, replaced := a.Own[environment]
		to := filepath.Join(temp, rel)
		switch {
		case d.Name() == ".git" || isEnvironment && replaced:
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			return os.Mkdir(to, 0o777)
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(name)
			if err != nil {
				return err
			}
			return os.Symlink(target, to)
		case !d.Type().IsRegular():
			return nil // it is no file of a platform
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		data, err := regular.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(to, data, info.Mode().Perm()|0o600)
	})
}

// layer is the content of a folder.
type layer struct {
	entries []git.Entry
	dir     string
}

// owned returns the content of environments' own folders. A folder that is a link, as
// an application's may be, stays a link.
func (a *Assembly) owned() (map[string]layer, error) {
	out := map[string]layer{}
	for name, own := range a.Own {
		id, err := a.Repository.CommitTree(own.Commit)
		if err != nil {
			return nil, explain(err, "commit "+git.Short(own.Commit))
		}
		e, found, err := a.Repository.Find(id, own.Path)
		if err != nil {
			return nil, explain(err, own.Path)
		}
		l := layer{dir: path.Join(Environments, name)}
		switch {
		case found && e.Mode == git.LinkMode:
			e.Name = name
			l = layer{[]git.Entry{e}, Environments}
		case found && e.Mode == git.FolderMode:
			if l.entries, err = a.Repository.Tree(e.ID); err != nil {
				return nil, explain(err, own.Path)
			}
		}
		if own.Path == "." {
			// A branch of the environment's own may have a module file for editors, which is
			// not the platform's.
			l.entries = slices.DeleteFunc(slices.Clone(l.entries),
				func(e git.Entry) bool { return e.Name == "cue.mod" })
		}
		out[name] = l
	}
	return out, nil
}

// split removes from the base the files of environments that have other files.
func (a *Assembly) split(base []git.Entry, own map[string]layer) ([]layer, error) {
	environments := entryOf(base, Environments)
	base = slices.DeleteFunc(slices.Clone(base),
		func(e git.Entry) bool { return e.Name == Environments })
	layers := []layer{{base, "."}}
	if environments.Mode == git.FolderMode {
		there, err := a.Repository.Tree(environments.ID)
		if err != nil {
			return nil, explain(err, Environments)
		}
		there = slices.DeleteFunc(slices.Clone(there), func(e git.Entry) bool {
			_, replaced := own[e.Name]
			return replaced
		})
		layers = append(layers, layer{there, Environments})
	}
	for _, l := range own {
		if len(l.entries) > 0 {
			layers = append(layers, l)
		}
	}
	return layers, nil
}

// files are the ids of all files of some folders, within the bounds of a checkout.
type files struct {
	repository *git.Repository
	ids        []git.Hash
	seen       int
}

// add adds the files in and below a folder. Beyond the bounds it stops without an error,
// because writing the files reports one.
func (f *files) add(entries []git.Entry, depth int) error {
	for _, e := range entries {
		if f.seen++; depth > maxDepth || f.seen > maxEntries {
			return nil
		}
		switch e.Mode {
		case git.SubmoduleMode:
		case git.FolderMode:
			inside, err := f.repository.Tree(e.ID)
			if err != nil {
				return explain(err, e.Name)
			}
			if err := f.add(inside, depth+1); err != nil {
				return err
			}
		default:
			f.ids = append(f.ids, e.ID)
		}
	}
	return nil
}
