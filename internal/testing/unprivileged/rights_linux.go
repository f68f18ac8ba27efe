package unprivileged

import (
	"os"

	"golang.org/x/sys/unix"
)

// takeRights removes root's rights to read and write files against their permissions, from the
// processes that the thread starts. Other users do not have these rights.
func takeRights() error {
	if os.Geteuid() != 0 {
		return nil
	}
	for _, right := range []uintptr{unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH} {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, right, 0, 0, 0); err != nil {
			return os.NewSyscallError("prctl", err)
		}
	}
	return nil
}
