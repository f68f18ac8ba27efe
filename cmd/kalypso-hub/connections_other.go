//go:build !unix

package main

import "math"

// maxFiles is how many files a program may have open.
func maxFiles() uint64 { return math.MaxInt64 }
