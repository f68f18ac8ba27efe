//go:build unix

package regular

import "syscall"

// nonBlocking is a flag for opening a file: without it, opening a pipe waits for its other end.
const nonBlocking = syscall.O_NONBLOCK

const noFollow = syscall.O_NOFOLLOW
