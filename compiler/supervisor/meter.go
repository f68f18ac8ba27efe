package supervisor

import (
	"runtime/metrics"
	"sync"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// Default returns the bounds that hold where nothing else is said: far beyond what platforms
// need, and within what the machine, or the control group of the process, has.
var Default = sync.OnceValue(func() Bounds {
	b := Bounds{CPU: 5 * time.Minute, Memory: 4 << 30}
	for _, limit := range []memlimit.Provider{memlimit.FromCgroup, memlimit.FromSystem} {
		if has, err := limit(); err == nil && has > 0 {
			b.Memory = int64(min(uint64(b.Memory), has/4*3))
		}
	}
	return b
})

// meter measures the memory of the process.
type meter []metrics.Sample

func newMeter() meter {
	return meter{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
}

// read returns how many bytes Go has from the system, and how many of them stacks have. It
// allocates nothing.
func (m meter) read() (all, stacks int64) {
	metrics.Read(m)
	return int64(m[0].Value.Uint64() - m[1].Value.Uint64()), int64(m[2].Value.Uint64())
}
