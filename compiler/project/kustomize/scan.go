package kustomize

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/project/internal/manifest"
	"github.com/kalypso-io/kalypso/compiler/project/internal/refusal"
	"github.com/kalypso-io/kalypso/internal/archive"
	"github.com/kalypso-io/kalypso/internal/spelling"
)

// scan checks the kustomizations that a build reaches, before Kustomize does. Each must be
// readable, and each file and folder that a kustomization names must be in the source.
type scan struct {
	files   map[string][]byte
	refused map[string]string // paths without content, with the reason
	folders map[string]bool   // every folder with files below it; "." is the root
	parsed  map[string]types.Kustomization
	reached map[string]bool // files that the build needs
	checked map[string]bool // files that were checked
	bytes   manifest.Reader // counts the size of all files together
}

func newScan(files map[string][]byte, refused map[string]string) (*scan, error) {
	s := &scan{files: files, refused: refused, folders: map[string]bool{".": true},
		parsed: map[string]types.Kustomization{}, reached: map[string]bool{}, checked: map[string]bool{}}
	for name := range files {
		if name == "" || name != path.Clean(name) || path.IsAbs(name) || name == "." || outside(name) ||
			strings.Contains(name, `\`) || !utf8.ValidString(name) {
			return nil, refusal.New(diag.BadSource, "files of a source have relative paths of plain names",
				"the source has a file named %q", name)
		}
		for dir := path.Dir(name); !s.folders[dir]; dir = path.Dir(dir) {
			s.folders[dir] = true
		}
	}
	for name := range files {
		if s.folders[name] {
			return nil, refusal.New(diag.BadSource, "a path names one of both",
				"the source has a file and a folder named %q", name)
		}
	}
	return s, nil
}

// outside reports whether a clean path leads out of its base folder.
func outside(name string) bool { return name == ".." || strings.HasPrefix(name, "../") }

// folder returns the clean path of a folder of the source.
func (s *scan) folder(name string) (string, error) {
	dir := path.Clean(name)
	hint := "the path is relative to the root of the source"
	switch {
	case path.IsAbs(dir) || outside(dir):
		return "", refusal.New(diag.BadSource, hint, "path %s leads out of the source", name)
	case s.folders[dir]:
		return dir, nil
	}
	if _, ok := s.files[dir]; ok {
		return "", refusal.New(diag.BadSource, hint, "path %s is a file of the source, not a folder",
			name)
	}
	if at, why := s.why(dir); why != "" {
		return "", refusal.New(diag.BadSource, archive.WayOut(why, hintRefused),
			"path %s is not in the source: %s %s", name, at, why)
	}
	var all []string
	for f := range s.folders {
		all = append(all, f)
	}
	return "", refusal.New(diag.BadSource, spelling.DidYouMean(dir, all),
		"path %s is not in the source", name)
}

const hintRefused = "keep it as a file of the source"

// why returns the reason why a clean path has no content: either it or a folder above it is
// refused. It returns "" if the path does not exist for no other reason.
func (s *scan) why(name string) (at, why string) {
	for at = name; at != "."; at = path.Dir(at) {
		if why = s.refused[at]; why != "" {
			return at, why
		}
	}
	return "", ""
}

// kustomization returns the path of a folder's kustomization, or "" if it has no
// kustomization. It also reports whether the folder has several.
func (s *scan) kustomization(dir string) (name string, several bool) {
	for _, k := range konfig.RecognizedKustomizationFileNames() {
		if _, ok := s.files[path.Join(dir, k)]; ok {
			name, several = path.Join(dir, k), name != ""
		}
	}
	return name, several
}

// overlay checks a folder's kustomization, and the kustomizations that it refers to. A
// circle ends where it began: Kustomize reports it.
func (s *scan) overlay(dir string) error {
	if _, ok := s.parsed[dir]; ok {
		return nil
	}
	file, several := s.kustomization(dir)
	if several {
		return refusal.New(diag.BadSource, "keep one of kustomization.yaml, kustomization.yml and "+
			"Kustomization", "%s has several kustomizations", dir)
	}
	k, err := s.parse(file)
	if err != nil {
		return err
	}
	s.parsed[dir] = k
	if err := forbidden(file, &k); err != nil {
		return err
	}
	for _, r := range folderFields(&k) {
		if err := s.follow(file, r); err != nil {
			return err
		}
	}
	for _, r := range fileFields(&k) {
		if err := s.file(file, r); err != nil {
			return err
		}
	}
	for _, r := range pluginFields(&k) {
		if err := s.plugin(file, r); err != nil {
			return err
		}
	}
	return nil
}

// parse reads a kustomization as Kustomize does, with its deprecated fields in
// their new places.
func (s *scan) parse(file string) (k types.Kustomization, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = refusal.New(diag.Render, "write it as `kustomize edit fix` does", "%s: cannot be read: %v",
				file, p)
		}
	}()
	s.reached[file] = true
	if err := manifest.Check(file, s.files[file]); err != nil {
		return k, err
	}
	if err := k.Unmarshal(s.files[file]); err != nil {
		return k, refusal.New(diag.Render, "the fields of a kustomization are described at "+
			"https://kubectl.docs.kubernetes.io/references/kustomize/kustomization/",
			"%s: %v", file, err)
	}
	k.FixKustomization()
	return k, nil
}

// follow checks a field that names a file of manifests, or a folder with a kustomization.
func (s *scan) follow(file string, r reference) error {
	name, err := s.resolve(file, r)
	if err != nil {
		return err
	}
	if _, ok := s.files[name]; ok {
		return s.content(name)
	}
	if k, _ := s.kustomization(name); k == "" {
		return refusal.New(diag.BadSource, "name a folder with a kustomization, or files",
			"%s: %s: %s is a folder without a kustomization", file, r.field, r.value)
	}
	return s.overlay(name)
}

// file checks a field that names a file. A file that Kustomize reads as YAML must not be a
// bomb; Kustomize itself reports other errors in it.
func (s *scan) file(file string, r reference) error {
	name, err := s.resolve(file, r)
	switch {
	case err != nil:
		return err
	case s.folders[name]:
		return refusal.New(diag.BadSource, "name a file", "%s: %s: %s is a folder", file, r.field,
			r.value)
	case r.data:
		return nil
	}
	return manifest.Check(name, s.files[name])
}

// content refuses a file of manifests if no YAML reader should get it, or if none can read
// it. Kustomize does not name the file or the error.
func (s *scan) content(name string) error {
	if s.checked[name] {
		return nil
	}
	s.checked[name] = true
	_, err := s.bytes.Documents(name, s.files[name])
	return err
}

// resolve returns the clean path, in the source, of the file or folder that a field of a
// kustomization names. It returns an error if the path does not exist.
func (s *scan) resolve(file string, r reference) (string, error) {
	refuse := func(hint, format string, args ...any) (string, error) {
		return "", refusal.New(diag.BadSource, hint, "%s: %s: %s", file, r.field,
			fmt.Sprintf(format, args...))
	}
	switch {
	case r.value == "":
		return refuse("remove the entry", "names nothing")
	case remote(r.value):
		return refuse("copy it into the source, or let the reconciler render the overlay",
			"%s is fetched from elsewhere, and a build fetches nothing", r.value)
	case path.IsAbs(r.value) || strings.Contains(r.value, `\`):
		return refuse("a kustomization names files relative to its own folder", "%s is no relative path",
			r.value)
	}
	name := path.Join(path.Dir(file), r.value)
	if outside(name) {
		return refuse("an overlay refers to what is in its own source", "%s leads out of the source",
			r.value)
	}
	if _, ok := s.files[name]; ok {
		s.reached[name] = true
	} else if at, why := s.why(name); why != "" {
		return refuse(archive.WayOut(why, hintRefused), "%s is not in the source: %s %s", r.value, at,
			why)
	} else if !s.folders[name] {
		hint := cmp.Or(spelling.DidYouMean(path.Base(name), s.siblings(name)),
			"files are named from the folder of the kustomization")
		return refuse(hint, "%s is not in the source", r.value)
	}
	return name, nil
}

// ownSchema reports whether one of the kustomizations extends the schema of the kinds of
// objects that Kustomize knows.
func (s *scan) ownSchema() bool {
	for _, k := range s.parsed {
		if len(k.OpenAPI) > 0 || len(k.Crds) > 0 {
			return true
		}
	}
	return false
}

// siblings returns the names of the files and folders in the folder of a path, sorted.
func (s *scan) siblings(name string) []string {
	var names []string
	for _, all := range []iter.Seq[string]{maps.Keys(s.files), maps.Keys(s.folders)} {
		for f := range all {
			if f != "." && path.Dir(f) == path.Dir(name) {
				names = append(names, path.Base(f))
			}
		}
	}
	slices.Sort(names)
	return names
}
