package supervisor

import (
	"math"
	"runtime/metrics"
	"sync"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"github.com/kalypso-io/kalypso/internal/cputime"
)

// Default returns the bounds that apply without other settings. They are far more than
// platforms need, and less than the machine, or the control group of the process, has.
var Default = sync.OnceValue(func() Bounds {
	return Bounds{CPU: 5 * time.Minute, Memory: min(4<<30, Available()/4*3)}
})

// Available returns the memory of the machine, or of the control group of the process, in
// bytes.
func Available() int64 {
	least := uint64(math.MaxInt64)
	for _, limit := range []memlimit.Provider{memlimit.FromCgroup, memlimit.FromSystem} {
		if has, err := limit(); err == nil && has > 0 {
			least = min(least, has)
		}
	}
	return int64(least)
}

// measurement is the CPU time and the memory that the process has used.
type measurement struct {
	cpu            time.Duration
	memory, stacks int64 // bytes that Go has from the system, and the bytes of stacks among them
}

// newMeter returns a function that measures the process. The function allocates nothing.
func newMeter() func() measurement {
	of := []metrics.Sample{{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	var last measurement
	return func() measurement {
		if cpu, err := cputime.OfProcess(); err == nil {
			last.cpu = cpu
		}
		metrics.Read(of)
		last.memory, last.stacks = int64(of[0].Value.Uint64()-of[1].Value.Uint64()),
			int64(of[2].Value.Uint64())
		return last
	}
}
