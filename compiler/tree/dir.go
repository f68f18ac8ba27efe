package tree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Dir is the folder of one environment. It is not for use by several goroutines at once; a lock
// keeps out other processes and other Dirs.
type Dir struct {
	location
	dir  string
	root *os.Root // nil while the folder does not exist
	held *flock.Flock
	// unlockable is the error of the attempt to lock. It matters only if
	// there is something to write.
	unlockable error

	wait    time.Duration
	workers int   // files that are written at once
	maxHeld int64 // see the constant
	// step is called before each change, and may return an error; it does nothing except in tests.
	step     func(op, path string) error
	exchange func(root *os.Root, a, b string) error // see disk
}

// workers is the number of files that are written at once. They mostly wait for the disk,
// and it commits many files about as fast as one: 12,000 files a second on ext4, against
// 2,000 one after the other.
const workers = 64

// Open opens an environment's folder, which need not exist. It returns an error if dir
// exists and is not a folder.
//
// Open locks a folder that kalypso has written to, against other processes that
// write to it, until Close. Open waits up to ten seconds for such a process. Any
// other folder is locked before the first write. Open creates only .kalypso/lock,
// and only if there is a .kalypso.
func Open(dir string) (*Dir, error) { return open(dir, lockWait) }

// open is Open with a time limit for the lock.
func open(dir string, wait time.Duration) (*Dir, error) {
	d := &Dir{dir: dir, wait: wait, workers: workers, maxHeld: maxHeld, exchange: exchange,
		step: func(string, string) error { return nil }}
	d.location = d.display
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return d, nil
	case err != nil:
		return nil, fmt.Errorf("opening output folder: %w", err)
	case !info.IsDir():
		return nil, fmt.Errorf("opening output folder: %s is not a folder", dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening output folder: %w", err)
	}
	d.root = root
	own, err := newSurvey(root).look(ownFolder)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening output folder: %w", err), d.Close())
	}
	if own.kind != folder {
		return d, nil
	}
	err = d.lock()
	if errors.Is(err, errHeld) {
		return nil, errors.Join(err, d.Close())
	}
	d.unlockable = err
	return d, nil
}

// Close releases the lock. A closed Dir must not be used.
func (d *Dir) Close() error {
	var errs []error
	if d.held != nil {
		errs = append(errs, d.held.Close())
	}
	if d.root != nil {
		errs = append(errs, d.root.Close())
	}
	d.held, d.root = nil, nil
	return errors.Join(errs...)
}

// Record returns the folder's record. It returns nil if there is no record, and nil with
// diagnostics if kalypso cannot read the record. After a killed write, the record describes the
// actual content of the folder. Its cluster types are read from the folder on request, so the Dir
// must then be open.
func (d *Dir) Record() (*Record, []diag.Diagnostic, error) {
	st, problems, err := d.load(newSurvey(d.root), false)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the record of %s: %w", d.dir, err)
	}
	return st.record, unsolved(problems, false), nil
}

// ReadRecord returns the record of an environment's folder; nil if the folder has none, or if
// kalypso cannot read it. The folder is closed again, so the record only lists its cluster types.
func ReadRecord(dir string) *Record {
	if _, err := os.Stat(filepath.Join(dir, RecordPath)); err != nil {
		return nil // Open would leave a lock
	}
	d, err := Open(dir)
	if err != nil {
		return nil
	}
	defer d.Close()
	record, _, err := d.Record()
	if err != nil {
		return nil
	}
	return record
}

// Compare returns the changes that Write would make, and does nothing. It reports the same
// diagnostics as Write.
func (d *Dir) Compare(ctx context.Context, t *Tree, o Options) (*Changes, []diag.Diagnostic,
	error) {
	p, report, err := d.plan(ctx, t, o)
	if err != nil {
		return nil, nil, fmt.Errorf("comparing with %s: %w", d.dir, err)
	}
	if p == nil {
		return nil, report, nil
	}
	return p.changes(), nil, nil
}

// Write makes the folder match the tree, and records it. It returns its changes. If nothing
// differs, it writes only an improved index, and only if the folder is writable. So a folder
// without write permission works.
//
// With diagnostics there are no changes, and nothing was written. Write reports a diagnostic for
// each of these:
//   - A file that kalypso did not write blocks a new one (diag.ForeignFile).
//   - The folder belongs to another platform or environment (diag.ForeignRecord).
//   - Its record cannot be used (diag.BadRecord).
//   - A file to keep is missing (diag.KeptMissing).
//
// Options.Adopt replaces foreign files and links at the exact paths of new files, and
// ignores an unreadable record. It never removes a file in the place of a folder, or a
// folder with foreign content.
//
// The folder of an assignment changes in one step if the file system can exchange two folders. On
// Linux and macOS, most can. Other files change one by one, each atomically. All files are written
// elsewhere before: a full disk changes nothing. After any other error, or a kill, the next Write
// finishes or undoes this one. Until then every assignment is in its old or its new state. The
// error reports a failure of the file system, an impossible tree, or content that is missing or
// differs from the announced content.
func (d *Dir) Write(ctx context.Context, t *Tree, o Options) (*Changes, []diag.Diagnostic, error) {
	p, report, err := d.plan(ctx, t, o)
	switch {
	case err != nil || p == nil:
	case !p.done():
		p, report, err = d.writeLocked(ctx, p, t, o)
	case p.learnt && d.held != nil:
		// Only the index is written here, so an error does not matter: the folder may be one
		// without write permission.
		_ = (&indexing{disk: d.disk(), writePlan: p}).write()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("writing %s: %w", d.dir, err)
	}
	if p == nil {
		return nil, report, nil
	}
	return p.changes(), nil, nil
}

