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
func openScanner(root *os.Root) (*scanner, error) {
	return &scanner{survey: newSurvey(root)}, nil
}

func (s *scanner) close() error { return s.survey.close() }

// enter goes into a folder; false where there is none.
func (s *scanner) enter(dir string) bool {
	s.dir = dir
	there, err := s.survey.folder(dir)
	return err == nil && there.kind == folder
}

// stat looks at a file of the folder; false where there is none, or where it is
// executable and should not be, or should be and is not.
func (s *scanner) stat(name string, executable bool) (stat, bool) {
	there, err := s.survey.look(path.Join(s.dir, name))
	if err != nil || there.kind != regular || !isFile(there.info, executable) {
		return stat{}, false
	}
	return statOf(there.info), true
}

// canSyncAll is false: other systems sync a file, or, without saying when it is
// done, everything.
const canSyncAll = false

func (disk) syncAll() error { return nil }
