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

// Dir is the folder of one environment. It is not for use by several goroutines
// at once; other processes, and other Dirs, are kept out by a lock.
type Dir struct {
	location
	dir  string
	root *os.Root // nil while the folder does not exist
	held *flock.Flock
	// unlockable is why the lock could not be taken, which matters only once
	// there is something to write.
	unlockable error

	wait    time.Duration
	workers int   // files that are written at once
	maxHeld int64 // see the constant
	// step is called before each change, which it can fail; it does nothing except in tests.
	step     func(op, path string) error
	exchange func(root *os.Root, a, b string) error // see disk
}

// workers is how many files are written at once. Their time goes to waiting for
// the disk, which commits many files about as fast as one: 12,000 files a second
// on ext4 against 2,000 one after the other.
const workers = 64

// Open opens an environment's folder, which need not exist. It fails if dir is
// something else than a folder.
//
// A folder that kalypso has written to is locked until Close, against other
// processes that write to it; Open waits up to ten seconds for one that does.
// Any other folder is locked when it is written to first. Open creates nothing
// but .kalypso/lock, where there is a .kalypso.
func Open(dir string) (*Dir, error) { return open(dir, lockWait) }

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

// Record returns what the folder's record says; nil where there is none, or none
// that can be read: then there are diagnostics. Where a write was killed, the
// record is true of what the folder is now. Its cluster types are read from the
// folder when they are asked for, so the Dir must be open then.
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

// Compare returns what Write would do, and does nothing. Where Write would
// report diagnostics, it reports them.
func (d *Dir) Compare(ctx context.Context, t *Tree, o Options) (*Changes, []diag.Diagnostic, error) {
	p, report, err := d.plan(ctx, t, o)
	if err != nil {
		return nil, nil, fmt.Errorf("comparing with %s: %w", d.dir, err)
	}
	if p == nil {
		return nil, report, nil
	}
	return p.changes(), nil, nil
}

// Write makes the folder the tree, and records it. It returns what it changed;
// where nothing differs, it writes nothing but the index, where that can be
// better, so that a folder without write permission will do.
//
// With diagnostics there are no changes, and nothing was written: something that
// kalypso did not write is where one has to be written (diag.ForeignFile), the folder is another
// platform's or environment's (diag.ForeignRecord), its record cannot be used,
// or what is to be kept is not there (diag.BadRecord, diag.KeptMissing). Options.Adopt
// replaces foreign files and links at the very paths to be written, and goes on
// without an unreadable record. It never removes what stands where a folder has
// to be, nor a folder with foreign content.
//
// The folder of an assignment changes in one step, wherever the file system can let two
// folders change places (on Linux and macOS, most can), and other files one by one, each
// atomically. All of them are written elsewhere before: a full disk changes nothing. After
// any other error, or a kill, the next Write finishes or undoes what this one began, and
// until then every assignment is as it was or as it will be. An error is about the file
// system, a tree that is impossible, or content that cannot be had or is not what
// was announced.
func (d *Dir) Write(ctx context.Context, t *Tree, o Options) (*Changes, []diag.Diagnostic, error) {
	p, report, err := d.plan(ctx, t, o)
	switch {
	case err != nil || p == nil:
	case !p.done():
		p, report, err = d.writeLocked(ctx, p, t, o)
	case p.learnt && d.held != nil:
		// The index is of no consequence where nothing else is written: the folder
		// may be one that must not be written to.
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

// writeLocked carries out a plan, or, if it has to take the lock first and
// something is there by then, the plan for that.
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

// vacant says whether nothing is in the folder but the lock.
func (d *Dir) vacant() (bool, error) {
	if d.root == nil {
		return true, nil
	}
	for _, c := range []struct{ dir, only string }{{".", ownFolder}, {ownFolder, path.Base(lockPath)}} {
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
func (d *Dir) display(p string) string {
	return path.Join(filepath.ToSlash(d.dir), p)
}

// location tells where an environment's folder is: it returns a path in it as the
// user would open it.
type location func(p string) string

// placed says in a RecordError where the folder is.
func (at location) placed(err error) error {
	var bad *RecordError
	if errors.As(err, &bad) {
		bad.File = at(bad.Path)
	}
	return err
}

// unreadable reports that a file of ownFolder cannot be used.
func (at location) unreadable(p string, err error) []problem {
	bad := &RecordError{Path: p, File: at(p), Err: err}
	return []problem{{bad.Diagnostic(), bad.adoptable()}}
}

// belongs reports a record or journal of another platform or environment.
func (at location) belongs(st *state, o Options) []problem {
	check := func(p, platform, environment string) []problem {
		if platform == o.Platform && (environment == o.Environment || slices.Contains(o.Formerly, environment)) {
			return nil
		}
		message := fmt.Sprintf("the folder belongs to environment %s of platform %s, not to %s of %s",
			environment, platform, o.Environment, o.Platform)
		report := at.at(diag.New(diag.ForeignRecord, message), p)
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

// foreign reports that what stands at p is not kalypso's.
func (at location) foreign(p, what string) diag.Diagnostic {
	return at.at(diag.New(diag.ForeignFile, p+" "+what), p)
}

// at points a diagnostic to a path in the folder, as the user would open it.
func (at location) at(report diag.Diagnostic, p string) diag.Diagnostic {
	return report.In(model.Position{File: at(p), Line: 1, Column: 1}, "")
}

// lockWait is how long a process waits for another that works on the same
// folder, and lockRetry how often it looks.
const (
	lockWait  = 10 * time.Second
	lockRetry = 20 * time.Millisecond
)

// errHeld says that another process has the lock.
var errHeld = errors.New("another kalypso works on this folder")

// lock takes the lock, which is a file in ownFolder, and waits for it if another
// process has it. ownFolder must be there. The operating system releases the
// lock of a process that was killed.
//
// A lock belongs to an open file, so it also holds between two Dirs of one
// process; on network file systems it holds as far as those implement flock.
func (d *Dir) lock() error {
	// The library opens by name, so what must not be followed is looked for first.
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
		return fmt.Errorf("locking %s: %w (waited %s); build again when that one is done", d.dir, errHeld, d.wait)
	}
	if err != nil {
		return fmt.Errorf("locking %s: %w", d.dir, err)
	}
	d.held = l
	return nil
}
