// Package cputime measures the processor time of this process. On a busy machine, waiting for a
// processor does not count.
package cputime
