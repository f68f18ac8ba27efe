//go:build unix

package regular

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(
		os.WriteFile(in("file"), []byte("text"), 0o600), os.Symlink("file", in("link")),
		syscall.Mkfifo(in("pipe"), 0o600), os.Symlink("pipe", in("link to a pipe")),
		os.Symlink("/dev/zero", in("device")), os.Mkdir(in("folder"), 0o700), os.Symlink("round", in("round")),
	); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", in("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	for name, want := range map[string]error{
		"file": nil, "link": nil, "pipe": ErrNotRegular, "link to a pipe": ErrNotRegular, "device": ErrNotRegular,
		"folder": syscall.EISDIR, "socket": syscall.ENXIO, "round": syscall.ELOOP, "nothing": fs.ErrNotExist,
	} {
		text, err := ReadFile(in(name))
		if !errors.Is(err, want) || want == nil && string(text) != "text" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}
