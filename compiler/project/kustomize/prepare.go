package kustomize

import (
	"path"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/project/internal/refusal"
	"github.com/kalypso-io/kalypso/internal/lazyregexp"
)

// Where things lie in the file system in memory.
const (
	sourceRoot  = "/source"
	overlayRoot = "/kalypso"
)

// local removes from a message of Kustomize the places in memory: of the source, and of the
// parts of a generator, which Kustomize prints as a whole.
func local(message string) string {
	message = strings.ReplaceAll(message, sourceRoot+"/", "")
	message = strings.ReplaceAll(message, sourceRoot, ".")
	message = generator.ReplaceAllString(message, "generator: $1")
	return pointer.ReplaceAllString(message, "0x…")
}

var (
	generator = lazyregexp.New(`(?s)generator &\{0x[0-9a-f]+ .*?\}: (id |found )`)
	pointer   = lazyregexp.New(`\b0x[0-9a-f]{9,16}\b`)
)

// preparedSource is a source that can be built: it was looked through, and its changes
// were added.
type preparedSource struct {
	fs    filesys.FileSystem
	root  string // the folder to build
	name  string // the requested folder, for messages
	plain bool   // whether it has no kustomization
	// schema is whether a kustomization changes the OpenAPI schema.
	schema bool
}

// prepare checks a source and returns the input of a build for Kustomize.
func prepare(req Request) (*preparedSource, error) {
	s, err := newScan(req.Files, req.Refused)
	if err != nil {
		return nil, err
	}
	dir, err := s.folder(req.Path)
	if err != nil {
		return nil, err
	}
	p := &preparedSource{fs: filesys.MakeFsInMemory(), root: inSource(dir), name: dir}
	if dir == "." {
		p.name = "the root of the source"
	}
	var top types.Kustomization
	if name, _ := s.kustomization(dir); name != "" {
		err = s.overlay(dir)
		top = s.parsed[dir]
	} else {
		p.plain = true
		top.Resources, err = s.manifests(dir)
	}
	if err != nil {
		return nil, err
	}
	p.schema = s.ownSchema()
	if err := p.copy(s); err != nil {
		return nil, err
	}
	if p.plain {
		err = p.write(inSource(dir), top)
	}
	if err == nil && (len(req.Patches) > 0 || len(req.Images) > 0 || req.NamePrefix != "") {
		err = p.change(req, s, dir, top)
	}
	return p, err
}

// copy writes the files that the build needs to memory. Kustomize cannot see any file that was
// not checked.
func (p *preparedSource) copy(s *scan) error {
	for name := range s.reached {
		if err := p.fs.WriteFile(inSource(name), s.files[name]); err != nil {
			return refusal.New(diag.BadSource, "rename it", "Kustomize cannot hold a file named %s: %v",
				name, err)
		}
	}
	return nil
}

// change adds the changes of a request as an overlay over its folder.
func (p *preparedSource) change(req Request, s *scan, dir string, top types.Kustomization) error {
	changed, err := changes(req)
	if err != nil {
		return err
	}
	p.root = overlayRoot
	changed.Resources = []string{".." + inSource(dir)}
	// Only the topmost kustomization sorts and labels objects, and sets the schema by which
	// patches are merged.
	changed.SortOptions, changed.BuildMetadata, changed.OpenAPI = top.SortOptions, top.BuildMetadata,
		top.OpenAPI
	if schema, ok := top.OpenAPI["path"]; ok {
		changed.OpenAPI = map[string]string{"path": "schema.json"}
		if err := p.fs.WriteFile(path.Join(overlayRoot, "schema.json"),
			s.files[path.Join(dir, schema)]); err != nil {
			return err
		}
	}
	return p.write(overlayRoot, changed)
}
