package remote

import (
	"os"
	"path/filepath"
)

// EnvStore is the environment variable with the folder of DefaultStore.
const EnvStore = "KALYPSO_GIT_DIR"

// DefaultStore returns the folder that commands use as [Options.Store]: $KALYPSO_GIT_DIR,
// else kalypso-git in the user's cache folder, beside the cache of builds, which holds only
// its own files. It is "", for a temporary folder, where there is neither. All of it can be
// fetched again.
func DefaultStore() string {
	if dir := os.Getenv(EnvStore); dir != "" {
		return dir
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "kalypso-git")
}
