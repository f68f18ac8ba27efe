package tree

import (
	"errors"
	"io/fs"
	"os"
)

// disk makes the changes to a folder: there are no others, so that tests can
// fail each of them.
type disk struct {
	root *os.Root
	step func(op, path string) error
}

func (d *Dir) disk() disk {
	step := d.step
	if step == nil {
		step = func(string, string) error { return nil }
	}
	return disk{d.root, step}
}

// mkdir makes a folder and those around it.
func (k disk) mkdir(dir string) error {
	if err := k.step("mkdir", dir); err != nil {
		return err
	}
	return k.root.MkdirAll(dir, 0o755)
}

// stage writes a file to its temporary path, down to the disk.
func (k disk) stage(p string, data []byte) error {
	temp := tempPath(p)
	if err := k.remove(temp); err != nil {
		return err
	}
	if err := k.step("create", temp); err != nil {
		return err
	}
	f, err := k.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer f.Close() // a second time, unless there is an error
	if err := k.step("write", temp); err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return f.Close()
}

// swap puts a staged file into its place.
func (k disk) swap(p string) error {
	if err := k.step("rename", p); err != nil {
		return err
	}
	return k.root.Rename(tempPath(p), p)
}

// replace writes a file atomically.
func (k disk) replace(p string, data []byte) error {
	if err := k.stage(p, data); err != nil {
		return err
	}
	return k.swap(p)
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
