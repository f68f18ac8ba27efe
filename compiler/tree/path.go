package tree

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"unicode"
)

// ownFolder contains kalypso's own files: the records, and the files that git must ignore.
const ownFolder = ".kalypso"

// RecordPath is the path of the record in an environment's folder.
const RecordPath = ownFolder + "/provenance.json"

// The files in ownFolder.
const (
	recordPath    = RecordPath
	journalPath   = ownFolder + "/journal.json"
	lockPath      = ownFolder + "/lock"
	indexPath     = ownFolder + "/index"
	gitignorePath = ownFolder + "/.gitignore"
)

// stagingFolder is where files are written before they move into their places. The pattern *.tmp in
// gitignore matches its name.
const stagingFolder = ownFolder + "/staging" + tempSuffix

// stagedPath returns where the file or folder at p is staged.
func stagedPath(p string) string { return stagingFolder + "/" + p }

// recordsFolder contains the records of the cluster types.
const recordsFolder = ownFolder + "/cluster-types"

// ClusterTypeRecordPath returns the path of a cluster type's record in the environment's folder.
func ClusterTypeRecordPath(name string) string {
	return recordsFolder + "/" + strings.ReplaceAll(name, "/", ".") + ".json"
}

// gitignore is the content of kalypso's own .gitignore.
const gitignore = "lock\njournal.json\n*.tmp\nindex\n"

// Names of temporary files: they are reserved, in every folder.
const (
	tempPrefix = ".kalypso-"
	tempSuffix = ".tmp"
)

// tempPath returns the temporary path of a file. The file at this path then replaces the one at p.
// The name depends only on p, so that a journal identifies the files of a killed process. It is
// short even if p's name has the maximum length.
func tempPath(p string) string {
	sum := sha256.Sum256([]byte(path.Base(p)))
	return path.Join(path.Dir(p), tempPrefix+hex.EncodeToString(sum[:8])+tempSuffix)
}

// isTemp reports whether a path has the name of a temporary file.
func isTemp(p string) bool {
	name := path.Base(p)
	return strings.HasPrefix(name, tempPrefix) && strings.HasSuffix(name, tempSuffix)
}

// CheckPaths returns an error if files with these paths cannot be written beside each other, in an
// environment's folder or any folder below it. A path must be allowed, must occur once, and must
// not be the folder of another path.
func CheckPaths(paths []string) error {
	all := make(map[string]bool, len(paths))
	sound := map[string]bool{} // folders: a folder with many paths is checked once
	for _, p := range paths {
		dir, name := path.Split(p)
		if sound[dir] {
			err := errNotRelative
			if fs.ValidPath(name) && name != "." {
				err = elementError(name)
			}
			if err != nil {
				return fmt.Errorf("path %q %w", p, err)
			}
		} else if err := checkPath(p); err != nil {
			return err
		}
		sound[dir] = dir != ""
		if all[p] {
			return fmt.Errorf("path %q is given twice", p)
		}
		all[p] = true
	}
	around := map[string]bool{} // folders that are not files
	for _, p := range paths {
		for dir := path.Dir(p); dir != "." && !around[dir]; dir = path.Dir(dir) {
			if all[dir] {
				return fmt.Errorf("path %q is a file and the folder of %q", dir, p)
			}
			around[dir] = true
		}
	}
	return nil
}

// checkPath returns an error if a path leaves the environment's folder, or if kalypso, git or a
// file system reserves it.
func checkPath(p string) error {
	if !fs.ValidPath(p) || p == "." {
		return fmt.Errorf("path %q %w", p, errNotRelative)
	}
	for e := range strings.SplitSeq(p, "/") {
		if err := elementError(e); err != nil {
			return fmt.Errorf("path %q %w", p, err)
		}
	}
	if first, _, _ := strings.Cut(p, "/"); strings.EqualFold(first, ownFolder) {
		return fmt.Errorf("path %q is in kalypso's own folder", p)
	}
	return nil
}

var errNotRelative = errors.New("is not a relative path without \"..\"")

// maxName is the maximum length of a name in most file systems, in bytes.
const maxName = 255

// elementError checks one element of a path. It rejects invisible characters because
// a file system may ignore them: ".g<U+200C>it" is .git on HFS+. It looks for ".git"
// as Windows reads names: in any case, and under its short name. Windows ignores
// dots and spaces at the end, and a colon with the text after it (git's
// is_hfs_dotgit and is_ntfs_dotgit). It rejects other names with these characters
// because Windows cannot write them.
func elementError(e string) error {
	if isPlain(e) {
		return nil
	}
	if strings.ContainsFunc(e,
		func(r rune) bool { return r == '\\' || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }) {
		return errors.New("has a backslash or an invisible character")
	}
	if len(e) > maxName {
		return fmt.Errorf("has a name of more than %d bytes", maxName)
	}
	name, _, _ := strings.Cut(e, ":")
	name = strings.ToLower(strings.TrimRight(name, ". "))
	if name == ".git" || name == "git~1" {
		return errors.New("is git's own")
	}
	if strings.Contains(e, ":") || strings.TrimRight(e, ". ") != e {
		return errors.New("has a colon, or a dot or space at its end, which Windows has in no name")
	}
	if isTemp(e) {
		return errors.New("has the name of a temporary file of kalypso")
	}
	return nil
}

// isPlain reports whether a name consists of small letters, digits and dashes, as most names do.
// elementError accepts every such name.
func isPlain(e string) bool {
	for _, c := range []byte(e) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return len(e) <= maxName
}

// checkName returns an error if a name of a cluster type or folder is not
// exactly one element of a path.
func checkName(name string) error {
	if strings.Contains(name, "/") {
		return fmt.Errorf("name %q has a slash", name)
	}
	return checkPath(name)
}
