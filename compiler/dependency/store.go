package dependency

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/kalypso-io/kalypso/internal/regular"
)

// Digest is the digest of content: "sha256:" followed by 64 lower case hexadecimal digits.
type Digest string

const algorithm = "sha256"

// DigestOf returns the digest of content.
func DigestOf(data []byte) Digest {
	sum := sha256.Sum256(data)
	return Digest(algorithm + ":" + hex.EncodeToString(sum[:]))
}

// Valid reports whether d has the form of a digest.
func (d Digest) Valid() bool {
	digits, ok := strings.CutPrefix(string(d), algorithm+":")
	return ok && isHex(digits, 2*sha256.Size)
}

func isHex(s string, length int) bool {
	return len(s) == length && strings.Trim(s, "0123456789abcdef") == ""
}

// path returns the file of the content of a valid digest in a folder.
func (d Digest) path(dir string) string {
	digits := string(d[len(algorithm)+1:])
	return filepath.Join(dir, algorithm, digits[:2], digits)
}

// MaxSize is the maximal size of content, in bytes.
const MaxSize = 512 << 20

// A MissingError is that a store does not have some content.
type MissingError struct{ Digest Digest }

func (e *MissingError) Error() string {
	return fmt.Sprintf("%s is neither in the vendor folder nor in this machine's store", e.Digest)
}

// A DamagedError is that a file of a store does not have the digest of its name.
type DamagedError struct {
	Digest Digest
	Path   string // the file
	Actual Digest // that of its content; "" for an unreadable file
	// Vendored reports whether the file is in the vendor folder, which only `kalypso
	// vendor` writes.
	Vendored bool
}

// Hint returns the remedy.
func (e *DamagedError) Hint() string {
	command := "kalypso lock"
	if e.Vendored {
		command = "kalypso vendor"
	}
	return "remove the file " + e.Path + ", find out who changed it, and run `" + command + "`"
}

func (e *DamagedError) Error() string {
	if e.Actual == "" {
		return fmt.Sprintf("%s is not the content of a source, and should hold %s", e.Path, e.Digest)
	}
	return fmt.Sprintf("%s holds %s, and should hold %s", e.Path, e.Actual, e.Digest)
}

// EnvDir is the environment variable with the machine's folder.
const EnvDir = "KALYPSO_STORE_DIR"

// MachineDir returns the machine's folder: $KALYPSO_STORE_DIR, or else kalypso-store in the
// user's cache folder. It is beside the cache of builds, which must have no other files. So
// builds need no network after `kalypso cache clean`. If there is no such folder, the error
// names the variable to set.
func MachineDir() (string, error) {
	if dir := os.Getenv(EnvDir); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("there is no folder for the content of sources; %s names one: %w", EnvDir,
			err)
	}
	return filepath.Join(dir, "kalypso-store"), nil
}

// Store is the content in a platform's vendor folder and in a machine's folder.
type Store struct{ vendor, machine string }

// OpenStore returns the store of two folders. Either may be missing or "", and neither is read
// before content is.
func OpenStore(vendor, machine string) *Store { return &Store{vendor: vendor, machine: machine} }

// folders returns the folders in the order of the search.
func (s *Store) folders() []string {
	var dirs []string
	for _, dir := range []string{s.vendor, s.machine} {
		if dir != "" {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// Get returns the content of a digest. The error is a *MissingError, a *DamagedError for a
// file with other content, or that of an unreadable file.
func (s *Store) Get(d Digest) ([]byte, error) {
	if !d.Valid() {
		return nil, fmt.Errorf("%q is no digest", d)
	}
	for _, dir := range s.folders() {
		data, err := read(d, d.path(dir))
		// A path below a file does not exist. Windows reports it so itself.
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			if damaged := (*DamagedError)(nil); errors.As(err, &damaged) {
				damaged.Vendored = dir == s.vendor
			}
			return data, err
		}
	}
	return nil, &MissingError{Digest: d}
}

// has reports whether there is something under a digest, whatever it is.
func (s *Store) has(d Digest) bool {
	return d.Valid() && slices.ContainsFunc(s.folders(), func(dir string) bool {
		_, err := os.Lstat(d.path(dir))
		return err == nil
	})
}

// read returns the verified content of a file.
func read(d Digest, name string) ([]byte, error) {
	// Opening a pipe would block until there is a writer.
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().IsRegular() &&
		info.Size() <= MaxSize {
		f, err := regular.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		data, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
		if err != nil {
			return nil, err
		}
		if actual := DigestOf(data); actual != d {
			return nil, &DamagedError{Digest: d, Path: name, Actual: actual}
		}
		return data, nil
	}
	if err != nil {
		return nil, err
	}
	return nil, &DamagedError{Digest: d, Path: name}
}
