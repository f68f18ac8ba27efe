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

// ownFolder holds kalypso's own files: the records, and what must not get into
// git.
const ownFolder = ".kalypso"

// RecordPath is where the record is in an environment's folder.
const RecordPath = ownFolder + "/provenance.json"

// The files in ownFolder.
const (
	recordPath    = RecordPath
	journalPath   = ownFolder + "/journal.json"
	lockPath      = ownFolder + "/lock"
	indexPath     = ownFolder + "/index"
	gitignorePath = ownFolder + "/.gitignore"
)

// stagingFolder is where files are written before they are put into their places. Its
// name is one that gitignore has.
const stagingFolder = ownFolder + "/staging" + tempSuffix

// stagedPath returns where the file or folder at p is staged.
func stagedPath(p string) string { return stagingFolder + "/" + p }

// recordsFolder has the records of the cluster types.
const recordsFolder = ownFolder + "/cluster-types"

// ClusterTypeRecordPath returns where the record of a cluster type is in the
// environment's folder.
func ClusterTypeRecordPath(name string) string {
	return recordsFolder + "/" + strings.ReplaceAll(name, "/", ".") + ".json"
}

const gitignore = "lock\njournal.json\n*.tmp\nindex\n"

// Names of temporary files: they are reserved, in every folder.
const (
	tempPrefix = ".kalypso-"
	tempSuffix = ".tmp"
)

// tempPath returns where a file is written before it replaces the one at p. The
// name follows from p, so that a journal tells which ones a killed process left,
// and is short even where p's is as long as a name may be.
func tempPath(p string) string {
	sum := sha256.Sum256([]byte(path.Base(p)))
	return path.Join(path.Dir(p), tempPrefix+hex.EncodeToString(sum[:8])+tempSuffix)
}

// isTemp says whether a path has the name of a temporary file.
func isTemp(p string) bool {
	name := path.Base(p)
	return strings.HasPrefix(name, tempPrefix) && strings.HasSuffix(name, tempSuffix)
}

// CheckPaths returns why files with these paths cannot be written beside each other,
// in an environment's folder or any below it: a path that must not be written, one
// that is there twice, or one that is a folder of another.
func CheckPaths(paths []string) error {
	all := make(map[string]bool, len(paths))
	sound := map[string]bool{} // folders: of many paths that are in one, it is checked once
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
	around := map[string]bool{} // folders that are no files
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

// checkPath reports a path that leaves the environment's folder, or that
// kalypso, git or a file system reserves.
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

// maxName is how long a name may be in most file systems, in bytes.
const maxName = 255

// elementError is about one element of a path. Invisible characters are refused
// because a file system may ignore them (".g<U+200C>it" is .git on HFS+), and
// ".git" is looked for as Windows reads names: in any case, under its short
// name, and with what follows a colon or a final dot or space left out (git's
// is_hfs_dotgit and is_ntfs_dotgit). Other names with these are refused because
// Windows cannot write them.
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

// isPlain says whether a name is of letters that are small, digits and dashes, as most are: it
// then is nothing that elementError is about.
func isPlain(e string) bool {
	for _, c := range []byte(e) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return len(e) <= maxName
}

// checkName reports a name of a cluster type or folder that is not exactly one
// element of a path.
func checkName(name string) error {
	if strings.Contains(name, "/") {
		return fmt.Errorf("name %q has a slash", name)
	}
	return checkPath(name)
}
