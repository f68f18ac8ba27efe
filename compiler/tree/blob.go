package tree

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"runtime"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/internal/git"
)

// Blob is the entry of a file in a git tree: what is in it, and whether it is
// executable, which is all that git knows of permissions.
//
// In JSON it is the id; of an executable file {"id": <id>, "executable": true}.
type Blob struct {
	ID         ID
	Executable bool
}

// BlobOf returns the entry of a file in a tree.
func BlobOf(f backends.File) Blob { return Blob{BlobID(f.Data), f.Executable} }

// mode returns the file's mode in a tree.
func (b Blob) mode() git.Mode {
	if b.Executable {
		return git.ExecutableMode
	}
	return git.FileMode
}

// permissions are those that a file gets on the disk, as far as the umask lets it.
func permissions(executable bool) fs.FileMode {
	if executable {
		return 0o755
	}
	return 0o644
}

// executableJSON is the JSON of the Blob of an executable file.
type executableJSON struct {
	ID         ID   `json:"id"`
	Executable bool `json:"executable"`
}

// MarshalJSON encodes the Blob. It does not fail.
func (b Blob) MarshalJSON() ([]byte, error) {
	if b.Executable {
		return json.Marshal(executableJSON(b))
	}
	return json.Marshal(b.ID)
}

// UnmarshalJSON decodes what MarshalJSON returns. The id need not be one.
func (b *Blob) UnmarshalJSON(data []byte) error {
	*b = Blob{}
	if bytes.HasPrefix(data, []byte{'{'}) {
		return json.Unmarshal(data, (*executableJSON)(b))
	}
	// A record has one for every file, so that the decoder is asked only where an id
	// is not as it looks.
	if text, ok := bytes.CutPrefix(data, []byte{'"'}); ok {
		if id := ID(bytes.TrimSuffix(text, []byte{'"'})); id.valid() {
			b.ID = id
			return nil
		}
	}
	return json.Unmarshal(data, &b.ID)
}

// append appends the JSON of the Blob.
func (b Blob) append(to []byte) []byte {
	if !b.Executable {
		return appendString(to, string(b.ID))
	}
	to = appendString(appendField(append(to, '{'), "id", true), string(b.ID))
	return append(appendField(to, "executable", false), "true}"...)
}

// hasModes says whether files on this system say themselves whether they are
// executable.
const hasModes = runtime.GOOS != "windows"

// ownerMayRun is the permission that makes a file executable to git.
const ownerMayRun = 0o100

// IsExecutable says whether git would record of a file on the disk that it is
// executable. Where the system does not tell, it is what was recorded of the file.
func IsExecutable(info fs.FileInfo, recorded bool) bool {
	if !hasModes {
		return recorded
	}
	return info.Mode()&ownerMayRun != 0
}

// isFile says whether what is on the disk is a file, and executable or not.
func isFile(info fs.FileInfo, executable bool) bool {
	return info.Mode().IsRegular() && IsExecutable(info, executable) == executable
}
