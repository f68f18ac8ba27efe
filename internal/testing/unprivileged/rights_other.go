//go:build !linux

package unprivileged

import (
	"errors"
	"os"
)

// takeRights returns an error for root, whose rights cannot be removed on this system. Other
// users do not have such rights.
func takeRights() error {
	if os.Geteuid() == 0 {
		return errors.New("root has all rights to files: run the tests as somebody else")
	}
	return nil
}
