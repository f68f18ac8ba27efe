//go:build !unix

package main

import "math"

// maxFiles returns the number of files that a program may open.
func maxFiles() uint64 { return math.MaxInt64 }
