package regular

import (
	"io/fs"
	"os"

	"github.com/gofrs/flock"
)

// Lock returns a lock that a file is for, which is made with a mode where there is none. The
// file is not a link: following one would make a file wherever it leads.
func Lock(name string, mode fs.FileMode) *flock.Flock {
	return flock.New(name, flock.SetPermissions(mode), flock.SetFlag(os.O_CREATE|os.O_RDONLY|nonBlocking|noFollow))
}
