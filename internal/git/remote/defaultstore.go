package remote

import (
	"os"
	"path/filepath"
)

// EnvStore is the environment variable with the folder of DefaultStore.
const EnvStore = "KALYPSO_GIT_DIR"

// DefaultStore returns the folder that commands use as [Options.Store]. It is $KALYPSO_GIT_DIR,
// else kalypso-git in the user's cache folder, next to the cache of builds, which has only its
// own files. If neither exists, it is "", for a temporary folder. All of it can be fetched again.
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
