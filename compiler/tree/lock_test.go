package tree_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/testing/unprivileged"
)

// held is the message for the second of two processes.
const held = "another kalypso works on this folder"

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, files{"file": "", "folder/": ""})
	for _, p := range []string{"file", "file/below"} {
		if d, err := tree.Open(filepath.Join(dir, p)); err == nil {
			t.Errorf("%s was opened", p)
			d.Close()
		}
	}
	d, err := tree.Open(filepath.Join(dir, "folder"))
	must(t, err)
	must(t, d.Close())
	equal(t, "opened", read(t, dir), files{"file": "", "folder/": ""})
	if _, err := os.Stat(filepath.Join(dir, "folder", ownFolder)); !os.IsNotExist(err) {
		t.Errorf("Open made %s", ownFolder)
	}
}

func TestLock(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, treeOf(small), dev)
	first, err := tree.Open(dir)
	must(t, err)
	if _, err := tree.OpenWithin(dir, time.Millisecond); err == nil || !strings.Contains(err.Error(), held) || !strings.Contains(err.Error(), dir) {
		t.Errorf("the second of two has the error %v", err)
	}
	must(t, first.Close())
	second, err := tree.Open(dir)
	must(t, err)
	must(t, second.Close())
}

// If two processes both found an empty folder, the second one waits. It then
// writes only the differences.
func TestLockOfANewFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dev")
	first, err := tree.Open(dir)
	must(t, err)
	second, err := tree.OpenWithin(dir, 0)
	must(t, err)
	defer second.Close()
	_, _, err = first.Write(context.Background(), treeOf(small).tree(), dev)
	must(t, err)
	next := changed(files{"large/app/a.yaml": "a2", "large/app/b.sh": ""})
	if _, _, err := second.Write(context.Background(), treeOf(next).tree(), dev); err == nil || !strings.Contains(err.Error(), held) {
		t.Errorf("the second of two has the error %v", err)
	}
	equal(t, "first", read(t, dir), small)
	must(t, first.Close())
	c, report, err := second.Write(context.Background(), treeOf(next).tree(), dev)
	must(t, err)
	if len(report) > 0 || len(c.Written) != 1 || len(c.Removed) != 1 {
		t.Errorf("the second wrote %+v, %v", c, report)
	}
	equal(t, "second", read(t, dir), next)
}

// If a Dir has no permission for the lock, only a write with changes fails.
// Other writes need no lock.
func TestFolderThatCannotBeLocked(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, treeOf(small), dev)
	must(t, os.Remove(filepath.Join(dir, lockPath)))
	must(t, os.Mkdir(filepath.Join(dir, lockPath), 0o755)) // fails for root as well

	write(t, dir, treeOf(small), dev)
	d, err := tree.Open(dir)
	must(t, err)
	defer d.Close()
	if _, _, err := d.Write(context.Background(), treeOf(files{}).tree(), dev); err == nil || !strings.Contains(err.Error(), "writing "+dir) {
		t.Errorf("the error is %v", err)
	}
	equal(t, "folder", read(t, dir), small)
}

func TestReadOnlyFolder(t *testing.T) {
	if !unprivileged.Test(t) {
		return
	}
	dir := t.TempDir()
	write(t, dir, treeOf(small), dev)
	must(t, os.Remove(filepath.Join(dir, lockPath)))
	for _, p := range []string{"large", "large/app", ownFolder, "."} {
		must(t, os.Chmod(filepath.Join(dir, p), 0o555))
		defer os.Chmod(filepath.Join(dir, p), 0o755)
	}
	write(t, dir, treeOf(small), dev)
	d, err := tree.Open(dir)
	must(t, err)
	defer d.Close()
	if _, _, err := d.Write(context.Background(), treeOf(changed(files{"large/app/a.yaml": "a2"})).tree(), dev); !os.IsPermission(errors.Unwrap(err)) && !errors.Is(err, os.ErrPermission) {
		t.Errorf("the error is %v", err)
	}
}
