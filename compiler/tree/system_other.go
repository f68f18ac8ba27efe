//go:build !linux

package tree

import (
	"os"
	"path"
)

// scanner looks at many files, folder by folder, and follows no symbolic link.
type scanner struct {
	survey *survey
	dir    string
}

// openScanner returns a scanner of the folder. It is for one goroutine.
func openScanner(root *os.Root) (*scanner, error) { return &scanner{survey: newSurvey(root)}, nil }

func (s *scanner) close() error { return s.survey.close() }

// enter selects a folder; it returns false if the folder does not exist.
func (s *scanner) enter(dir string) bool {
	s.dir = dir
	there, err := s.survey.folder(dir)
	return err == nil && there.kind == folder
}

// stat looks at a file of the folder. It returns false if the file does not exist, or if its
// executable bit differs from executable.
func (s *scanner) stat(name string, executable bool) (stat, bool) {
	there, err := s.survey.look(path.Join(s.dir, name))
	if err != nil || there.kind != regular || !isFile(there.info, executable) {
		return stat{}, false
	}
	return statOf(there.info), true
}

// canSyncAll is false: other systems sync one file, or sync everything without reporting the end.
const canSyncAll = false

func (disk) syncAll() error { return nil }
