//go:build amd64 || arm64

package again

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// Guard makes the program begin again once the process exceeds one of some limits. They replace
// the limits of the last call; a call without limits ends it.
//
// A goroutine cannot do this. The copy of a string of a gibibyte is not interrupted. When a
// collection waits for the end of the copy, every goroutine waits for seconds, too. A goroutine
// that allocates waits for the collection. Meanwhile the process takes gibibytes more.
//
// So a thread checks the limits every few milliseconds. The runtime believes that it is in a long
// system call. The thread has no processor of Go's, allocates nothing, and only makes raw system
// calls. The last of them replaces the process. Its arguments are made here.
func Guard(limits ...Limit) error {
	var next *orders
	if len(limits) > 0 {
		next = &orders{n: len(limits)}
		if len(limits) > len(next.of) {
			return fmt.Errorf("%d limits are more than %d", len(limits), len(next.of))
		}
		for i, l := range limits {
			if err := next.of[i].prepare(l); err != nil {
				return err
			}
		}
	}
	guard.Lock()
	defer guard.Unlock()
	if next != nil && guard.statm == 0 {
		fd, err := syscall.Open("/proc/self/statm", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		guard.statm = uintptr(fd)
	}
	guard.kept[guard.calls%len(guard.kept)] = guard.orders
	guard.calls++
	guard.orders = next
	if next != nil && !guard.runs {
		guard.runs = true
		go runGuard()
	}
	return nil
}

// guard is the data that the thread reads without the lock. The targets of the orders are
// kept for some calls more: it may be looking at them.
var guard struct {
	sync.Mutex
	orders *orders
	kept   [64]*orders
	calls  int
	runs   bool
	statm  uintptr // a file descriptor; 0 before it is open

	// Of the thread:
	text  [64]byte
	usage syscall.Rusage
	pause syscall.Timespec
}

// orders are the limits, and for each of them the program that replaces the process beyond it.
type orders struct {
	n  int
	of [2]order
}

type order struct {
	pages      uint64 // of resident memory; 0 for any
	cpu        int64  // nanoseconds; 0 for any
	path       *byte
	argv, envv []*byte
}

func (o *order) prepare(l Limit) error {
	o.pages, o.cpu = uint64(l.Memory)/uint64(os.Getpagesize()), l.CPU.Nanoseconds()
	r, err := replacementWith(l.State)
	if err != nil {
		return err
	}
	if o.path, err = syscall.BytePtrFromString(r.program); err != nil {
		return err
	}
	if o.argv, err = syscall.SlicePtrFromStrings(r.args); err != nil {
		return err
	}
	o.envv, err = syscall.SlicePtrFromStrings(r.variables)
	return err
}

// guardTick is the time between two looks. In it a process can write some megabytes of new
// memory.
const guardTick = 4 * time.Millisecond

// runGuard runs the thread until there are no orders.
func runGuard() {
	guard.pause = syscall.NsecToTimespec(guardTick.Nanoseconds())
	for {
		watch()
		guard.Lock()
		if guard.orders == nil {
			guard.runs = false
			guard.Unlock()
			return
		}
		guard.Unlock()
	}
}

// The runtime exports these two to other modules with directives of its own.
//
//go:linkname entersyscallblock runtime.entersyscallblock
func entersyscallblock()

//go:linkname exitsyscall runtime.exitsyscall
func exitsyscall()

// watch measures the process until there are no orders. Between the calls of the runtime nothing
// may grow the stack or allocate. So it calls only functions that do not split the stack, and has
// its memory in guard.
//
//go:nosplit
//go:norace
func watch() {
	entersyscallblock()
	for {
		syscall.RawSyscall6(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&guard.pause)), 0, 0, 0, 0, 0)
		now := guard.orders
		if now == nil {
			break
		}
		pages := residentPages()
		syscall.RawSyscall6(syscall.SYS_GETRUSAGE, syscall.RUSAGE_SELF,
			uintptr(unsafe.Pointer(&guard.usage)), 0, 0, 0, 0)
		cpu := (guard.usage.Utime.Sec+guard.usage.Stime.Sec)*1e9 +
			(guard.usage.Utime.Usec+guard.usage.Stime.Usec)*1e3
		for i := 0; i < now.n && i < len(now.of); i++ {
			o := &now.of[i]
			if o.pages > 0 && pages > o.pages || o.cpu > 0 && cpu > o.cpu {
				// It only returns if it fails, for example because there are too many processes at
				// the moment.
				syscall.RawSyscall6(syscall.SYS_EXECVE, uintptr(unsafe.Pointer(o.path)),
					uintptr(unsafe.Pointer(unsafe.SliceData(o.argv))),
					uintptr(unsafe.Pointer(unsafe.SliceData(o.envv))), 0, 0, 0)
			}
		}
	}
	exitsyscall()
}

// residentPages reads the second number of statm (proc(5)); 0 if it cannot.
//
//go:nosplit
//go:norace
func residentPages() (pages uint64) {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_PREAD64, guard.statm,
		uintptr(unsafe.Pointer(&guard.text[0])), uintptr(len(guard.text)), 0, 0, 0)
	if errno != 0 {
		return 0
	}
	field := 0
	for i := 0; i < len(guard.text) && i < int(n); i++ {
		switch c := guard.text[i]; {
		case c == ' ':
			field++
		case field == 1:
			pages = pages*10 + uint64(c-'0')
		}
	}
	return pages
}
