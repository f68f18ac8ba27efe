package api

import (
	"fmt"
	"strings"

	"github.com/kalypso-io/kalypso/hub/state"
)

// String returns the counts as in "73/100 ok, 2 failed, 25 stale", without zeros.
func (c Counts) String() string {
	if c.Wanted == 0 {
		return "nothing is wanted"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d/%d ok", c.OK, c.Wanted)
	for _, s := range []state.State{state.Failed, state.Drifted, state.Suspended, state.Behind,
		state.Progressing, state.Stale, state.Missing} {
		if n := c.Of(s); n > 0 {
			fmt.Fprintf(&b, ", %d %s", n, s)
		}
	}
	return b.String()
}
