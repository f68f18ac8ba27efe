package remote

import (
	"os"
	"path/filepath"
)

// EnvStore is the variable of the environment that names the folder of DefaultStore.
const EnvStore = "KALYPSO_GIT_DIR"

// DefaultStore is the folder that commands keep what they fetched in: $KALYPSO_GIT_DIR,
// else kalypso-git in the user's cache folder, beside the cache of what is computed and
// not in it, which holds nothing but its own. It is "", for a temporary folder, where
// there is neither. All of it can be fetched again.
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
