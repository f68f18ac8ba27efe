// Package publish turns the tree of an environment into an OCI artifact, and pushes it to a
// registry. Flux and Argo CD pull it from there as they would from git.
//
// Its input is a compiled environment or a built folder. Its output is a tag of an OCI
// repository. Equal trees are equal layers, byte for byte. A tag that already holds the
// tree stays unchanged, so its reconcilers see nothing new. The layer has only the tree,
// and the artifact does not show when or where it was made.
//
// The hello-world example keeps its trees in git, so this example is from the package's tests.
// FromBuild gets the environment dev of testdata/platform, and Options with the Path "fleet/dev".
// It returns an [Artifact], and Push pushes it to the tag dev of a repository. The layer of the tag
// has the file fleet/dev/small/kustomization.yaml, and the manifest has the annotation
// io.kalypso.environment: dev.
package publish

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// Options describe an artifact in addition to its tree.
type Options struct {
	// Path is the folder of the artifact that holds the tree, "." for its root.
	Path string
	// Origin and Revision are the URL of the platform's own repository and the compiled
	// commit. They are "" if they are unknown.
	Origin, Revision string
}

// FromBuild returns the artifact of an environment of a build. The build must not have
// failed: an artifact is the whole tree, so failed assignments would be missing.
func FromBuild(ctx context.Context, b *compiler.Build, e *engine.Environment, o Options) (*Artifact,
	error) {
	if b.Failed() || e.Tree == nil {
		return nil, fmt.Errorf("%s has errors, and an artifact without what failed would remove it",
			e.Name)
	}
	files, err := e.Tree.Files(ctx)
	if err != nil {
		return nil, err
	}
	return newArtifact(files, o, provenance{
		platform: b.Platform.Module, environment: e.Name, tree: idOf(files), source: e.Source,
		compiler: compiler.Version(),
	})
}

// FromFolder returns the artifact of a folder with one environment's tree as a build left
// it, including kept folders of failed assignments. It returns an error if the folder does
// not match its record.
func FromFolder(dir string, o Options) (*Artifact, error) {
	record, err := recordOf(dir)
	if err != nil {
		return nil, err
	}
	files, err := readFolder(dir)
	if err != nil {
		return nil, err
	}
	if idOf(files) != record.Tree {
		return nil, fmt.Errorf("%s is not the tree that was built there: files were changed, added or "+
			"removed; build it again, and keep other files out of it", dir)
	}
	return newArtifact(files, o, provenance{
		platform: record.Platform, environment: record.Environment, tree: record.Tree,
		source: record.Source, compiler: record.Compiler,
	})
}

// NoTreeError reports a folder that kalypso did not build.
type NoTreeError struct {
	Dir string
	In  []string // the folders in it that are
}

func (e *NoTreeError) Error() string {
	s := e.Dir + " holds no tree that kalypso built"
	if len(e.In) > 0 {
		s += "; name the folder of one environment in it, such as " + filepath.Join(e.Dir, e.In[0])
	}
	return s
}

// builtIn returns the folders in a folder that hold a tree, sorted.
func builtIn(root *os.Root) []string {
	records, _ := fs.Glob(root.FS(), "*/"+tree.RecordPath) // the error is for a malformed pattern
	for i, r := range records {
		records[i], _, _ = strings.Cut(r, "/")
	}
	return records
}

// recordOf reads the record of a folder.
func recordOf(dir string) (*tree.Record, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	data, err := root.ReadFile(tree.RecordPath)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &NoTreeError{dir, builtIn(root)}
	}
	if err != nil {
		return nil, err
	}
	record, err := tree.ParseRecord(data, func(string) ([]byte, error) { return nil, fs.ErrNotExist })
	if err != nil {
		return nil, fmt.Errorf("%s: %s cannot be read: %w", dir, tree.RecordPath, err)
	}
	return record, nil
}

// readFolder returns the files of a folder except kalypso's own and git's.
func readFolder(dir string) ([]backends.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	own := path.Dir(tree.RecordPath)
	var files []backends.File
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == own || name == ".git":
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			return nil
		case !d.Type().IsRegular():
			return fmt.Errorf("%s is no regular file, so it cannot be published",
				filepath.Join(dir, filepath.FromSlash(name)))
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		data, err := root.ReadFile(filepath.FromSlash(name))
		files = append(files, backends.File{Path: name, Data: data, Executable: info.Mode()&0o100 != 0})
		return err
	})
	return files, err
}

// idOf returns the version of a tree, as in its record.
func idOf(files []backends.File) tree.ID {
	blobs := map[string]tree.Blob{}
	for _, f := range files {
		blobs[f.Path] = tree.BlobOf(f)
	}
	return tree.TreeID(blobs)
}

// provenance is the origin of an artifact's tree.
type provenance struct {
	platform    string
	environment string
	tree        tree.ID
	source      tree.Source
	compiler    tree.Compiler
}

// annotations returns the annotations of the artifact's manifest. Some are defined by the
// OCI image specification
// (https://github.com/opencontainers/image-spec/blob/main/annotations.md), and Flux and
// Argo CD show them. The others are kalypso's own. None is a time.
func (p provenance) annotations(o Options) map[string]string {
	all := map[string]string{
		"org.opencontainers.image.title":    p.platform + " " + p.environment,
		"org.opencontainers.image.source":   o.Origin,
		"org.opencontainers.image.revision": o.Revision,
		PlatformAnnotation:                  p.platform,
		EnvironmentAnnotation:               p.environment,
		TreeAnnotation:                      string(p.tree),
		"io.kalypso.source.base":            string(p.source.Base),
		"io.kalypso.source.environment":     string(p.source.Environment),
		"io.kalypso.compiler":               strings.TrimSpace(p.compiler.Version + " " + p.compiler.CUE),
	}
	for key, value := range all {
		if value == "" {
			delete(all, key)
		}
	}
	return all
}