// writeLocked carries out a plan. If it takes the lock first and then finds files in the folder, it
// makes a new plan.
func (d *Dir) writeLocked(ctx context.Context, p *writePlan, t *Tree, o Options) (*writePlan,
	[]diag.Diagnostic, error) {
	if d.unlockable != nil {
		return nil, nil, d.unlockable
	}
	if d.held == nil {
		if err := d.create(); err != nil {
			return nil, nil, err
		}
		if err := d.lock(); err != nil {
			return nil, nil, err
		}
		still, err := d.vacant()
		if err != nil {
			return nil, nil, err
		}
		if !p.vacant || !still {
			var report []diag.Diagnostic
			if p, report, err = d.plan(ctx, t, o); p == nil {
				return nil, report, err
			}
		}
	}
	return p, nil, d.carryOut(ctx, p)
}

// vacant reports whether the folder is empty except for the lock.
func (d *Dir) vacant() (bool, error) {
	if d.root == nil {
		return true, nil
	}
	for _, c := range []struct{ dir, only string }{{".", ownFolder},
		{ownFolder, path.Base(lockPath)}} {
		entries, err := fs.ReadDir(d.root.FS(), c.dir)
		if errors.Is(err, fs.ErrNotExist) {
			return true, nil
		}
		if err != nil || len(entries) > 1 || len(entries) == 1 && entries[0].Name() != c.only {
			return false, err
		}
	}
	return true, nil
}

// create makes the folder and kalypso's own folder in it.
func (d *Dir) create() error {
	if d.root == nil {
		if err := os.MkdirAll(d.dir, 0o755); err != nil {
			return err
		}
		root, err := os.OpenRoot(d.dir)
		if err != nil {
			return err
		}
		d.root = root
	}
	return d.disk().mkdir(ownFolder)
}

// display returns a path in the folder as the user would open it.
func (d *Dir) display(p string) string { return path.Join(filepath.ToSlash(d.dir), p) }

// location returns a path in an environment's folder, in the form in which the
// user would open the file.
type location func(p string) string

// addLocation adds the location of the file to a RecordError.
func (at location) addLocation(err error) error {
	var bad *RecordError
	if errors.As(err, &bad) {
		bad.File = at(bad.Path)
	}
	return err
}

// unreadable reports that kalypso cannot use a file of ownFolder.
func (at location) unreadable(p string, err error) []problem {
	bad := &RecordError{Path: p, File: at(p), Err: err}
	return []problem{{bad.Diagnostic(), bad.adoptable()}}
}

// belongs reports a record or journal of another platform or environment.
func (at location) belongs(st *state, o Options) []problem {
	check := func(p, platform, environment string) []problem {
		if platform == o.Platform &&
			(environment == o.Environment || slices.Contains(o.Formerly, environment)) {
			return nil
		}
		message := fmt.Sprintf("the folder belongs to environment %s of platform %s, not to %s of %s",
			environment, platform, o.Environment, o.Platform)
		report := at.pointTo(diag.New(diag.ForeignRecord, message), p)
		hint := "write to a folder, or a branch, of its own"
		if platform == o.Platform {
			hint += fmt.Sprintf("; if %s was renamed to %s, write environments: %[2]s: formerly: %[1]q",
				environment, o.Environment)
		}
		return []problem{{report.Hinting(hint), false}}
	}
	if r := st.record; r != nil {
		return check(recordPath, r.Platform, r.Environment)
	}
	if j := st.journal; j != nil {
		return check(journalPath, j.Platform, j.Environment)
	}
	return nil
}

// foreign reports that the file at p does not belong to kalypso.
func (at location) foreign(p, what string) diag.Diagnostic {
	return at.pointTo(diag.New(diag.ForeignFile, p+" "+what), p)
}

// pointTo points a diagnostic to a path in the folder, as the user would open it.
func (at location) pointTo(report diag.Diagnostic, p string) diag.Diagnostic {
	return report.In(model.Position{File: at(p), Line: 1, Column: 1}, "")
}

// lockWait is the time for which a process waits for another one that works on the same folder, and
// lockRetry is the time between two attempts.
const (
	lockWait  = 10 * time.Second
	lockRetry = 20 * time.Millisecond
)

// errHeld means that another process has the lock.
var errHeld = errors.New("another kalypso works on this folder")

// lock takes the lock, which is a file in ownFolder, and waits if another process
// has it. ownFolder must exist. The operating system releases the lock of a
// process that was killed.
//
// A lock belongs to an open file, so it also works between two Dirs of one process. On
// network file systems it works only if they implement flock.
func (d *Dir) lock() error {
	// The library opens the file by name, so look for links and other non-files first.
	s := newSurvey(d.root)
	there, err := s.look(lockPath)
	if err != nil {
		return err
	}
	if there.kind != nothing && there.kind != regular {
		return fmt.Errorf("%s is not a file", d.display(lockPath))
	}
	l := flock.New(filepath.Join(d.dir, filepath.FromSlash(lockPath)), flock.SetPermissions(0o644))
	locked, err := l.TryLock()
	if err == nil && !locked {
		ctx, cancel := context.WithTimeout(context.Background(), d.wait)
		defer cancel()
		_, err = l.TryLockContext(ctx, lockRetry)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("locking %s: %w (waited %s); build again when that one is done", d.dir, errHeld,
			d.wait)
	}
	if err != nil {
		return fmt.Errorf("locking %s: %w", d.dir, err)
	}
	d.held = l
	return nil
}
