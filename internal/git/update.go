package git

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// ErrLostRace is wrapped by the error of Update if the ref is not at the expected commit.
var ErrLostRace = errors.New("another process changed it in the meantime")

// lockWait is the longest time that Update waits for another process to release the lock of a
// ref, which takes only a moment. lockRetry is the interval of the attempts.
const (
	lockWait  = time.Second
	lockRetry = 5 * time.Millisecond
)

// Update moves a ref from one commit to another; from the zero Hash if it does not exist. The
// change is on the disk when Update returns. If git would write a reflog, it gets an entry with
// by and the subject of message.
//
// As git does, Update makes the ref's lock file, compares the ref, and renames the lock file to
// the ref. It returns an ErrLostRace if the ref is not at from. If a killed process left a lock
// file, the error names the file.
func (r *Repository) Update(ref string, from, to Hash, by Signature, message string) error {
	u := &refUpdate{repository: r, ref: ref, from: from, to: to, by: by, message: message,
		file: filepath.Join(r.dir, filepath.FromSlash(ref))}
	if err := u.run(); err != nil {
		return fmt.Errorf("updating %s of %s: %w", ref, r.dir, err)
	}
	return nil
}

// refUpdate moves one ref.
type refUpdate struct {
	repository *Repository
	ref        string
	file       string // of the ref
	from, to   Hash
	by         Signature
	message    string
}

func (u *refUpdate) run() (err error) {
	lock, err := u.lock()
	if err != nil {
		return err
	}
	locked := true
	defer func() {
		lock.Close() // a second time, unless there is an error
		if locked {
			err = errors.Join(err, os.Remove(lock.Name()))
		}
	}()
	if err := u.compare(); err != nil {
		return err
	}
	if u.from.IsZero() {
		if err := u.vacant(); err != nil {
			return err
		}
	}
	if err := u.repository.step("write", lock.Name()); err != nil {
		return err
	}
	if _, err := lock.WriteString(u.to.String() + "\n"); err != nil {
		return err
	}
	if err := errors.Join(lock.Sync(), lock.Close()); err != nil {
		return err
	}
	if err := u.log(); err != nil {
		return err
	}
	if err := u.repository.step("rename", u.file); err != nil {
		return err
	}
	if err := os.Rename(lock.Name(), u.file); err != nil {
		return err
	}
	locked = false
	if err := syncDir(filepath.Dir(u.file)); err != nil || !u.from.IsZero() {
		return err
	}
	// Its folders may be new as well.
	for dir := filepath.Dir(u.file); dir != u.repository.dir; {
		dir = filepath.Dir(dir)
		if err := syncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// compare returns an ErrLostRace unless the ref is at from.
func (u *refUpdate) compare() error {
	from := u.from
	is, err := u.repository.Ref(u.ref)
	switch {
	case err != nil:
		return err
	case is == from:
		return nil
	case from.IsZero():
		return fmt.Errorf("%w: it was not there, and is at %s", ErrLostRace, is)
	case is.IsZero():
		return fmt.Errorf("%w: it was at %s, and is not there", ErrLostRace, from)
	}
	return fmt.Errorf("%w: it was at %s, and is at %s", ErrLostRace, from, is)
}

// lock makes a ref's lock file, and waits while another process has it.
func (u *refUpdate) lock() (*os.File, error) {
	file := u.file + ".lock"
	if err := u.repository.step("lock", file); err != nil {
		return nil, err
	}
	for end := time.Now().Add(lockWait); ; time.Sleep(lockRetry) {
		err := os.MkdirAll(filepath.Dir(file), 0o777)
		if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("a ref with the name of one of its folders is there: %w", err)
		}
		if err != nil {
			return nil, err
		}
		f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if err == nil {
			return f, nil
		}
		// git removes empty folders of refs, also between these lines.
		if !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if time.Now().After(end) {
			if lost := u.compare(); lost != nil {
				return nil, lost
			}
			return nil, fmt.Errorf("another process holds the lock %s; if none does, one was killed while "+
				"it updated the branch: remove the file", file)
		}
	}
}

// vacant checks that a new ref is not a folder of refs, and that none of its folders is a ref.
func (u *refUpdate) vacant() error {
	ref, taken := u.ref, ""
	err := u.repository.refs.eachPacked(func(_, other string) {
		if strings.HasPrefix(other, ref+"/") || strings.HasPrefix(ref, other+"/") {
			taken = other
		}
	})
	if err != nil {
		return err
	}
	if taken != "" {
		return fmt.Errorf("%s is there, and one cannot be the folder of the other", taken)
	}
	// A ref that was removed leaves its folders.
	if err := removeEmpty(u.file); err != nil {
		return fmt.Errorf("refs are there whose folder it would be: %w", err)
	}
	return nil
}

// removeEmpty removes a folder that contains only folders; a file stays, and a missing
// folder is not an error.
func removeEmpty(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeEmpty(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return os.Remove(dir)
}

// log appends to the reflogs of a ref and of the HEAD that refers to it, if they exist or if
// core.logAllRefUpdates is set.
func (u *refUpdate) log() error {
	subject, _, _ := strings.Cut(u.message, "\n")
	what := "commit"
	if u.from.IsZero() {
		what = "commit (initial)"
	}
	line := fmt.Sprintf("%s %s %s\t%s: %s\n", u.from, u.to, u.by, what, subject)
	logs := []string{u.ref}
	head, err := u.repository.refs.headOf(u.repository.dir)
	if err != nil {
		return err
	}
	if head == u.ref {
		logs = append(logs, "HEAD")
	}
	for _, name := range logs {
		if err := u.appendLog(name, line); err != nil {
			return err
		}
	}
	return nil
}

func (u *refUpdate) appendLog(name, line string) error {
	file := filepath.Join(u.repository.dir, "logs", filepath.FromSlash(name))
	flags := os.O_WRONLY | os.O_APPEND
	if u.repository.logs() {
		flags |= os.O_CREATE
		if err := removeEmpty(file); err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			return err
		}
	}
	if err := u.repository.step("log", file); err != nil {
		return err
	}
	f, err := os.OpenFile(file, flags, 0o666)
	if flags&os.O_CREATE == 0 && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(line)
	return errors.Join(err, f.Close())
}

// logs reports whether branches get a reflog.
func (r *Repository) logs() bool {
	v, set := option(r.config, "core", "logAllRefUpdates")
	if !set {
		return !r.bare
	}
	return strings.EqualFold(v, "always") || isTrue(r.config, "core", "logAllRefUpdates")
}

// syncDir syncs a folder's names to the disk, if the system can.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	// Some file systems refuse, and there is no other way.
	if err := f.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) &&
		!errors.Is(err, fs.ErrPermission) {
		return errors.Join(fmt.Errorf("writing folder %s to the disk: %w", path.Base(dir), err),
			f.Close())
	}
	return f.Close()
}
