package evaluate

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"cuelang.org/go/cue"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/supervisor"
	"github.com/kalypso-io/kalypso/internal/regular"
	"github.com/kalypso-io/kalypso/internal/scratch"
)

// application is the folder of an application, with a copy of the files that CUE may read. The
// copy has a module file, which an application does not need, and no links.
type application struct {
	dir, tmp string
	remove   func() error      // removes tmp
	files    map[string][]byte // by path, with slashes
	file     string            // the name from ApplicationFiles
	// refused are existing files of values that kalypso does not read, with the reason.
	refused map[string]string
	// astray are links at paths for folders of targets. They lead to files that kalypso does
	// not read.
	astray []string
	// values are the contents of the files read so far, by file: targets share the files above
	// them.
	values map[string]*applicationValues
	costs  *supervisor.Part // of the evaluation
}

// supervise begins the evaluation of the application, within bounds, until the caller calls
// end. If an earlier evaluation exceeded the bounds, it returns a diagnostic and a nil end.
func (a *application) supervise(ctx context.Context, s *supervisor.Supervisor) (end func(),
	ds []diag.Diagnostic, err error) {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(a.files)) {
		fmt.Fprintf(h, "%q %x\n", name, sha256.Sum256(a.files[name]))
	}
	e := s.Evaluation("the application", [32]byte(h.Sum(nil)), supervisor.Bounds{})
	if trip := e.Tripped(); trip != nil {
		return nil, []diag.Diagnostic{trip.Diagnostic()}, nil
	}
	if a.costs, err = e.Begin(ctx); err != nil {
		return nil, nil, err
	}
	return a.costs.End, nil, nil
}

// applicationValues are the contents of a file of values.
type applicationValues struct {
	tree model.Tree
	ds   []diag.Diagnostic
}

// maxApplicationFile is the maximal size of an application's file that CUE reads.
const maxApplicationFile = source.MaxEmbedded

func openApplication(dir string) (*application, error) {
	a := &application{dir: dir, files: map[string][]byte{}, refused: map[string]string{},
		values: map[string]*applicationValues{}}
	for _, name := range ApplicationFiles {
		info, err := os.Stat(filepath.Join(dir, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		case !info.Mode().IsRegular():
			return nil, fmt.Errorf("%s %w", filepath.Join(dir, name), regular.ErrNotRegular)
		case a.file != "":
			return nil, fmt.Errorf("%s has %s and %s: keep one of them", dir, a.file, name)
		default:
			a.file = name
		}
	}
	if a.file == "" {
		return nil, &NotAnApplicationError{dir}
	}
	root, err := os.OpenRoot(dir) // no link leads out of it
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if err := a.collect(root, "."); err != nil {
		return nil, err
	}
	if a.tmp, a.remove, err = scratch.Dir("application"); err != nil {
		return nil, err
	}
	if err := a.copy(); err != nil {
		return nil, errors.Join(err, a.remove())
	}
	return a, nil
}

// collect reads the files of a folder that CUE may read: CUE files, files of values, and small
// files that they may embed.
func (a *application) collect(root *os.Root, folder string) error {
	return fs.WalkDir(root.FS(), folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "_")
		if d.IsDir() {
			if hidden && name != "." {
				return fs.SkipDir
			}
			return nil
		}
		if !(path.Ext(name) == ".cue" || path.Dir(name) == "." ||
			strings.HasPrefix(name, source.Environments+"/")) {
			return nil
		}
		info, err := root.Stat(name)
		if d.Type()&fs.ModeSymlink != 0 && !hidden && mayHoldTargets(name) {
			switch {
			case err == nil && info.IsDir():
				return a.collect(root, name) // this ends: deeper links are not followed
			case err != nil && model.IsName(d.Name()) &&
				!isFile(filepath.Join(a.dir, filepath.FromSlash(name))):
				a.astray = append(a.astray, name)
				return nil
			}
		}
		isCUE := path.Ext(name) == ".cue" && !hidden && !slices.Contains(valuesFiles, path.Base(name))
		if isCUE && err == nil && !info.IsDir() && !info.Mode().IsRegular() {
			return fmt.Errorf("%s %w", filepath.Join(a.dir, filepath.FromSlash(name)), regular.ErrNotRegular)
		}
		if why := notRead(info, err); why != "" { // CUE does not see the file
			if slices.Contains(valuesFiles, path.Base(name)) {
				a.refused[name] = why
			}
			return nil
		}
		data, err := root.ReadFile(name)
		if err != nil {
			return err
		}
		a.files[name] = data
		return nil
	})
}

// mayHoldTargets reports whether a path is the folder of the environments, of an environment or
// of a target.
func mayHoldTargets(name string) bool {
	return name == source.Environments || strings.HasPrefix(name, source.Environments+"/") &&
		strings.Count(name, "/") <= 2
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && !info.IsDir()
}

// strayed reports the links that lead out of the application. If a link may contain several
// targets, unknown is true.
func (a *application) strayed() (ds []diag.Diagnostic, unknown bool) {
	for _, name := range a.astray {
		d := diag.New(diag.BadSource, "folder "+name+" "+leadsOut).
			In(model.Position{File: name, Line: 1, Column: 1}, "").Hinting("make it a folder, or a link " +
			"to one of the application's own")
		if parts := strings.Split(name, "/"); len(parts) == 3 {
			d = d.For(parts[1] + "/" + parts[2])
		} else {
			unknown = true
		}
		ds = append(ds, d)
	}
	return ds, unknown
}

const leadsOut = "is a link that leads nowhere, or out of the application"

// valuesFiles are the names of the files with values, and with the contract on them.
var valuesFiles = []string{"values.yaml", "values.yml", "values.cue"}

// notRead returns the reason why a file of an application is not read. It returns "" if the
// file is read.
func notRead(info fs.FileInfo, err error) string {
	switch {
	case err != nil:
		return leadsOut
	case !info.Mode().IsRegular():
		return "is no regular file"
	case info.Size() > maxApplicationFile:
		return fmt.Sprintf("has more than %d MiB", maxApplicationFile>>20)
	}
	return ""
}

func (a *application) copy() error {
	if a.files["cue.mod/module.cue"] == nil {
		a.files["cue.mod/module.cue"] = fmt.Appendf(nil,
			"module: \"application.kalypso.io@v0\"\nlanguage: version: %q\n", cue.LanguageVersion())
		defer delete(a.files, "cue.mod/module.cue")
	}
	for name, data := range a.files {
		file := filepath.Join(a.tmp, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			return err
		}
	}
	return nil
}
