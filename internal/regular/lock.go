package regular

import (
	"io/fs"
	"os"

	"github.com/gofrs/flock"
)

// Lock returns the lock of a file, and makes the file with a mode if it does not exist. The
// file is not a link: following one would make a file wherever it leads.
func Lock(name string, mode fs.FileMode) *flock.Flock {
	return flock.New(name, flock.SetPermissions(mode),
		flock.SetFlag(os.O_CREATE|os.O_RDONLY|nonBlocking|noFollow))
}
