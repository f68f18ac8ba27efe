package tree

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
)

// disk makes the changes to a folder: there are no others, so that tests can
// fail each of them.
type disk struct {
	root *os.Root
	step func(op, path string) error
	// exchange lets two folders change places, in one step. It fails where the file
	// system cannot do that.
	exchange func(root *os.Root, a, b string) error
}

func (d *Dir) disk() disk {
	step := d.step
	if step == nil {
		step = func(string, string) error { return nil }
	}
	return disk{d.root, step, d.exchange}
}

// mkdir makes a folder and those around it.
func (k disk) mkdir(dir string) error {
	if err := k.step("mkdir", dir); err != nil {
		return err
	}
	return k.root.MkdirAll(dir, 0o755)
}

// write makes the file at p, down to the disk if it is to be synced. in is its folder.
func (k disk) write(in *os.Root, p string, data []byte, perm fs.FileMode, sync bool) error {
	return k.writeWith(in, p, perm, func(out io.Writer) error {
		_, err := out.Write(data)
		return err
	}, sync)
}

func (k disk) writeWith(in *os.Root, p string, perm fs.FileMode, write func(io.Writer) error, sync bool) error {
	f, err := k.create(in, p, perm)
	if err != nil {
		return err
	}
	defer f.Close() // a second time, unless there is an error
	if err := k.step("write", p); err != nil {
		return err
	}
	if err := write(f); err != nil {
		return err
	}
	if sync {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	return f.Close()
}

// create makes a file that is not in its place yet. in is its folder. The umask takes
// from perm.
func (k disk) create(in *os.Root, p string, perm fs.FileMode) (*os.File, error) {
	if err := k.step("create", p); err != nil {
		return nil, err
	}
	f, err := create(in, path.Base(p), perm)
	if !errors.Is(err, fs.ErrExist) {
		return f, err
	}
	// Something of a write that was killed, which nobody else has found.
	if err := k.remove(p); err != nil {
		return nil, err
	}
	return create(in, path.Base(p), perm)
}

func create(in *os.Root, name string, perm fs.FileMode) (*os.File, error) {
	return in.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
}

// swap puts a file with a temporary name into its place. in is the file's folder.
func (k disk) swap(in *os.Root, p string) error {
	if err := k.step("rename", p); err != nil {
		return err
	}
	return in.Rename(path.Base(tempPath(p)), path.Base(p))
}

// put puts a staged file or folder into its place.
func (k disk) put(p string) error {
	if err := k.step("rename", p); err != nil {
		return err
	}
	return k.root.Rename(stagedPath(p), p)
}

// in calls a function with a folder. A path is looked up from the root in every
// operation, folder by folder, which costs more than most operations: for
// several files of a folder it is done once.
func (k disk) in(dir string, f func(*os.Root) error) error {
	in, err := k.root.OpenRoot(dir)
	if err != nil {
		return err
	}
	return errors.Join(f(in), in.Close())
}

// replace writes a file of kalypso's own atomically.
func (k disk) replace(p string, data []byte) error {
	return k.replaceWith(p, func(out io.Writer) error {
		_, err := out.Write(data)
		return err
	})
}

// replaceWith is replace for a file that is written piece by piece.
func (k disk) replaceWith(p string, write func(io.Writer) error) error {
	return k.in(path.Dir(p), func(in *os.Root) error {
		if err := k.writeWith(in, tempPath(p), permissions(false), write, true); err != nil {
			return err
		}
		return k.swap(in, p)
	})
}

// syncFolder writes the names in a folder to the disk, where the system can. in
// is the folder.
func (k disk) syncFolder(in *os.Root, dir string) error {
	if err := k.step("sync", dir); err != nil {
		return err
	}
	f, err := in.Open(".")
	if err != nil {
		return err
	}
	if runtime.GOOS != "windows" {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// remove removes a file if it is there.
func (k disk) remove(p string) error {
	if err := k.step("remove", p); err != nil {
		return err
	}
	err := k.root.Remove(p)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
