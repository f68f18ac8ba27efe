package again

import "time"

// Limit is a limit for the memory or the CPU time of this process, and the state with which it
// starts again beyond that.
type Limit struct {
	Memory int64         // of resident memory, in bytes; 0 for any
	CPU    time.Duration // since its beginning, of all processors together; 0 for any
	State  any
}
