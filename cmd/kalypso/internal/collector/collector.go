// Package collector sets when garbage is collected, as it is initialized. What other packages
// allocate then lives on, and would be collected three times before main with Go's own setting.
// Go initializes packages in the order of their paths, once their imports are: this one, which
// imports little, comes before most that allocate much.
package collector

import (
	"os"
	"runtime/debug"
)

// Percent of what lives is allocated between collections, where GOGC says nothing else.
const Percent = 400

func init() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(Percent)
	}
}
