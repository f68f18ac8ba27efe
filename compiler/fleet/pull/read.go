package pull

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/kalypso-io/kalypso/internal/regular"
)

// Files reads clusters from files, folders and, for -, stdin, in the order of their names.
// path returns the path of a name.
func (r *Reader) Files(names []string, path func(name string) string, stdin io.Reader) error {
	left := int64(maxBytes)
	text := func(name string, data []byte, err error) error {
		if err != nil {
			return fmt.Errorf("--file %s: %w", name, err)
		}
		if left -= int64(len(data)); left < 0 {
			return fmt.Errorf("--file %s: there are more than %d MiB to read", name, maxBytes>>20)
		}
		return r.Text(name, data)
	}
	for _, name := range names {
		if name == "-" {
			data, err := io.ReadAll(io.LimitReader(stdin, left+1))
			if err := text("stdin", data, err); err != nil {
				return err
			}
			continue
		}
		err := filepath.WalkDir(path(name), func(at string, e fs.DirEntry, err error) error {
			isNamed := at == path(name)
			switch {
			case err != nil:
				return fmt.Errorf("--file %s: %w", name, err)
			case e.IsDir() && isNamed && r.From == Ansible:
				return fmt.Errorf("--file %s is a folder, of which Ansible knows what is its inventory: "+
					"ansible-inventory -i %[1]s --list | kalypso inventory pull ... --file -", name)
			case e.IsDir(), !isNamed && !(e.Type().IsRegular() && isData(at)):
				return nil
			}
			called := name
			if !isNamed {
				called = filepath.ToSlash(filepath.Join(name, strings.TrimPrefix(at, path(name))))
			}
			info, err := os.Stat(at)
			if err == nil && info.Size() > left {
				return text(called, make([]byte, 0),
					fmt.Errorf("there are more than %d MiB to read", maxBytes>>20))
			}
			data, err := regular.ReadFile(at)
			return text(called, data, err)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
